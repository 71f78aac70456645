//! Faults that only real processes meet: killed at every durable point, racing for one question, standing still.
//!
//! The processes share a store, by default an SQLite file. On the lane of the memory store, which no second process can open, these tests are
//! ignored, and one says why.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "what fails in a test panics")]

mod background;
mod chain;
mod crowd;
mod memory;
mod pause;
mod race;
mod reasoning;
mod stale;
mod sweep;
mod world;

use std::{process::ExitCode, time::Duration};

use libtest_mimic::{Arguments, Trial};
use tokio::{runtime::Builder, time::timeout};

/// Longer than any of these tests takes on a busy machine.
const LIMIT: Duration = Duration::from_mins(5);

fn main() -> ExitCode {
    let is_memory_lane = std::env::var("KORTYX_TEST_STORE").is_ok_and(|store| store == "memory");
    let shared = [sweep::trials(), chain::trials(), race::trials(), crowd::trials(), stale::trials(), pause::trials()];
    let shared = shared.into_iter().chain([background::trials(), reasoning::trials()]);
    let shared = shared.flatten().map(|trial| trial.with_ignored_flag(is_memory_lane));
    let trials = memory::trials().into_iter().chain(shared).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A test with a runtime of its own and a time by which it must have ended.
fn trial<Fut: Future<Output = ()>>(name: &str, test: impl FnOnce() -> Fut + Send + 'static) -> Trial {
    Trial::test(name, move || {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let ended = runtime.block_on(async { timeout(LIMIT, test()).await });
        ended.map_err(|_| format!("it has not ended after {LIMIT:?}").into())
    })
}
