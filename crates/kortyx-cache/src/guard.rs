//! The cache behind its guard: bounded, checked, and left alone while it fails.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use bytes::Bytes;
use kortyx_protocol::RunId;
use kortyx_store::{PayloadCache, Revision, SnapshotCache, StoreError};
use sha2::{Digest as _, Sha256};
use tokio::{sync::Semaphore, time::timeout};

use crate::{
    CacheConfig, CacheCounts,
    breaker::{Breaker, State},
    counts::{Counters, count},
};

/// The unit in which bytes on their way are counted.
const UNIT: usize = 1024;

/// A cache that never fails, and takes little time.
pub(crate) struct Guard<C>(Arc<Inner<C>>);

struct Inner<C> {
    cache: C,
    config: CacheConfig,
    breaker: Breaker,
    room: Arc<Semaphore>,
    counters: Counters,
    is_closed: AtomicBool,
}

impl<C: PayloadCache> Guard<C> {
    pub(crate) fn new(cache: C, config: CacheConfig) -> Self {
        Self(Arc::new(Inner {
            cache,
            breaker: Breaker::new(config.bypass),
            room: Arc::new(Semaphore::new(config.outstanding / UNIT)),
            config,
            counters: Counters::default(),
            is_closed: AtomicBool::new(false),
        }))
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        self.0.counters.read()
    }

    /// Takes nothing any more. What is on its way may be lost.
    pub(crate) async fn close(&self) {
        self.0.is_closed.store(true, Ordering::Relaxed);
        self.0.cache.close().await;
    }

    /// Whether the cache may be asked; finds out whether it works again when it is time to.
    fn is_well(&self) -> bool {
        if self.0.is_closed.load(Ordering::Relaxed) {
            return false;
        }
        match self.0.breaker.state() {
            State::Asked => true,
            State::Bypassed => false,
            State::Probed => {
                let inner = Arc::clone(&self.0);
                tokio::spawn(async move { inner.probe().await });
                false
            }
        }
    }
}

impl<C: PayloadCache> Inner<C> {
    /// Puts a value and reads it back.
    async fn probe(&self) {
        let probing = async {
            self.cache.put("probe", Bytes::from_static(b"well"), self.config.ttl).await?;
            self.cache.get("probe").await
        };
        let is_well = matches!(timeout(self.config.put_timeout(), probing).await, Ok(Ok(Some(_))));
        match self.breaker.probed(is_well) {
            None => tracing::info!("the cache of snapshots works again"),
            Some(wait) => tracing::debug!(?wait, "the cache of snapshots still fails"),
        }
    }

    async fn put(&self, key: &str, snapshot: Bytes) {
        match timeout(self.config.put_timeout(), self.cache.put(key, snapshot, self.config.ttl)).await {
            Ok(Ok(())) => {
                self.breaker.succeeded();
                count(&self.counters.kept);
            }
            failure => {
                count(&self.counters.dropped);
                self.failed(failure.ok().and_then(Result::err).as_ref());
            }
        }
    }

    fn failed(&self, error: Option<&StoreError>) {
        if let Some(wait) = self.breaker.failed() {
            count(&self.counters.bypasses);
            let reason = error.map_or_else(|| "it is slow".to_owned(), ToString::to_string);
            tracing::warn!(reason, ?wait, "the cache of snapshots is left alone; they are read from the store");
        }
    }
}

fn digest(bytes: &[u8]) -> Revision {
    Revision::new(Sha256::digest(bytes).into())
}

fn key(run_id: &RunId, revision: &Revision) -> String {
    format!("{}:{revision}", run_id.as_str())
}

#[async_trait]
impl<C: PayloadCache> SnapshotCache for Guard<C> {
    fn revision(&self, snapshot: &Bytes) -> Option<Revision> {
        let CacheConfig { above, largest, .. } = self.0.config;
        let is_wanted = snapshot.len() > above && snapshot.len() <= largest && self.is_well();
        is_wanted.then(|| digest(snapshot))
    }

    fn keep(&self, run_id: &RunId, revision: Revision, snapshot: Bytes) {
        let units = u32::try_from(snapshot.len() / UNIT + 1).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&self.0.room).try_acquire_many_owned(units) else {
            count(&self.0.counters.dropped);
            tracing::debug!(run = run_id.as_str(), "a snapshot is not cached: too much is on its way");
            return;
        };
        let (inner, key) = (Arc::clone(&self.0), key(run_id, &revision));
        tokio::spawn(async move {
            inner.put(&key, snapshot).await;
            drop(room);
        });
    }

    fn is_asked(&self) -> bool {
        self.is_well()
    }

    async fn find(&self, run_id: &RunId, revision: &Revision) -> Option<Bytes> {
        let inner = &*self.0;
        let (counters, run) = (&inner.counters, run_id.as_str());
        let found = match timeout(inner.config.timeout, inner.cache.get(&key(run_id, revision))).await {
            Ok(Ok(found)) => found,
            failure => {
                count(&counters.failures);
                inner.failed(failure.ok().and_then(Result::err).as_ref());
                return None;
            }
        };
        inner.breaker.succeeded();
        let Some(snapshot) = found else {
            count(&counters.misses);
            tracing::debug!(run, "a snapshot is not in the cache");
            return None;
        };
        if digest(&snapshot) != *revision {
            count(&counters.corrupt);
            tracing::warn!(run, "the cache gives another snapshot than was stored: it is read from the store");
            return None;
        }
        count(&counters.hits);
        tracing::debug!(run, "a snapshot comes from the cache");
        Some(snapshot)
    }
}
