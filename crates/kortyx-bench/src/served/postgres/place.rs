//! A place in a Postgres that nobody else uses.

use std::{process, sync::Arc};

use kortyx_postgres::{PostgresConfig, PostgresStore};
use kortyx_store::Store;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection, postgres::PgConnectOptions};

use crate::{error::Error, served::Server};

/// Connections of the store, and of the raw loop.
pub(super) const CONNECTIONS: u32 = 10;

/// A schema of this process.
pub(crate) struct Place {
    pub(crate) url: String,
    schema: String,
}

impl Place {
    pub(crate) fn new(name: &str) -> Result<Self, Error> {
        Ok(Self { url: Server::Postgres.url()?, schema: format!("bench_{name}_{}", process::id()) })
    }

    /// Opens the store.
    pub(crate) async fn store(&self, url: &str) -> Result<Arc<dyn Store>, Error> {
        let config = PostgresConfig::parse(url)?.schema(&self.schema)?.pool_size(CONNECTIONS);
        let store = PostgresStore::open(config).await?;
        store.setup().await?;
        Ok(Arc::new(store))
    }

    /// Connects without the store.
    pub(crate) async fn connect(&self) -> Result<PgConnection, Error> {
        let options: PgConnectOptions = self.url.parse()?;
        Ok(options.disable_statement_logging().connect().await?)
    }

    /// A text of SQL with the name of this schema.
    pub(crate) fn render(&self, sql: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(sql.replace("bench.", &format!("{}.", self.schema)))
    }

    /// Runs statements.
    pub(crate) async fn execute(&self, sql: &str) -> Result<(), Error> {
        let mut connection = self.connect().await?;
        sqlx::raw_sql(self.render(sql)).execute(&mut connection).await?;
        Ok(connection.close().await?)
    }

    /// Removes everything of this place.
    pub(crate) async fn clear(&self) -> Result<(), Error> {
        self.execute(&format!("SET client_min_messages = warning; DROP SCHEMA {} CASCADE", self.schema)).await
    }
}
