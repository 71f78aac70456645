//! The kill switch.

use std::{
    env::{self, VarError},
    path::Path,
    thread,
    time::Duration,
};

use rustix::process::{Signal, getpid, kill_process};

/// The variable that sets it.
const VARIABLE: &str = "KORTYX_KILL_AT";
/// How often a process that stood still looks whether it may go on.
const LOOK: Duration = Duration::from_millis(5);

/// When the process kills itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kill {
    /// Never.
    Never,
    /// When everything is ready for this durable point, counted from 1.
    Before(u64),
    /// When this durable point is passed and nobody knows.
    After(u64),
    /// When an answer was accepted and nobody knows.
    Accepted,
    /// When everything is ready for this durable point; but it only stands still, and goes on when it is told to.
    Stop(u64),
}

impl Kill {
    /// Reads `KORTYX_KILL_AT`.
    pub(crate) fn from_env() -> Result<Self, String> {
        match env::var(VARIABLE) {
            Err(VarError::NotPresent) => Ok(Self::Never),
            Ok(text) => Self::parse(&text)
                .ok_or_else(|| format!("{VARIABLE} is `{text}`: use before:N, after:N, stop:N or accepted")),
            Err(error) => Err(format!("{VARIABLE}: {error}")),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text.split_once(':') {
            Some(("before", point)) => point.parse().ok().map(Self::Before),
            Some(("after", point)) => point.parse().ok().map(Self::After),
            Some(("stop", point)) => point.parse().ok().map(Self::Stop),
            None if text == "accepted" => Some(Self::Accepted),
            _ => None,
        }
    }
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
