//! The server: how connections are made, how calls reach it, and when they are tried again. Nothing else names the driver.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use kortyx_store::StoreErrorKind;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, PgConnection, Row as _,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions, PgRow},
};

use crate::{
    PostgresConfig,
    encoding::hex,
    error::{Effect, Failure},
    pool::{Denied, Pool, Slot},
    request::Request,
};

/// The longest pause between attempts.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

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
    transit: Arc<str>,
    read: Arc<str>,
}

/// Whether the driver understands an address.
pub(crate) fn parses(address: &str) -> bool {
    address.parse::<PgConnectOptions>().is_ok()
}

impl Client {
    pub(crate) fn new(config: Arc<PostgresConfig>) -> Self {
        Self {
            pool: Pool::new(config.pool_size, Duration::from_mins(10), Duration::from_mins(30)),
            transit: config.render(include_str!("queries/transit.sql")).into(),
            read: config.render(include_str!("queries/read.sql")).into(),
            config,
        }
    }

    /// Makes a call: until it succeeds, is refused, or the time for trying again is over.
    pub(crate) async fn call(&self, request: &Request) -> Result<Vec<Row>, Failure> {
        self.retrying(|| self.attempt(request)).await
    }

    /// Asks the server for a sign of life.
    pub(crate) async fn ping(&self) -> Result<(), Failure> {
        self.retrying(|| async {
            let mut session = self.session().await?;
            session.run("SELECT 1").await?;
            session.end();
            Ok(())
        })
        .await
    }

    async fn retrying<T, F>(&self, attempt: impl Fn() -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let mut started = None;
        let mut was_unknown = false;
        let mut pause = Duration::from_millis(5);
        loop {
            let failure = match attempt().await {
                Ok(outcome) => return Ok(outcome),
                Err(failure) if failure.effect == Effect::Refused => return Err(failure),
                Err(failure) => failure,
            };
            was_unknown |= failure.effect == Effect::Unknown;
            let tried_for = started.get_or_insert_with(Instant::now).elapsed();
            if tried_for + pause > self.config.retry_for {
                return Err(failure.given_up(was_unknown, tried_for));
            }
            tracing::debug!(?failure, "trying again");
            tokio::time::sleep(pause.mul_f64(jitter())).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn attempt(&self, request: &Request) -> Result<Vec<Row>, Failure> {
        let mut session = self.session().await?;
        let rows = session.call(request).await?;
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
        options = options.options([("statement_timeout", timeout.as_str()), ("jit", "off")]);
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

    /// Makes a call, in one round trip.
    async fn call(&mut self, request: &Request) -> Result<Vec<Row>, Failure> {
        let client = self.client;
        let limit = client.config.statement_timeout + Duration::from_secs(1);
        let rows = if client.config.pgbouncer {
            let sql = format!(
                "SET LOCAL statement_timeout = {}; {}",
                client.config.statement_timeout.as_millis(),
                client.inline(request)
            );
            client.bounded(limit, sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut self.connection)).await
        } else {
            let payloads: Vec<&[u8]> = request.payloads.iter().map(AsRef::as_ref).collect();
            let body = request.body.to_string();
            let query = match &request.transition {
                Some(id) => sqlx::query(AssertSqlSafe(Arc::clone(&client.transit)))
                    .bind(request.operation)
                    .bind(id.as_str())
                    .bind(body)
                    .bind(payloads),
                None => sqlx::query(AssertSqlSafe(Arc::clone(&client.read))).bind(request.operation).bind(body),
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

fn row_of(row: &PgRow) -> Result<Row, sqlx::Error> {
    let payload = |column: usize| row.try_get::<Option<Vec<u8>>, _>(column).map(|bytes| bytes.map(Bytes::from));
    Ok(Row { tag: row.try_get(0)?, data: row.try_get(1)?, payloads: [payload(2)?, payload(3)?, payload(4)?] })
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

    /// A call as a text, for a pooler that may hand every statement to another server process.
    fn inline(&self, request: &Request) -> String {
        let body = literal(&request.body.to_string());
        let (statement, places) = match &request.transition {
            Some(id) => {
                let payloads = request.payloads.iter().map(|payload| format!("'\\x{}'::bytea", hex(payload)));
                let payloads = format!("ARRAY[{}]::bytea[]", payloads.collect::<Vec<_>>().join(","));
                (
                    include_str!("queries/transit_inline.sql"),
                    vec![literal(request.operation), literal(id), body, payloads],
                )
            }
            None => (include_str!("queries/read.sql"), vec![literal(request.operation), body]),
        };
        let mut sql = String::new();
        // Only the statement is searched for places, never what was put there.
        for (part, place) in
            self.config.render(statement).split('$').zip(std::iter::once(None).chain(places.iter().map(Some)))
        {
            match place {
                None => sql.push_str(part),
                Some(value) => {
                    sql.push_str(value);
                    sql.push_str(part.trim_start_matches(|digit: char| digit.is_ascii_digit()));
                }
            }
        }
        sql
    }
}

/// A text as a literal that means the same whatever the server's settings.
fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Between a half and one and a half.
fn jitter() -> f64 {
    let mut random = [0_u8; 2];
    if getrandom::fill(&mut random).is_err() {
        return 1.0;
    }
    0.5 + f64::from(u16::from_be_bytes(random)) / 65_536.0
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

/// Error codes: <https://www.postgresql.org/docs/current/errcodes-appendix.html>. Class KX is ours.
fn classify(state: &str, message: &str) -> Failure {
    use StoreErrorKind::{AlreadyExists, Backend, Corrupt, InvalidRequest, LeaseLost, Schema, TooLarge, Unavailable};
    let refused = |kind, told: &str| Failure::new(kind, Effect::Refused, told);
    let failure = match state {
        "KX001" => return refused(LeaseLost, message),
        "KX002" => return refused(AlreadyExists, message),
        "KX003" => return refused(InvalidRequest, message),
        "KX004" => return refused(Corrupt, message),
        "40001" | "40P01" => Failure::new(Unavailable, Effect::Undone, "the transaction lost against another"),
        "23505" => refused(AlreadyExists, "an id is taken"),
        "42883" | "42P01" | "3F000" => refused(Schema, "the tables or functions are missing: call setup first"),
        "42703" | "42804" => refused(Schema, "a table is not as it was made: the schema was edited"),
        "42501" | "28000" | "28P01" | "3D000" => refused(Unavailable, "the server does not let this user in"),
        "25006" => Failure::new(Unavailable, Effect::Undone, "the server takes no writes: it is a standby"),
        "57014" => refused(Unavailable, "the server took longer than the statement timeout"),
        "53300" => Failure::new(Unavailable, Effect::Undone, "the server has no connection to spare"),
        "53100" => refused(Unavailable, "the server's disk is full"),
        "53200" => refused(Unavailable, "the server is out of memory"),
        "54000" => refused(TooLarge, "a value is larger than the database takes"),
        "57P03" => Failure::new(Unavailable, Effect::Undone, "the server is starting or stopping"),
        // The end of a server process, or of its pooler's connection to it.
        "57P01" | "57P02" | "57P05" => Failure::new(Unavailable, Effect::Unknown, "the server ended the connection"),
        _ if state.starts_with("08") => Failure::new(Unavailable, Effect::Unknown, "the connection broke"),
        _ if state.starts_with("XX") => refused(Corrupt, "the database is damaged"),
        _ => refused(Backend, "the database refused a statement"),
    };
    failure.with_cause(format!("{state}: {message}"))
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
