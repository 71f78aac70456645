//! Values that may be lost, for a cache beside a store.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use kortyx_store::{PayloadCache, StoreError};

use crate::{RedisConfig, client::Values, reply::Reply};

/// A cache in Redis or Valkey, on one server, behind Sentinel or in a Cluster.
///
/// It needs no server to start: until there was one, calls wait for it; afterwards, whenever there is none, they fail at once. Keys start with the
/// prefix of the configuration and `:cache:`, each expires, and none is needed: any eviction policy will do.
///
/// ```no_run
/// # async fn example() -> Result<(), kortyx_store::StoreError> {
/// use std::time::Duration;
/// use kortyx_redis::{RedisCache, RedisConfig};
/// use kortyx_store::PayloadCache;
///
/// let cache = RedisCache::new(&RedisConfig::parse("redis://localhost")?)?;
/// cache.put("key", "value".into(), Duration::from_secs(60)).await?;
/// assert_eq!(cache.get("key").await?, Some("value".into()));
/// # Ok(())
/// # }
/// ```
pub struct RedisCache {
    values: Values,
    config: RedisConfig,
}

impl RedisCache {
    /// Begins to connect, in the current tokio runtime. Fails when the driver does not understand the address.
    pub fn new(config: &RedisConfig) -> Result<Self, StoreError> {
        Ok(Self { values: Values::new(config)?, config: config.clone() })
    }

    fn key(&self, key: &str) -> Bytes {
        format!("{}:cache:{key}", self.config.prefix).into()
    }
}

#[async_trait]
impl PayloadCache for RedisCache {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        const OPERATION: &str = "read the cache";
        match self.values.command(OPERATION, "GET", vec![self.key(key)]).await? {
            Reply::Nil => Ok(None),
            reply => reply.bytes().map(Some).map_err(|damage| damage.during(OPERATION)),
        }
    }

    async fn put(&self, key: &str, value: Bytes, ttl: Duration) -> Result<(), StoreError> {
        let millis = ttl.as_millis().max(1).to_string();
        let args = vec![self.key(key), value, Bytes::from_static(b"PX"), millis.into()];
        self.values.command("fill the cache", "SET", args).await.map(drop)
    }

    async fn close(&self) {
        self.values.close().await;
    }
}

impl fmt::Debug for RedisCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisCache").field("config", &self.config).finish_non_exhaustive()
    }
}
