//! A cache that fails in every way that a cache can, over a real one.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use kortyx_redis::RedisCache;
use kortyx_store::{Bytes, PayloadCache, StoreError, StoreErrorKind};

/// What one reading gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// What is there.
    Well,
    /// Nothing: the value was evicted.
    Flushed,
    /// The value with a byte changed.
    Garbage,
    /// The value without its end.
    Cut,
    /// What was put before, of this run or another.
    Older,
    /// An error.
    Failing,
    /// Nothing, for longer than anybody waits.
    Slow,
}

/// Goes through a list of moods, a reading each.
pub(crate) struct Moody {
    inner: RedisCache,
    moods: &'static [Mood],
    readings: AtomicU64,
    /// The last value that was put, and the one before.
    puts: Mutex<(Bytes, Bytes)>,
}

impl Moody {
    pub(crate) fn new(inner: RedisCache, moods: &'static [Mood]) -> Self {
        Self { inner, moods, readings: AtomicU64::new(0), puts: Mutex::default() }
    }
}

#[async_trait]
impl PayloadCache for Moody {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let value = self.inner.get(key).await?;
        if key == "probe" {
            return Ok(value);
        }
        let reading = usize::try_from(self.readings.fetch_add(1, Ordering::SeqCst)).unwrap();
        match self.moods[reading % self.moods.len()] {
            Mood::Well => Ok(value),
            Mood::Flushed => Ok(None),
            Mood::Garbage => Ok(value.map(|bytes| {
                let mut bytes = bytes.to_vec();
                if let Some(first) = bytes.first_mut() {
                    *first ^= 1;
                }
                bytes.into()
            })),
            Mood::Cut => Ok(value.map(|bytes| bytes.slice(..bytes.len() - 1))),
            Mood::Older => Ok(Some(self.puts.lock().unwrap().1.clone())),
            Mood::Failing => Err(StoreError::new(StoreErrorKind::Unavailable, "get", "made to fail")),
            Mood::Slow => std::future::pending().await,
        }
    }

    async fn put(&self, key: &str, value: Bytes, ttl: Duration) -> Result<(), StoreError> {
        if key != "probe" {
            let mut puts = self.puts.lock().unwrap();
            puts.1 = std::mem::replace(&mut puts.0, value.clone());
        }
        self.inner.put(key, value, ttl).await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
