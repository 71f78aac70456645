//! The kill switch.

use std::{path::Path, thread, time::Duration};

use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};

/// How often a process that stood still looks whether it may go on.
const LOOK: Duration = Duration::from_millis(5);

/// When a process kills itself. Durable points are counted from 1 for each process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Kill {
    /// Never.
    #[default]
    Never,
    /// When everything is ready for this durable point.
    Before(u64),
    /// When this durable point is passed and nobody knows.
    After(u64),
    /// When an answer was accepted and nobody knows.
    Accepted,
    /// When everything is ready for this durable point; but it only stands still, and goes on when it is told to.
    Stop(u64),
}

/// Ends this process as `kill -9` does.
pub(crate) async fn die() -> ! {
    if let Err(error) = kill_process(getpid(), Signal::KILL) {
        eprintln!("cannot kill myself: {error}");
        std::process::abort();
    }
    loop {
        std::future::pending::<()>().await;
    }
}

/// Stops this process until somebody sends it `SIGCONT` and this file is there.
pub(crate) fn stand_still(until: &Path) {
    if let Err(error) = kill_process(getpid(), Signal::STOP) {
        eprintln!("cannot stop myself: {error}");
    }
    // The signal reaches one thread after the other: nothing must begin meanwhile.
    while !until.exists() {
        thread::sleep(LOOK);
    }
}
