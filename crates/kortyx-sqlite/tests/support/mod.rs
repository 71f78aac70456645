//! What the tests of this crate share.

use std::path::Path;

use sqlx::{ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};

/// A connection beside the store's, to see and to spoil what it keeps.
pub(crate) async fn connect(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).connect().await.unwrap()
}
