//! A server's process, which does not outlive its handle.

use std::time::Duration;

use tokio::process::Child;

/// A running server. Dropped, it is killed at once, with what it started in its group.
pub(super) struct Process(Child);

impl Process {
    pub(super) fn new(child: Child) -> Self {
        Self(child)
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// Lets it end by itself for this long, since its input is closed; then kills it. Returns when it is gone.
    pub(super) async fn end(mut self, patience: Duration) {
        if tokio::time::timeout(patience, self.0.wait()).await.is_err() {
            self.kill();
            let _ = self.0.wait().await;
        }
    }

    /// A process that was waited for has no id any more, so no other is hit.
    fn kill(&mut self) {
        #[cfg(unix)]
        if let Some(leader) = self.0.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?)) {
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
        let _ = self.0.start_kill();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
