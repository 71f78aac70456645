//! What runs that wait on a server keep in this process: nothing.

use std::sync::Arc;

use kortyx_store::Store;

use crate::{
    allocation,
    crowd::{RUNS, at_once},
    error::Error,
    number::{Unit, float, float_of, plain},
    options::Options,
    process,
    row::{Row, Target},
    workload::{Size, Workload},
};

/// A byte for each run would be less than this.
const BYTES: f64 = 64.0 * 1024.0;
/// The kernel counts memory by pages, and the allocator keeps some of what a burst took.
const RESIDENT: f64 = 1024.0 * 1024.0;

pub(super) async fn rows(name: &str, store: &Arc<dyn Store>, options: &Options) -> Result<Vec<Row>, Error> {
    let each = options.size(157, 32);
    let mut rows = Vec::new();
    for size in Size::ALL {
        let workload = Workload::sized(size, store.clone()).await?;
        pause(&workload, each / 4).await?;
        let (bytes, resident) = (allocation::bytes_in_use()?, process::resident_bytes()?);
        pause(&workload, each).await?;
        let bytes = float_of(allocation::bytes_in_use()?) - float_of(bytes);
        let resident = float(process::resident_bytes()?) - float(resident);
        let count = plain(float(each * RUNS));
        let named = |what: &str| format!("{name}: {what} grown by {count} paused runs, {}", size.name());
        rows.push(Row::new(named("allocated bytes"), bytes, Unit::Bytes).target(Target::AtMost(BYTES)));
        rows.push(Row::new(named("resident bytes"), resident, Unit::Bytes).target(Target::AtMost(RESIDENT)));
    }
    Ok(rows)
}

/// Pauses so many runs in each of many loops.
async fn pause(workload: &Workload, each: u64) -> Result<(), Error> {
    at_once(|_| {
        let workload = workload.clone();
        async move {
            for _ in 0..each {
                workload.pause().await?;
            }
            Ok(())
        }
    })
    .await
    .map(drop)
}
