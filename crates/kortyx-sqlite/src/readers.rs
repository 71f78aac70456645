//! The connections that read: opened when needed, used again, dropped when a reader is.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kortyx_store::StoreErrorKind;
use sqlx::{Connection, SqliteConnection, sqlite::SqliteRow};
use tokio::sync::Semaphore;

use crate::{SqliteConfig, client, error::Failure};

/// See the [module](self).
pub(crate) struct Readers {
    config: Arc<SqliteConfig>,
    /// One permit for each connection that may be in use. Closed with the store.
    permits: Semaphore,
    idle: Mutex<Vec<SqliteConnection>>,
}

impl Readers {
    pub(crate) fn new(config: Arc<SqliteConfig>) -> Self {
        let permits = Semaphore::new(config.readers as usize);
        Self { config, permits, idle: Mutex::default() }
    }

    /// Reads over a connection of its own. One whose reading fails, or is given up, is not used again.
    pub(crate) async fn read(
        &self,
        reading: impl AsyncFnOnce(&mut SqliteConnection) -> Result<Vec<SqliteRow>, sqlx::Error>,
    ) -> Result<Vec<SqliteRow>, Failure> {
        let _permit = self.permits.acquire().await.map_err(|_| closed())?;
        let idle = self.idle().pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => client::reader(&self.config).await?,
        };
        let rows = reading(&mut connection).await;
        let rows = rows.map_err(|error| Failure::from_driver(error, self.config.busy_timeout))?;
        self.idle().push(connection);
        Ok(rows)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.permits.is_closed()
    }

    /// Lets those who read finish, and closes the connections.
    pub(crate) async fn close(&self) {
        let all = self.permits.acquire_many(self.config.readers).await;
        self.permits.close();
        drop(all);
        let idle = std::mem::take(&mut *self.idle());
        for connection in idle {
            connection.close().await.unwrap_or_else(|error| tracing::warn!(%error, "closing the database failed"));
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<SqliteConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed() -> Failure {
    Failure::new(StoreErrorKind::Closed, "the store was closed")
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers").finish_non_exhaustive()
    }
}
