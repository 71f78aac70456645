//! The storage port's conformance suite, under the codec.

#![expect(clippy::unwrap_used, reason = "what fails in a test panics")]

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use kortyx_codec::{CodecStore, Envelope, Key, Keyring, PayloadCodec};
use kortyx_memory::MemoryStore;
use kortyx_protocol::Timestamp;
use kortyx_store::{ManualClock, Store, StoreError, conformance};

fn encrypting() -> Envelope {
    Envelope::new().encrypt(Keyring::new("test", Key::new(&[7; 32])).unwrap())
}

/// Memory under a codec.
struct Coded {
    clock: Arc<ManualClock>,
    codec: Arc<dyn PayloadCodec>,
}

impl Coded {
    fn new(codec: impl PayloadCodec) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_767_225_600_000)));
        Self { clock, codec: Arc::new(codec) }
    }
}

#[async_trait]
impl conformance::Backend for Coded {
    async fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        let inner = Arc::new(MemoryStore::builder().with_clock(self.clock.clone()).build());
        Ok(Arc::new(CodecStore::over(inner, self.codec.clone())))
    }

    async fn unprepared(&self, count: usize) -> Result<Vec<Arc<dyn Store>>, StoreError> {
        Ok(vec![self.store().await?; count])
    }

    async fn reopen(&self) -> Option<Arc<dyn Store>> {
        None
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    async fn make_schema_newer(&self) -> bool {
        false
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encrypting_store_keeps_every_promise() {
    let report = conformance::run_all(&Coded::new(encrypting().compress_above(64))).await;
    println!("{report}");
    assert!(report.is_success(), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressing_store_keeps_every_promise() {
    let report = conformance::run_all(&Coded::new(Envelope::new().compress_above(0))).await;
    println!("{report}");
    assert!(report.is_success(), "{report}");
}
