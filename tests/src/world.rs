//! A store that several processes share, and the clock that it goes by.

use std::{sync::Arc, time::Duration};

use kortyx::{
    Agent, AgentBuilder, Workflow,
    memory::MemoryStore,
    protocol::Timestamp,
    sqlite::{SqliteConfig, SqliteStore, Synchronous},
    store::{ManualClock, Store},
};
use tempfile::TempDir;

use crate::Process;

/// 2026-01-01T00:00:00Z.
const BEGINNING: i64 = 1_767_225_600_000;

/// A store and its clock, which stands still until it is moved. Clones are the same world.
#[derive(Clone)]
pub struct World {
    clock: Arc<ManualClock>,
    place: Place,
}

#[derive(Clone)]
enum Place {
    /// One store: what a process keeps in memory, others cannot open.
    Memory(Arc<MemoryStore>),
    File(Arc<TempDir>),
}

impl World {
    /// A world on the store that `KORTYX_TEST_STORE` names.
    pub fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(BEGINNING)));
        let place = match std::env::var("KORTYX_TEST_STORE").as_deref() {
            Err(_) | Ok("memory") => Place::Memory(Arc::new(MemoryStore::builder().with_clock(clock.clone()).build())),
            Ok("sqlite") => Place::File(Arc::new(tempfile::tempdir().unwrap())),
            Ok(other) => panic!("KORTYX_TEST_STORE is `{other}`: use `memory` or `sqlite`"),
        };
        Self { clock, place }
    }

    /// Lets time pass for the store.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// The store's clock.
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// The store as one more process opens it. Its tasks belong to the current runtime.
    pub async fn store(&self) -> Arc<dyn Store> {
        let store: Arc<dyn Store> = match &self.place {
            Place::Memory(store) => store.clone(),
            Place::File(directory) => {
                let config = SqliteConfig::new(directory.path().join("kortyx.db"))
                    .synchronous(Synchronous::Normal)
                    .clock(self.clock.clone());
                Arc::new(SqliteStore::open(config).await.unwrap())
            }
        };
        store.setup().await.unwrap();
        store
    }

    /// An agent to be, on a store of its own, without a worker.
    pub async fn builder(&self) -> AgentBuilder {
        Agent::builder().shared_store(self.store().await).without_worker()
    }

    /// A process with an agent, which these settings complete. It runs no worker of its own unless they say so.
    pub async fn process(&self, configure: impl FnOnce(AgentBuilder) -> AgentBuilder + Send + 'static) -> Process {
        Process::start(self.clone(), configure).await
    }

    /// An agent with one workflow, on a store of its own, without a worker.
    pub async fn agent<I, O>(&self, workflow: &Workflow<I, O>) -> Agent {
        self.builder().await.workflow(workflow).build().await.unwrap()
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}
