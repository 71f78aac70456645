//! A place in a Redis that nobody else uses.

use std::{process, sync::Arc};

use fred::{
    clients::Client,
    interfaces::{ClientLike as _, KeysInterface as _},
    types::{ClusterHash, CustomCommand, Key, config::Config},
};
use kortyx_redis::{RedisConfig, RedisStore};
use kortyx_store::Store;

use crate::{error::Error, served::server::Server};

/// Keys that are removed together.
const AT_ONCE: &str = "2000";

/// Keys under a prefix of this process.
pub(crate) struct Place {
    pub(super) url: String,
    pub(super) prefix: String,
}

impl Place {
    pub(crate) fn new(server: Server) -> Result<Self, Error> {
        Ok(Self { url: server.url()?, prefix: format!("bench-{}", process::id()) })
    }

    /// Where the server is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Opens the store, over one connection.
    pub(crate) async fn store(&self, url: &str) -> Result<Arc<dyn Store>, Error> {
        self.store_under(url, "").await
    }

    /// Opens a store beside it.
    pub(crate) async fn store_under(&self, url: &str, suffix: &str) -> Result<Arc<dyn Store>, Error> {
        let config = RedisConfig::parse(url)?.prefix(format!("{}{suffix}", self.prefix))?.connections(1);
        let store = RedisStore::connect(config).await?;
        store.setup().await?;
        Ok(Arc::new(store))
    }

    /// Connects without the store.
    pub(super) async fn connect(&self) -> Result<Client, Error> {
        let client = Client::new(Config::from_url(&self.url)?, None, None, None);
        client.init().await?;
        Ok(client)
    }

    /// Removes everything of this place.
    pub(crate) async fn clear(&self) -> Result<(), Error> {
        let client = self.connect().await?;
        let mut cursor = "0".to_owned();
        loop {
            let scan = CustomCommand::new_static("SCAN", ClusterHash::FirstKey, false);
            let wanted = format!("*{}*", self.prefix);
            let arguments = vec![cursor.as_str(), "MATCH", wanted.as_str(), "COUNT", AT_ONCE];
            let (next, keys): (String, Vec<Key>) = client.custom(scan, arguments).await?;
            if !keys.is_empty() {
                client.unlink::<(), _>(keys).await?;
            }
            if next == "0" {
                break;
            }
            cursor = next;
        }
        Ok(client.quit().await?)
    }
}
