//! A process that can be killed: an agent whose tasks, and whose store's tasks, live in a runtime of their own.

use std::time::Duration;

use kortyx::Agent;
use tokio::runtime::{Builder, Runtime};

/// An agent that dies without a word.
pub struct Process {
    /// `None` once it is killed.
    runtime: Option<Runtime>,
    agent: Agent,
}

impl Process {
    /// Starts a process; the agent must be built by this future, stores and all.
    pub async fn start(build: impl Future<Output = Agent> + Send + 'static) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let agent = runtime.spawn(build).await.unwrap();
        Self { runtime: Some(runtime), agent }
    }

    /// Its agent. Calls may come from anywhere; the work is done by the process.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Ends it as `kill -9` does: every task stops where it is, and nothing is given up or closed.
    pub async fn kill(mut self) {
        let runtime = self.runtime.take();
        let stop = move || runtime.into_iter().for_each(|runtime| runtime.shutdown_timeout(Duration::from_secs(10)));
        tokio::task::spawn_blocking(stop).await.unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
