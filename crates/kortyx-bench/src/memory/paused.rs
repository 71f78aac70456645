//! What a paused run keeps: bytes, and tasks.

use std::sync::Arc;

use kortyx_memory::MemoryStore;
use tokio::{runtime::Handle, task};

use crate::{
    allocation,
    error::Error,
    number::{Unit, float, float_of, plain},
    options::Options,
    row::{Row, Target},
    watched::Watched,
    workload::Workload,
};

/// From the issue: "under 3 kB kept per paused run beyond its payload".
const BYTES: f64 = 3_000.0;

pub(crate) async fn paused(options: &Options) -> Result<Vec<Row>, Error> {
    let count: u64 = options.size(100_000, 10_000);
    let store = Watched::new(Arc::new(MemoryStore::new()));
    let workload = Workload::over(store.clone()).await?;
    // Whatever is made once is there after the first.
    workload.cycle().await?;
    settle().await;
    let (tasks, bytes, payload) = (alive_tasks(), allocation::bytes_in_use()?, store.payload());
    for _ in 0..count {
        workload.pause().await?;
    }
    settle().await;
    let payload = store.payload() - payload;
    let kept = float_of(allocation::bytes_in_use()?) - float_of(bytes);
    let tasks = float_of(alive_tasks()) - float_of(tasks);
    let each = |total: f64| total / float(count);
    Ok(vec![
        Row::new("memory: bytes kept by a paused run beyond its payload", each(kept - payload), Unit::Bytes)
            .target(Target::AtMost(BYTES)),
        Row::new("memory: bytes of its payload (snapshot and question)", each(payload), Unit::Bytes),
        Row::new(format!("memory: tasks held by {} paused runs", plain(float(count))), tasks, Unit::None)
            .target(Target::AtMost(0.0)),
    ])
}

/// Lets tasks end that have nothing left to do but that.
async fn settle() {
    for _ in 0..16 {
        task::yield_now().await;
    }
}

fn alive_tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}
