//! Faults that take their time, all at once: processes killed at random for two minutes on every store, a thousand questions raced for, servers
//! that crash, stand still and lose connections.
//!
//! Tests on servers that others use as well take those of the environment (`KORTYX_TEST_REDIS_URL` and so on); tests that stop a server
//! start one of their own.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails in a test panics")]

mod cases;
mod cluster;
mod killed;
mod outages;
mod raced;

use std::{path::Path, process::ExitCode, sync::Arc, time::Duration};

use kortyx_testkit::Kit;
use kortyx_tests::{
    driven::{Driven, Flow},
    place::Place,
};
use libtest_mimic::{Arguments, Trial};
use tokio::{runtime::Builder, time::timeout};

/// Longer than any of these tests takes on a busy machine.
const LIMIT: Duration = Duration::from_mins(13);
/// Every store that processes can share, as `KORTYX_TEST_STORE` names them.
const STORES: [&str; 5] = ["sqlite", "redis", "redis-cluster", "postgres", "postgres-pgbouncer"];

fn main() -> ExitCode {
    let trials: Vec<Trial> = [killed::trials(), raced::trials(), outages::trials(), cluster::trials(), cases::trials()]
        .into_iter()
        .flatten()
        .collect();
    let mut arguments = Arguments::from_args();
    // They wait more than they work.
    arguments.test_threads.get_or_insert(trials.len());
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A test with a runtime of its own and a time by which it must have ended.
fn trial<Fut: Future<Output = ()>>(name: impl Into<String>, test: impl FnOnce() -> Fut + Send + 'static) -> Trial {
    Trial::test(name, move || {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let ended = runtime.block_on(async { timeout(LIMIT, test()).await });
        ended.map_err(|_| format!("it has not ended after {LIMIT:?}").into())
    })
}

/// The workflows on a store of the environment. Processes die here, the system does not: a file need not survive that.
fn kit_on(store: &'static str, flow: Flow) -> Kit {
    kit(flow, move |directory| Place::on(store, directory, false).unwrap())
}

/// The workflows, in places that this makes.
fn kit(flow: Flow, place: impl Fn(&Path) -> Place + Send + Sync + 'static) -> Kit {
    Kit::new(Arc::new(Driven::at(place).of(flow))).unwrap().program(env!("CARGO_BIN_EXE_driver"))
}
