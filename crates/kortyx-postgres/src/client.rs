//! The server: how connections are made, how calls reach it, and when they are tried again. Nothing else names the driver.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use kortyx_store::StoreErrorKind;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, PgConnection, Row as _, ValueRef as _,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions, PgRow},
};

use crate::{
    PostgresConfig,
    error::{Effect, Failure, classify},
    pool::{Denied, Pool, Slot},
    request::Request,
    retry::retrying,
    statements::Statements,
};

/// A row of a reply.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) tag: String,
    pub(crate) data: Option<String>,
    pub(crate) payloads: [Option<Bytes>; 3],
}

/// Connections to one server, and the statements that go over them.
pub(crate) struct Client {
    pub(crate) config: Arc<PostgresConfig>,
    pool: Pool<PgConnection>,
    statements: Statements,
}

/// Whether the driver understands an address.
pub(crate) fn parses(address: &str) -> bool {
    address.parse::<PgConnectOptions>().is_ok()
}

impl Client {
    pub(crate) fn new(config: Arc<PostgresConfig>) -> Self {
        Self {
            pool: Pool::new(config.pool_size, Duration::from_mins(10), Duration::from_mins(30)),
            statements: Statements::new(&config),
            config,
        }
    }

    /// Makes a call: until it succeeds, is refused, or the time for trying again is over.
    pub(crate) async fn call(&self, request: &Request) -> Result<Vec<Row>, Failure> {
        let is_tried = AtomicBool::new(false);
        retrying(self.config.retry_for, || self.attempt(request, is_tried.swap(true, Ordering::Relaxed))).await
    }

    /// Asks the server for a sign of life.
    pub(crate) async fn ping(&self) -> Result<(), Failure> {
        retrying(self.config.retry_for, || async {
            let mut session = self.session().await?;
            session.run("SELECT 1").await?;
            session.end();
            Ok(())
        })
        .await
    }

    async fn attempt(&self, request: &Request, again: bool) -> Result<Vec<Row>, Failure> {
        let mut session = self.session().await?;
        let rows = session.call(request, again).await?;
        session.end();
        Ok(rows)
    }

    /// A connection for some statements.
    pub(crate) async fn session(&self) -> Result<Session<'_>, Failure> {
        let config = &self.config;
        let mut slot = self.pool.take(config.acquire_timeout).await.map_err(|denied| match denied {
            Denied::Closed => Failure::closed(),
            Denied::TimedOut => {
                let (size, wait) = (config.pool_size, config.acquire_timeout);
                let message = format!("all {size} connections of the pool stayed in use for {wait:?}");
                Failure::new(StoreErrorKind::Unavailable, Effect::Refused, message)
            }
        })?;
        let (connection, born) = match slot.connection() {
            Some(known) => known,
            None => (self.connect().await?, Instant::now()),
        };
        Ok(Session { client: self, slot, connection, born })
    }

    async fn connect(&self) -> Result<PgConnection, Failure> {
        let config = &self.config;
        let options = options(&config.url, config)?;
        let Ok(connected) = tokio::time::timeout(config.connect_timeout, options.connect()).await else {
            let message = format!("the server did not answer within {:?}", config.connect_timeout);
            return Err(Failure::new(StoreErrorKind::Unavailable, Effect::Undone, message));
        };
        connected.map_err(|error| {
            let mut failure = failure(&error, config);
            // Nothing was asked of it yet.
            if failure.effect == Effect::Unknown {
                failure.effect = Effect::Undone;
            }
            failure
        })
    }

    /// Waits for what is under way and closes every connection.
    pub(crate) async fn close(&self) {
        for connection in self.pool.close().await {
            let closing = tokio::time::timeout(Duration::from_secs(1), connection.close()).await;
            if !matches!(closing, Ok(Ok(()))) {
                tracing::debug!("a connection was dropped rather than closed");
            }
        }
    }
}

fn options(url: &str, config: &PostgresConfig) -> Result<PgConnectOptions, Failure> {
    let unreadable = |_| Failure::new(StoreErrorKind::InvalidRequest, Effect::Refused, "the address does not parse");
    let mut options: PgConnectOptions = url.parse().map_err(unreadable)?;
    if options.get_application_name().is_none() {
        options = options.application_name("kortyx");
    }
    options = options.extra_float_digits(None).statement_cache_capacity(8).disable_statement_logging();
    if !config.pgbouncer {
        let timeout = config.statement_timeout.as_millis().to_string();
        // Plans that are made while tables are small must be as good later. Functions have the same settings of their own.
        let settings = [
            ("statement_timeout", timeout.as_str()),
            ("enable_seqscan", "off"),
            ("jit", "off"),
            ("plan_cache_mode", "force_generic_plan"),
        ];
        options = options.options(settings);
    }
    Ok(options)
}

/// A connection in use. Unless it is given back by [`end`](Self::end), it is dropped.
pub(crate) struct Session<'a> {
    client: &'a Client,
    slot: Slot<'a, PgConnection>,
    connection: PgConnection,
    born: Instant,
}

impl Session<'_> {
    /// Gives the connection back.
    pub(crate) fn end(self) {
        self.slot.put_back(self.connection, self.born);
    }

    /// Runs statements, and gives what they return as texts.
    pub(crate) async fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Failure> {
        let limit = self.client.config.setup_timeout.max(self.client.config.statement_timeout);
        let fetching = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).fetch_all(&mut self.connection);
        let rows = self.client.bounded(limit, fetching).await?;
        let text = |row: &PgRow, column| {
            let value = row.try_get_raw(column).ok()?;
            value.as_str().ok().map(ToOwned::to_owned)
        };
        Ok(rows.iter().map(|row| (0..row.len()).map(|column| text(row, column)).collect()).collect())
    }

    /// Makes a call, in one round trip. It is made again when an attempt before may have taken effect.
    async fn call(&mut self, request: &Request, again: bool) -> Result<Vec<Row>, Failure> {
        let client = self.client;
        let limit = client.config.statement_timeout + Duration::from_secs(1);
        let rows = if client.config.pgbouncer {
            // One message of several statements is one transaction. The cursor makes its rows binary: as text, bytes would
            // take twice the room.
            let sql = format!(
                "SET LOCAL statement_timeout = {}; DECLARE reply BINARY CURSOR FOR {}; FETCH ALL reply",
                client.config.statement_timeout.as_millis(),
                request.inline(&client.config, again)
            );
            client.bounded(limit, sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut self.connection)).await
        } else {
            let payloads: Vec<&[u8]> = request.payloads.iter().map(AsRef::as_ref).collect();
            let body = serde_json::to_string(&request.body).unwrap_or_default();
            let query = sqlx::query(AssertSqlSafe(client.statements.of(request))).bind(request.operation);
            let query = match &request.transition {
                Some(id) => query.bind(id.as_str()).bind(again).bind(body).bind(payloads),
                None => query.bind(body),
            };
            client.bounded(limit, query.fetch_all(&mut self.connection)).await
        }?;
        rows.iter()
            .map(|row| row_of(row).map_err(|error| failure(&error, &client.config)))
            .collect::<Result<Vec<_>, _>>()
            .and_then(told)
    }
}

/// The rows of a reply; an error where they tell one.
fn told(rows: Vec<Row>) -> Result<Vec<Row>, Failure> {
    match rows.first() {
        Some(Row { tag, data: Some(data), .. }) if tag == "error" => {
            let told: serde_json::Value = serde_json::from_str(data).unwrap_or_default();
            let part = |name| told.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
            Err(classify(part("state"), part("message")))
        }
        _ => Ok(rows),
    }
}

/// Reads a row whose columns are texts and bytes in the server's binary form, which is what they are.
fn row_of(row: &PgRow) -> Result<Row, sqlx::Error> {
    let malformed = |column: usize, source| sqlx::Error::ColumnDecode { index: column.to_string(), source };
    let bytes = |column: usize| {
        let value = row.try_get_raw(column)?;
        if value.is_null() {
            return Ok(None);
        }
        value.as_bytes().map(Some).map_err(|source| malformed(column, source))
    };
    let text = |column: usize| {
        let text = bytes(column)?.map(|bytes| std::str::from_utf8(bytes).map(ToOwned::to_owned));
        text.transpose().map_err(|source| malformed(column, source.into()))
    };
    let payload = |column: usize| Ok::<_, sqlx::Error>(bytes(column)?.map(Bytes::copy_from_slice));
    let tag = text(0)?.unwrap_or_default();
    Ok(Row { tag, data: text(1)?, payloads: [payload(2)?, payload(3)?, payload(4)?] })
}

impl Client {
    /// Waits for the driver, not longer than the server may work.
    async fn bounded<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, Failure> {
        let failure = match tokio::time::timeout(limit, work).await {
            Ok(Ok(outcome)) => return Ok(outcome),
            Ok(Err(error)) => failure(&error, &self.config),
            Err(_) => {
                let message = format!("the server said nothing for {limit:?}");
                Failure::new(StoreErrorKind::Unavailable, Effect::Unknown, message)
            }
        };
        if failure.effect == Effect::Unknown {
            // What else is idle was most likely cut with it.
            drop(self.pool.clear());
        }
        Err(failure)
    }
}

/// The one mapping of the driver's errors.
fn failure(error: &sqlx::Error, config: &PostgresConfig) -> Failure {
    let unavailable = |effect, message: String| Failure::new(StoreErrorKind::Unavailable, effect, message);
    match error {
        sqlx::Error::Database(database) => classify(database.code().as_deref().unwrap_or_default(), database.message()),
        sqlx::Error::Io(cause) => {
            let message = format!("the connection to {} broke", config.masked_url());
            unavailable(Effect::Unknown, message).with_cause(cause.to_string())
        }
        sqlx::Error::Tls(cause) => {
            let message = "an encrypted connection could not be made".to_owned();
            Failure::new(StoreErrorKind::Unavailable, Effect::Refused, message).with_cause(cause.to_string())
        }
        sqlx::Error::Protocol(cause) => {
            unavailable(Effect::Unknown, "the connection broke in the middle of a message".to_owned())
                .with_cause(cause.clone())
        }
        sqlx::Error::ColumnDecode { index, .. } => {
            let message = format!("column {index} of a reply is of another type than it should be");
            Failure::new(StoreErrorKind::Corrupt, Effect::Refused, message)
        }
        _ => Failure::new(StoreErrorKind::Backend, Effect::Refused, "the database driver failed"),
    }
}

/// Notifications of other processes.
pub(crate) struct Notifications(PgListener);

impl Notifications {
    /// Listens at the configured address, which is no pooler's.
    pub(crate) async fn listen(url: &str, config: &PostgresConfig) -> Result<Self, Failure> {
        let options = options(url, config)?;
        let pool =
            PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None).connect_lazy_with(options);
        let listening = async {
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.listen(&config.channel()).await?;
            Ok(Self(listener))
        };
        listening.await.map_err(|error: sqlx::Error| failure(&error, config))
    }

    /// Waits for the next. An error means that some may have been missed.
    pub(crate) async fn next(&mut self, config: &PostgresConfig) -> Result<Option<String>, Failure> {
        match self.0.try_recv().await {
            Ok(notification) => Ok(notification.map(|notification| notification.payload().to_owned())),
            Err(error) => Err(failure(&error, config)),
        }
    }
}
