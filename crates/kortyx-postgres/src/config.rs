//! Where the database is and how it is used.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use kortyx_store::{StoreError, StoreErrorKind};

use crate::client;

const OPERATION: &str = "configure";

/// The longest schema and prefix; with what follows they stay under the 63 bytes of an identifier.
const NAME: usize = 30;

/// Settings of an address that the driver reads.
const DRIVER: [&str; 12] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "sslcert",
    "sslkey",
    "host",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
];

/// Moves a store's time forward from the server's; for tests.
#[derive(Debug, Clone, Default)]
pub struct ClockShift(Arc<AtomicI64>);

impl ClockShift {
    /// Moves the time of every store with this shift.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.0.update(Ordering::SeqCst, Ordering::SeqCst, |shift| shift.saturating_add(by));
    }

    pub(crate) fn millis(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// The settings of a [`PostgresStore`](crate::PostgresStore). Passwords are masked wherever it is printed.
///
/// ```
/// use std::time::Duration;
/// use kortyx_postgres::PostgresConfig;
///
/// let config = PostgresConfig::parse("postgres://app:secret@db.internal/app?sslmode=verify-full&pool_size=20")?
///     .schema("workflows")?
///     .acquire_timeout(Duration::from_secs(2));
/// assert!(!format!("{config:?}").contains("secret"));
/// # Ok::<(), kortyx_store::StoreError>(())
/// ```
#[derive(Clone)]
pub struct PostgresConfig {
    pub(crate) url: String,
    pub(crate) listen_url: Option<String>,
    pub(crate) schema: String,
    pub(crate) prefix: String,
    pub(crate) pool_size: u32,
    pub(crate) acquire_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) statement_timeout: Duration,
    pub(crate) retry_for: Duration,
    pub(crate) setup_timeout: Duration,
    pub(crate) pgbouncer: bool,
    pub(crate) notify: bool,
    pub(crate) payload_limit: usize,
    pub(crate) shift: ClockShift,
}

impl PostgresConfig {
    /// Reads an address such as `postgres://user:password@host:5432/database?sslmode=verify-full`.
    ///
    /// Beside what the driver knows (`sslmode`, `sslrootcert`, `sslcert`, `sslkey`, `host`, `port`, `dbname`, `user`,
    /// `password`, `application_name`) the address may set `schema`, `table_prefix`, `pool_size`, `acquire_timeout_ms`,
    /// `connect_timeout_ms`, `statement_timeout_ms`, `retry_for_ms`, `setup_timeout_ms`, `pgbouncer` and `notify`. By default:
    /// the schema `kortyx`, no prefix, 10 connections, 5 s to get one and 5 s to make one, 30 s for a statement, 15 s of
    /// trying again, 60 s for another's setup, no pooler, with notifications, payloads up to 64 MiB.
    ///
    /// Refuses an address that does not parse, and settings that nobody knows, with
    /// [`InvalidRequest`](StoreErrorKind::InvalidRequest) and without repeating the address.
    pub fn parse(address: &str) -> Result<Self, StoreError> {
        let (base, query) = address.trim().split_once('?').unwrap_or((address.trim(), ""));
        let mut config = Self {
            url: String::new(),
            listen_url: None,
            schema: "kortyx".to_owned(),
            prefix: String::new(),
            pool_size: 10,
            acquire_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            retry_for: Duration::from_secs(15),
            setup_timeout: Duration::from_mins(1),
            pgbouncer: false,
            notify: true,
            payload_limit: 64 * 1024 * 1024,
            shift: ClockShift::default(),
        };
        let mut rest = Vec::new();
        for setting in query.split('&').filter(|setting| !setting.is_empty()) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            if DRIVER.contains(&name) {
                rest.push(setting);
            } else {
                config = config.set(name, value)?;
            }
        }
        config.url = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        checked(&config.url)?;
        Ok(config)
    }

    fn set(self, name: &str, value: &str) -> Result<Self, StoreError> {
        let millis = || {
            let millis = value.parse().map_err(|_| invalid(format!("{name} must be a whole number of milliseconds")));
            millis.map(Duration::from_millis)
        };
        let flag = || match value {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(invalid(format!("{name} must be true or false"))),
        };
        match name {
            "schema" => self.schema(value),
            "table_prefix" => self.table_prefix(value),
            "pool_size" => {
                let size = value.parse().map_err(|_| invalid("pool_size must be a whole number"))?;
                Ok(self.pool_size(size))
            }
            "acquire_timeout_ms" => Ok(self.acquire_timeout(millis()?)),
            "connect_timeout_ms" => Ok(self.connect_timeout(millis()?)),
            "statement_timeout_ms" => Ok(self.statement_timeout(millis()?)),
            "retry_for_ms" => Ok(self.retry_for(millis()?)),
            "setup_timeout_ms" => Ok(self.setup_timeout(millis()?)),
            "pgbouncer" => Ok(self.pgbouncer(flag()?)),
            "notify" => Ok(self.notify(flag()?)),
            _ => Err(invalid(format!("the address has a setting that nobody knows: {name}"))),
        }
    }

    /// The schema that holds the tables and functions; created when it does not exist. Lower-case letters, digits and
    /// underscores, at most 30.
    pub fn schema(mut self, schema: &str) -> Result<Self, StoreError> {
        if !is_name(schema) {
            return Err(invalid("the schema must be a lower-case name of at most 30 letters, digits and underscores"));
        }
        schema.clone_into(&mut self.schema);
        Ok(self)
    }

    /// What the names of tables and functions begin with, for a schema that is shared. Made of the same characters.
    pub fn table_prefix(mut self, prefix: &str) -> Result<Self, StoreError> {
        if !prefix.is_empty() && !is_name(prefix) {
            return Err(invalid("the prefix must be a lower-case name of at most 30 letters, digits and underscores"));
        }
        prefix.clone_into(&mut self.prefix);
        Ok(self)
    }

    /// How many connections at most, at least one. They are made when needed.
    #[must_use]
    pub fn pool_size(mut self, connections: u32) -> Self {
        self.pool_size = connections.clamp(1, 10_000);
        self
    }

    /// How long to wait for a connection while all are in use. Then a call fails as
    /// [`Unavailable`](StoreErrorKind::Unavailable).
    #[must_use]
    pub fn acquire_timeout(mut self, timeout: Duration) -> Self {
        self.acquire_timeout = timeout.min(Duration::from_hours(1));
        self
    }

    /// How long making a connection may take.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout.clamp(Duration::from_millis(1), Duration::from_hours(1));
        self
    }

    /// How long the server may work on one call, the wait for locks included.
    #[must_use]
    pub fn statement_timeout(mut self, timeout: Duration) -> Self {
        self.statement_timeout = timeout.clamp(Duration::from_millis(1), Duration::from_hours(1));
        self
    }

    /// How long a call is tried again after its connection broke or its transaction lost a conflict, at most 10 minutes;
    /// zero for never.
    #[must_use]
    pub fn retry_for(mut self, time: Duration) -> Self {
        self.retry_for = time.min(Duration::from_mins(10));
        self
    }

    /// How long [`setup`](kortyx_store::Store::setup) waits for another process that sets up.
    #[must_use]
    pub fn setup_timeout(mut self, timeout: Duration) -> Self {
        self.setup_timeout = timeout.min(Duration::from_hours(1));
        self
    }

    /// Whether the address is that of a pooler in transaction mode, such as PgBouncer: nothing is then kept in a session, and
    /// statements carry their values in their text.
    #[must_use]
    pub fn pgbouncer(mut self, pgbouncer: bool) -> Self {
        self.pgbouncer = pgbouncer;
        self
    }

    /// Whether transitions notify listening processes of work. On by default; a commit that notifies waits for others that do.
    #[must_use]
    pub fn notify(mut self, notify: bool) -> Self {
        self.notify = notify;
        self
    }

    /// Listens for notifications of other processes at this address, which must be the server's own and not a pooler's.
    /// Without it, work of other processes is found by polling. Refuses an address that does not parse.
    pub fn listen(mut self, address: &str) -> Result<Self, StoreError> {
        checked(address)?;
        self.listen_url = Some(address.to_owned());
        Ok(self)
    }

    /// The largest snapshot, entry, question, answer, outcome or state, in bytes; at most 256 MiB. A larger one is refused
    /// as [`TooLarge`](StoreErrorKind::TooLarge).
    #[must_use]
    pub fn payload_limit(mut self, bytes: usize) -> Self {
        self.payload_limit = bytes.min(256 * 1024 * 1024);
        self
    }

    /// Shifts the store's time from the server's; for tests.
    #[must_use]
    pub fn clock_shift(mut self, shift: ClockShift) -> Self {
        self.shift = shift;
        self
    }

    /// A name in the schema, as statements write it.
    pub(crate) fn qualified(&self, name: &str) -> String {
        format!("\"{}\".{}{name}", self.schema, self.prefix)
    }

    /// A text of SQL with the names of this schema.
    pub(crate) fn render(&self, sql: &str) -> String {
        sql.replace("kortyx.", &self.qualified(""))
    }

    /// Where notifications go.
    pub(crate) fn channel(&self) -> String {
        format!("{}_{}", self.schema, self.prefix)
    }

    /// The address without its password.
    pub(crate) fn masked_url(&self) -> String {
        masked(&self.url)
    }
}

fn is_name(name: &str) -> bool {
    let first = name.chars().next();
    name.len() <= NAME
        && first.is_some_and(|first| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_')
}

fn checked(address: &str) -> Result<(), StoreError> {
    let is_ours = address.starts_with("postgres://") || address.starts_with("postgresql://");
    if is_ours && client::parses(address) {
        return Ok(());
    }
    Err(invalid("the address does not parse: it should read postgres://user:password@host:port/database"))
}

/// An address with its passwords replaced.
fn masked(address: &str) -> String {
    let (base, query) = address.split_once('?').unwrap_or((address, ""));
    let (scheme, rest) = base.split_once("://").unwrap_or(("postgres", base));
    let (authority, path) = rest.find('/').map_or((rest, ""), |place| rest.split_at(place));
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((name, _)) => format!("{name}:***@{host}"),
            None => format!("{user}@{host}"),
        },
        None => authority.to_owned(),
    };
    let settings: Vec<&str> = query
        .split('&')
        .filter(|setting| !setting.is_empty())
        .map(|setting| if setting.starts_with("password=") { "password=***" } else { setting })
        .collect();
    let mark = if settings.is_empty() { "" } else { "?" };
    format!("{scheme}://{authority}{path}{mark}{}", settings.join("&"))
}

impl fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("url", &self.masked_url())
            .field("listen", &self.listen_url.as_deref().map(masked))
            .field("schema", &self.schema)
            .field("table_prefix", &self.prefix)
            .field("pool_size", &self.pool_size)
            .field("acquire_timeout", &self.acquire_timeout)
            .field("statement_timeout", &self.statement_timeout)
            .field("retry_for", &self.retry_for)
            .field("pgbouncer", &self.pgbouncer)
            .finish_non_exhaustive()
    }
}

fn invalid(message: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::InvalidRequest, OPERATION, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_masked_wherever_the_address_holds_it() {
        for address in [
            "postgres://app:s3cr3t@db:5432/app?sslmode=disable",
            "postgres://app:s3cr3t%40x@db/app",
            "postgres://db/app?user=app&password=s3cr3t",
            "postgresql://app:s3cr3t@[::1]:5432/app",
        ] {
            let config = PostgresConfig::parse(address).unwrap().listen(address).unwrap();
            let printed = format!("{config:?} {}", config.masked_url());
            assert!(!printed.contains("s3cr3t") && printed.contains("***") && printed.contains("app"), "{printed}");
        }
    }

    #[test]
    fn an_address_that_is_refused_is_not_repeated() {
        for address in ["mysql://app:s3cr3t@db/app", "postgres://app:s3cr3t@db:port/app", "s3cr3t", ""] {
            let error = PostgresConfig::parse(address).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::InvalidRequest);
            assert!(!format!("{error} {error:?}").contains("s3cr3t"), "{error:?}");
        }
    }

    #[test]
    fn an_address_may_carry_settings() {
        let config = PostgresConfig::parse(
            "postgres://app@db/app?schema=flows&table_prefix=k_&pool_size=3&pgbouncer=true&retry_for_ms=250&sslmode=disable",
        )
        .unwrap();
        assert_eq!((config.schema.as_str(), config.prefix.as_str(), config.pool_size), ("flows", "k_", 3));
        assert_eq!((config.pgbouncer, config.retry_for), (true, Duration::from_millis(250)));
        assert_eq!(config.url, "postgres://app@db/app?sslmode=disable", "the rest is the driver's");
        assert_eq!(config.qualified("runs"), "\"flows\".k_runs");
        for wrong in ["pool_size=x", "pgbouncer=maybe", "acquire_timeout_ms=1s", "colour=red"] {
            assert!(PostgresConfig::parse(&format!("postgres://db/app?{wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_plain_names_are_taken() {
        let config = || PostgresConfig::parse("postgres://db/app").unwrap();
        for name in ["", "A", "1a", "a-b", "a\"b", "a b", "é", "a;drop", &"x".repeat(31)] {
            assert!(config().schema(name).is_err(), "{name}");
            assert!(name.is_empty() || config().table_prefix(name).is_err(), "{name}");
        }
        assert!(config().schema("_a1").and_then(|config| config.table_prefix("k2_")).is_ok());
    }
}
