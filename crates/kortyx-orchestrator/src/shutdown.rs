//! A clean end.

use std::time::Duration;

use tokio::time::timeout;

use crate::Agent;

/// How long leases may take to be given up once the deadline is past.
const RELEASE: Duration = Duration::from_secs(5);

impl Agent {
    /// Ends the agent: it takes nothing new, its worker stops, and runs under way get until the deadline to wait or to end.
    ///
    /// Runs that are still under way then stop where they are, and their leases are given up: they go on elsewhere from
    /// their last durable point. A store that the agent was given stays open. Safe to call twice.
    pub async fn shutdown(&self, deadline: Duration) {
        let inner = &self.0;
        inner.stopping.cancel();
        inner.tasks.close();
        if timeout(deadline, inner.tasks.wait()).await.is_err() {
            inner.killed.cancel();
            if timeout(RELEASE, inner.tasks.wait()).await.is_err() {
                tracing::warn!(runs = self.driven_runs(), "some runs did not stop in time; their leases will run out");
            }
        }
        if inner.owns_store {
            inner.store.close().await;
        }
    }
}
