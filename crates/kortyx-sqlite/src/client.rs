//! Connections: how they are set up, and how statements reach them.

use std::{fs, io, path::Path, sync::Arc, thread, time::Duration, time::Instant};

use bytes::Bytes;
use kortyx_protocol::Timestamp;
use kortyx_store::StoreErrorKind;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Sqlite, SqliteConnection,
    query::Query,
    sqlite::{SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqliteRow, SqliteSynchronous},
};

use crate::{SqliteConfig, Synchronous, error::Failure};

/// Opens the connection that writes; creates the file and its directories when they do not exist.
///
/// Blocks for at most the configured patience: several processes that open a new file at once switch it to the
/// write-ahead log one after another.
pub(crate) async fn writer(config: &SqliteConfig) -> Result<SqliteConnection, Failure> {
    prepare_file(&config.path)?;
    let options = options(config)?.journal_mode(SqliteJournalMode::Wal);
    let deadline = Instant::now() + config.busy_timeout;
    loop {
        let failure = match options.connect().await {
            Ok(connection) => return Ok(connection),
            Err(error) => Failure::from_driver(error, config.busy_timeout),
        };
        if failure.kind != StoreErrorKind::Unavailable || Instant::now() >= deadline {
            return Err(failure);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Opens a connection that reads.
pub(crate) async fn reader(config: &SqliteConfig) -> Result<SqliteConnection, Failure> {
    let options = options(config)?.pragma("query_only", "ON");
    options.connect().await.map_err(|error| Failure::from_driver(error, config.busy_timeout))
}

fn options(config: &SqliteConfig) -> Result<SqliteConnectOptions, Failure> {
    // An absolute path: it survives a change of directory, and is never taken for a `file:` address.
    let path = std::path::absolute(&config.path).map_err(|error| file_failure(&config.path, &error))?;
    let synchronous = match config.synchronous {
        Synchronous::Full => SqliteSynchronous::Full,
        Synchronous::Normal => SqliteSynchronous::Normal,
    };
    Ok(SqliteConnectOptions::new()
        .filename(path)
        .synchronous(synchronous)
        .busy_timeout(config.busy_timeout)
        .foreign_keys(false)
        .pragma("journal_size_limit", "67108864")
        .pragma("cache_size", "-16384")
        .statement_cache_capacity(128)
        .row_buffer_size(512)
        .thread_name(|id| format!("kortyx-sqlite-{id}"))
        .disable_statement_logging())
}

/// Creates the file for its owner alone; SQLite gives the files beside it the same mode.
fn prepare_file(path: &Path) -> Result<(), Failure> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        fs::create_dir_all(directory).map_err(|error| file_failure(directory, &error))?;
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(file_failure(path, &error)),
    }
}

fn file_failure(path: &Path, error: &io::Error) -> Failure {
    Failure::new(StoreErrorKind::Unavailable, format!("{} cannot be created: {error}", path.display()))
}

/// A value to bind.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(Arc<str>),
    Blob(Bytes),
}

/// Runs one or several statements that are known when the program is built, and collects every row.
pub(crate) async fn fetch(
    connection: &mut SqliteConnection,
    sql: &'static str,
    values: Vec<Value>,
) -> Result<Vec<SqliteRow>, sqlx::Error> {
    bind(sqlx::query(sql), values).fetch_all(connection).await
}

/// Runs statements that were put together from such ones.
pub(crate) async fn fetch_composed(
    connection: &mut SqliteConnection,
    sql: Arc<str>,
    values: Vec<Value>,
) -> Result<Vec<SqliteRow>, sqlx::Error> {
    bind(sqlx::query(AssertSqlSafe(sql)), values).fetch_all(connection).await
}

fn bind(query: Query<'_, Sqlite, SqliteArguments>, values: Vec<Value>) -> Query<'_, Sqlite, SqliteArguments> {
    values.into_iter().fold(query, |query, value| match value {
        Value::Null => query.bind(None::<i64>),
        Value::Int(value) => query.bind(value),
        Value::Text(value) => query.bind(value),
        Value::Blob(value) => query.bind(Vec::from(value)),
    })
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Int(value.into())
    }
}

impl From<Timestamp> for Value {
    fn from(value: Timestamp) -> Self {
        Self::Int(value.as_millis())
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value.into())
    }
}

impl From<&String> for Value {
    fn from(value: &String) -> Self {
        Self::Text(value.as_str().into())
    }
}

impl From<&Arc<str>> for Value {
    fn from(value: &Arc<str>) -> Self {
        Self::Text(value.clone())
    }
}

impl From<&Bytes> for Value {
    fn from(value: &Bytes) -> Self {
        Self::Blob(value.clone())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The values of a statement, in order.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::client::Value::from($value)),*] };
}
pub(crate) use values;
