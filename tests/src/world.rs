//! A store that several processes share, and the clock that it goes by.

use std::{sync::Arc, time::Duration};

use kortyx::{
    Agent, AgentBuilder, Workflow,
    memory::MemoryStore,
    protocol::Timestamp,
    store::{ManualClock, Store},
};
use tempfile::TempDir;

use crate::{
    Process,
    place::{Place, Time, coded},
};

/// 2026-01-01T00:00:00Z.
const BEGINNING: i64 = 1_767_225_600_000;

/// A store and its clock, which stands still until it is moved (a server's goes on as well). Clones are the same world.
#[derive(Clone)]
pub struct World {
    time: Time,
    storage: Storage,
}

#[derive(Clone)]
enum Storage {
    /// One store: what a process keeps in memory, others cannot open.
    Memory(Arc<dyn Store>),
    /// With the directory that goes with the world.
    Place(Place, #[expect(dead_code, reason = "it is only kept")] Arc<TempDir>),
}

impl World {
    /// A world on the store that `KORTYX_TEST_STORE` names.
    pub fn new() -> Self {
        let time = Time::standing(Timestamp::from_millis(BEGINNING));
        let directory = tempfile::tempdir().unwrap();
        let storage = match Place::fresh(directory.path(), false) {
            None => Storage::Memory(coded(MemoryStore::builder().with_clock(time.clock()).build())),
            Some(place) => Storage::Place(place, Arc::new(directory)),
        };
        Self { time, storage }
    }

    /// Lets time pass for the store.
    pub fn advance(&self, by: Duration) {
        self.time.advance(by);
    }

    /// The store's clock, where it stands still: a server's cannot be stopped or set back.
    pub fn clock(&self) -> Option<&ManualClock> {
        match &self.storage {
            Storage::Memory(_) | Storage::Place(Place::Sqlite { .. }, _) => self.time.manual(),
            Storage::Place(..) => None,
        }
    }

    /// The store as one more process opens it. Its tasks belong to the current runtime.
    pub async fn store(&self) -> Arc<dyn Store> {
        let store = match &self.storage {
            Storage::Memory(store) => store.clone(),
            Storage::Place(place, _) => place.open(&self.time).await.unwrap(),
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
