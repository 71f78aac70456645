//! A process that can be killed: an agent whose tasks, and whose store's tasks, live in a runtime of their own.

use std::{sync::Arc, time::Duration};

use kortyx::{Agent, AgentBuilder};
use tokio::runtime::{Builder, Runtime};

use crate::{Faulty, World};

/// An agent over a store of its own, which dies without a word.
pub struct Process {
    /// `None` once it is killed.
    runtime: Option<Runtime>,
    agent: Agent,
    store: Arc<Faulty>,
}

impl Process {
    pub(crate) async fn start(
        world: World,
        configure: impl FnOnce(AgentBuilder) -> AgentBuilder + Send + 'static,
    ) -> Self {
        let start = move || {
            let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let (agent, store) = runtime.block_on(async {
                let store = Faulty::over(world.store().await);
                let builder = Agent::builder().shared_store(store.clone()).without_worker();
                (configure(builder).build().await.unwrap(), store)
            });
            Self { runtime: Some(runtime), agent, store }
        };
        tokio::task::spawn_blocking(start).await.unwrap()
    }

    /// Its agent. Calls may come from anywhere; the work is done by the process.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Its store.
    pub fn store(&self) -> &Faulty {
        &self.store
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
