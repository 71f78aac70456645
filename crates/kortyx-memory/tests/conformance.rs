//! The store keeps every promise of the port.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use kortyx_memory::MemoryStore;
use kortyx_store::{
    Clock as _, ManualClock, Store, StoreError, SystemClock,
    conformance::{Backend, run_all},
};

struct Memory(Arc<ManualClock>);

impl Memory {
    fn new_store(&self) -> Arc<dyn Store> {
        Arc::new(MemoryStore::builder().with_clock(self.0.clone()).build())
    }
}

#[async_trait]
impl Backend for Memory {
    async fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        let store = self.new_store();
        store.setup().await?;
        Ok(store)
    }

    async fn unprepared(&self, count: usize) -> Result<Vec<Arc<dyn Store>>, StoreError> {
        Ok(vec![self.new_store(); count])
    }

    async fn reopen(&self) -> Option<Arc<dyn Store>> {
        None
    }

    fn advance(&self, by: Duration) {
        self.0.advance(by);
    }

    async fn make_schema_newer(&self) -> bool {
        false
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_keeps_every_promise() {
    let report = run_all(&Memory(Arc::new(ManualClock::at(SystemClock.now())))).await;
    println!("{report}");
    assert!(report.is_success(), "{report}");
}
