//! Load and attacks over real HTTP: the server is a process of its own, and these are its clients.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "what fails in a test panics"
)]

mod attack;
mod broken;
mod chat;
mod client;
mod crowd;
mod honest;
mod idle;
mod raw;
mod server;
mod slow;
mod turn;

use std::{
    process::ExitCode,
    sync::{PoisonError, RwLock},
    time::Duration,
};

use kortyx_load::raise_descriptors;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::{runtime::Builder, time::timeout};

/// Longer than any of these tests takes on a busy machine, beyond the time that it is told to take.
const LIMIT: Duration = Duration::from_mins(9);

fn main() -> ExitCode {
    raise_descriptors().unwrap();
    let trials: Vec<Trial> =
        [crowd::trials(), idle::trials(), slow::trials(), attack::trials()].into_iter().flatten().collect();
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(2);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The machine, of which there is one.
static MACHINE: RwLock<()> = RwLock::new(());

/// A test that takes all of the machine that it can get, alone.
fn trial<Fut: Future<Output = ()>>(name: &str, test: impl FnOnce() -> Fut + Send + 'static) -> Trial {
    Trial::test(name, move || {
        let _alone = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
        ends_in_time(test())
    })
}

/// A test that waits most of its time, beside others like it.
fn quiet_trial<Fut: Future<Output = ()>>(name: &str, test: impl FnOnce() -> Fut + Send + 'static) -> Trial {
    Trial::test(name, move || {
        let _beside = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
        ends_in_time(test())
    })
}

/// Runs a test on a runtime of its own, for so long at most.
fn ends_in_time(test: impl Future<Output = ()>) -> Result<(), Failed> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let limit = LIMIT + crowd::lasts();
    let ended = runtime.block_on(async { timeout(limit, test).await });
    ended.map_err(|_| format!("it has not ended after {limit:?}").into())
}
