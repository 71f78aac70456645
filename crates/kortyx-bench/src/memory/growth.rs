//! What many cycles leave behind in a process that prunes.

use std::{sync::Arc, time::Duration};

use kortyx_memory::MemoryStore;
use kortyx_store::{Retention, Store};

use crate::{
    allocation,
    error::Error,
    number::{Unit, float, float_of, plain},
    options::Options,
    process,
    row::{Row, Target},
    workload::Workload,
};

/// Cycles between prunes.
const BETWEEN: u64 = 1_000;
/// Less than one byte for each cycle.
const BYTES: f64 = 64.0 * 1024.0;
/// As the kernel counts memory by pages, and by thread, it is off by about this much.
const RESIDENT: f64 = 1024.0 * 1024.0;

pub(crate) async fn growth(options: &Options) -> Result<Vec<Row>, Error> {
    let (warm_up, count): (u64, u64) = options.size((10_000, 100_000), (2_000, 10_000));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let workload = Workload::over(store.clone()).await?;
    cycles(&workload, &*store, warm_up).await?;
    let (bytes, resident) = (allocation::bytes_in_use()?, process::resident_bytes()?);
    cycles(&workload, &*store, count).await?;
    let bytes = float_of(allocation::bytes_in_use()?) - float_of(bytes);
    let resident = float(process::resident_bytes()?) - float(resident);
    let named = |what: &str| format!("memory: {what} grown by {} cycles", plain(float(count)));
    Ok(vec![
        Row::new(named("allocated bytes"), bytes, Unit::Bytes).target(Target::AtMost(BYTES)),
        Row::new(named("resident bytes"), resident, Unit::Bytes).target(Target::AtMost(RESIDENT)),
    ])
}

async fn cycles(workload: &Workload, store: &dyn Store, count: u64) -> Result<(), Error> {
    let retention = Retention { finished_runs: Duration::ZERO, ..Retention::default() };
    for number in 1..=count {
        workload.cycle().await?;
        if number % BETWEEN == 0 {
            while store.prune(&retention, 1_000).await?.more {}
        }
    }
    Ok(())
}
