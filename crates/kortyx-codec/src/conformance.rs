//! The storage port's conformance suite under a codec, for any adapter.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use kortyx_store::{Store, StoreError, conformance::Backend};

use crate::{CodecStore, Envelope, Key, Keyring, PayloadCodec};

/// A kind of store under test, each of whose stores passes its payloads through a codec.
///
/// ```
/// use kortyx_codec::conformance::Coded;
/// use kortyx_store::conformance::{Backend, run_all};
///
/// // #[tokio::test(flavor = "multi_thread")]
/// async fn the_store_keeps_every_promise_under_a_codec(backend: impl Backend) {
///     let report = run_all(&Coded::encrypting(backend)).await;
///     assert!(report.is_success(), "{report}");
/// }
/// ```
pub struct Coded<B> {
    backend: B,
    codec: Arc<dyn PayloadCodec>,
}

impl<B: Backend> Coded<B> {
    /// Under this codec.
    pub fn new(backend: B, codec: impl PayloadCodec) -> Self {
        Self { backend, codec: Arc::new(codec) }
    }

    /// Under one that compresses what is longer than 64 bytes and encrypts everything, with a key that is no secret.
    pub fn encrypting(backend: B) -> Self {
        let codec = Envelope::new().compress_above(64);
        match Keyring::new("test", Key::new(&[7; 32])) {
            Ok(keyring) => Self::new(backend, codec.encrypt(keyring)),
            // `test` is a key id.
            Err(_) => Self::new(backend, codec),
        }
    }

    fn coded(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(CodecStore::over(store, self.codec.clone()))
    }
}

#[async_trait]
impl<B: Backend> Backend for Coded<B> {
    async fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(self.coded(self.backend.store().await?))
    }

    async fn unprepared(&self, count: usize) -> Result<Vec<Arc<dyn Store>>, StoreError> {
        let stores = self.backend.unprepared(count).await?;
        Ok(stores.into_iter().map(|store| self.coded(store)).collect())
    }

    async fn reopen(&self) -> Option<Arc<dyn Store>> {
        Some(self.coded(self.backend.reopen().await?))
    }

    fn advance(&self, by: Duration) {
        self.backend.advance(by);
    }

    async fn make_schema_newer(&self) -> bool {
        self.backend.make_schema_newer().await
    }
}
