//! The storage port's conformance suite, on one server, on one server used slot by slot, and on a Cluster.

#![expect(clippy::unwrap_used, reason = "what fails in a test panics")]

#[expect(dead_code, reason = "the suite makes its own runs")]
mod support;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use fred::{
    clients::Client,
    interfaces::ClientLike,
    types::{Builder, ClusterHash, CustomCommand, Value, config::Config},
};
use kortyx_codec::conformance::Coded;
use kortyx_protocol::SessionId;
use kortyx_redis::{RedisConfig, RedisStore};
use kortyx_store::{Store, StoreError, conformance};
use support::{Cluster, Server};

/// Fresh prefixes on a server.
struct Prefixes {
    url: String,
    by_slot: bool,
    clock: Arc<AtomicI64>,
    last: Mutex<u32>,
}

impl Prefixes {
    fn new(url: String) -> Self {
        Self { url, by_slot: false, clock: Arc::default(), last: Mutex::new(0) }
    }

    fn next(&self) {
        *self.last.lock().unwrap() += 1;
    }

    fn prefix(&self) -> String {
        format!("test-{}-{}", std::process::id(), self.last.lock().unwrap())
    }

    fn config(&self) -> RedisConfig {
        let config = RedisConfig::parse(&self.url).unwrap().prefix(self.prefix()).unwrap();
        // Replies of many megabytes take their time on a busy machine.
        let config = config.patience(Duration::from_secs(30)).attempt(Duration::from_secs(30));
        config.by_slot(self.by_slot).clock_offset(self.clock.clone())
    }

    async fn open(&self) -> Result<RedisStore, StoreError> {
        RedisStore::connect(self.config()).await
    }
}

#[async_trait]
impl conformance::Backend for Prefixes {
    async fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        self.next();
        let store = self.open().await?;
        store.setup().await?;
        Ok(Arc::new(store))
    }

    async fn unprepared(&self, count: usize) -> Result<Vec<Arc<dyn Store>>, StoreError> {
        self.next();
        let mut stores: Vec<Arc<dyn Store>> = Vec::new();
        for _ in 0..count {
            stores.push(Arc::new(self.open().await?));
        }
        Ok(stores)
    }

    async fn reopen(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(self.open().await.unwrap()))
    }

    fn advance(&self, by: Duration) {
        let millis = i64::try_from(by.as_millis()).unwrap();
        self.clock.fetch_add(millis, Ordering::Relaxed);
    }

    async fn make_schema_newer(&self) -> bool {
        let key = format!("{}:schema", self.prefix());
        raw(&self.url, "SET", vec![key, "999".to_owned()]).await;
        true
    }
}

async fn passes(backend: &dyn conformance::Backend) {
    let report = conformance::run_all(backend).await;
    assert!(report.is_success(), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_server_keeps_every_promise() {
    if let Ok(url) = std::env::var("KORTYX_TEST_REDIS_URL") {
        return passes(&Prefixes::new(url)).await;
    }
    let server = Server::start();
    passes(&Prefixes::new(server.url())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_server_that_is_used_slot_by_slot_keeps_every_promise() {
    let server = Server::start();
    passes(&Prefixes { by_slot: true, ..Prefixes::new(server.url()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_server_under_a_codec_keeps_every_promise() {
    let server = Server::start();
    passes(&Coded::encrypting(Prefixes::new(server.url()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b149_a_cluster_keeps_every_promise() {
    if let Ok(url) = std::env::var("KORTYX_TEST_REDIS_CLUSTER_URL") {
        return passes(&Prefixes::new(url)).await;
    }
    let cluster = Cluster::start();
    passes(&Prefixes::new(cluster.url())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_codec_passes_on_where_sessions_live() {
    let server = Server::start();
    let coded = Coded::encrypting(Prefixes { by_slot: true, ..Prefixes::new(server.url()) });
    let store = conformance::Backend::store(&coded).await.unwrap();
    let session_id = SessionId::new("session-1").unwrap();
    assert!(store.placement(&session_id).is_some());
    let without_slots = conformance::Backend::store(&Coded::encrypting(Prefixes::new(server.url()))).await.unwrap();
    assert_eq!(without_slots.placement(&session_id), None);
}

/// Runs a command wherever its key is.
async fn raw(url: &str, command: &'static str, args: Vec<String>) -> Value {
    let client: Client = Builder::from_config(Config::from_url(url).unwrap()).build().unwrap();
    client.init().await.unwrap();
    let command = CustomCommand::new_static(command, ClusterHash::FirstKey, false);
    let value = client.custom(command, args).await.unwrap();
    client.quit().await.unwrap();
    value
}
