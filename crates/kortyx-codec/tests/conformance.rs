//! The storage port's conformance suite, under the codec.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use kortyx_codec::{Envelope, conformance::Coded};
use kortyx_memory::MemoryStore;
use kortyx_protocol::Timestamp;
use kortyx_store::{
    ManualClock, Store, StoreError,
    conformance::{Backend, run_all},
};

/// Memory on a clock that stands still.
struct Memory(Arc<ManualClock>);

impl Memory {
    fn new() -> Self {
        Self(Arc::new(ManualClock::at(Timestamp::from_millis(1_767_225_600_000))))
    }
}

#[async_trait]
impl Backend for Memory {
    async fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(MemoryStore::builder().with_clock(self.0.clone()).build()))
    }

    async fn unprepared(&self, count: usize) -> Result<Vec<Arc<dyn Store>>, StoreError> {
        Ok(vec![self.store().await?; count])
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
async fn an_encrypting_store_keeps_every_promise() {
    let report = run_all(&Coded::encrypting(Memory::new())).await;
    println!("{report}");
    assert!(report.is_success(), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressing_store_keeps_every_promise() {
    let report = run_all(&Coded::new(Memory::new(), Envelope::new().compress_above(0))).await;
    println!("{report}");
    assert!(report.is_success(), "{report}");
}
