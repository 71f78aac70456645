//! Where the server is and how it is used.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicI64},
    time::Duration,
};

use kortyx_store::{StoreError, StoreErrorKind};

const OPERATION: &str = "configure";
const MASK: &str = "***";
const DAY: Duration = Duration::from_hours(24);
/// Schemes of one server, of Sentinel and of a Cluster; those with an `s` before the suffix use TLS.
const SCHEMES: [&str; 12] = [
    "redis",
    "rediss",
    "valkey",
    "valkeys",
    "redis-sentinel",
    "rediss-sentinel",
    "valkey-sentinel",
    "valkeys-sentinel",
    "redis-cluster",
    "rediss-cluster",
    "valkey-cluster",
    "valkeys-cluster",
];

/// The settings of a [`RedisStore`](crate::RedisStore).
///
/// ```
/// use std::time::Duration;
/// use kortyx_redis::RedisConfig;
///
/// let config = RedisConfig::parse("rediss://app:secret@redis.example:6380/0")?
///     .prefix("shop")?
///     .patience(Duration::from_secs(5));
/// assert_eq!(config.url(), "rediss://app:***@redis.example:6380/0");
/// # Ok::<(), kortyx_store::StoreError>(())
/// ```
#[derive(Clone)]
pub struct RedisConfig {
    pub(crate) secret_url: String,
    masked_url: String,
    secrets: Vec<String>,
    pub(crate) prefix: String,
    pub(crate) connections: usize,
    pub(crate) in_flight: usize,
    pub(crate) patience: Duration,
    pub(crate) attempt: Duration,
    pub(crate) payload_limit: usize,
    pub(crate) keep_finished: Duration,
    pub(crate) keep_idle: Duration,
    pub(crate) by_slot: bool,
    pub(crate) clock_offset: Arc<AtomicI64>,
}

impl RedisConfig {
    /// Reads an address:
    ///
    /// - `redis://[user:password@]host[:port][/database]`: one server;
    /// - `redis-sentinel://[user:password@]host:port[,…][/database]?sentinelServiceName=NAME[&node=host:port…]`, with
    ///   `sentinelUsername` and `sentinelPassword` where the sentinels want others;
    /// - `redis-cluster://[user:password@]host:port[?node=host:port…]`: a Cluster, of which any node will do.
    ///
    /// `rediss` in place of `redis` uses TLS, with the certificates that the system trusts; `valkey` and `valkeys` mean
    /// the same as `redis` and `rediss`. Refuses anything else with
    /// [`InvalidRequest`](StoreErrorKind::InvalidRequest); no password is in the message.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        let url = url.trim();
        let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| SCHEMES.contains(scheme)) else {
            return Err(invalid(
                "the address must start with redis://, rediss://, redis-sentinel:// or redis-cluster:// (or valkey)",
            ));
        };
        let (authority, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        if host.is_empty() || host.starts_with(':') {
            return Err(invalid("the address names no host"));
        }
        if scheme.ends_with("-sentinel") && !tail.contains("sentinelServiceName=") {
            return Err(invalid("an address of Sentinel needs ?sentinelServiceName=NAME"));
        }
        let (masked_url, secrets) = mask(scheme, authority, tail);
        Ok(Self {
            secret_url: url.to_owned(),
            masked_url,
            secrets,
            prefix: "kortyx".to_owned(),
            connections: 1,
            in_flight: 1024,
            patience: Duration::from_secs(10),
            attempt: Duration::from_secs(5),
            payload_limit: 64 * 1024 * 1024,
            keep_finished: DAY * 7,
            keep_idle: DAY * 90,
            by_slot: scheme.ends_with("-cluster"),
            clock_offset: Arc::default(),
        })
    }

    /// What every key starts with, `kortyx` by default: 1 to 64 letters, digits, `.`, `_`, `:` or `-`. Stores under
    /// different prefixes do not see each other.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Result<Self, StoreError> {
        let prefix = prefix.into();
        let is_plain = prefix.chars().all(|c| c.is_ascii_alphanumeric() || "._:-".contains(c));
        if !is_plain || prefix.is_empty() || prefix.len() > 64 {
            return Err(invalid("a prefix has 1 to 64 letters, digits, `.`, `_`, `:` or `-`"));
        }
        self.prefix = prefix;
        Ok(self)
    }

    /// How many connections carry transitions, 1 by default and 64 at most; each carries any number at once.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.clamp(1, 64);
        self
    }

    /// How many calls may be under way at once, 1024 by default. Others wait, [`patience`](Self::patience) at most, then
    /// fail as [`Unavailable`](StoreErrorKind::Unavailable).
    #[must_use]
    pub fn in_flight(mut self, calls: usize) -> Self {
        self.in_flight = calls.clamp(1, 1 << 20);
        self
    }

    /// How long a call tries again while the server cannot be reached, is loading, or fails over: 10 s by default, 30 s
    /// at most, and a second more for each mebibyte that it sends. Then it fails as
    /// [`Unavailable`](StoreErrorKind::Unavailable).
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience.clamp(Duration::from_millis(1), Duration::from_secs(30));
        self
    }

    /// How long to wait for one reply before trying again, 5 s by default, and longer for large calls as above. A repeat of a transition that took effect gets
    /// the first one's reply.
    #[must_use]
    pub fn attempt(mut self, timeout: Duration) -> Self {
        self.attempt = timeout.clamp(Duration::from_millis(1), Duration::from_secs(30));
        self
    }

    /// The largest snapshot, entry, question, answer, outcome or state, in bytes: 64 MiB by default, 256 MiB at most. A
    /// larger one is refused as [`TooLarge`](StoreErrorKind::TooLarge).
    #[must_use]
    pub fn payload_limit(mut self, bytes: usize) -> Self {
        self.payload_limit = bytes.min(256 * 1024 * 1024);
        self
    }

    /// The time to live of a run that ended, 7 days by default. It frees what pruning did not, so keep it above
    /// [`Retention::finished_runs`](kortyx_store::Retention::finished_runs).
    #[must_use]
    pub fn keep_finished(mut self, time: Duration) -> Self {
        self.keep_finished = time.max(Duration::from_mins(1));
        self
    }

    /// The time to live of a session in which no run can go on, from its last change: 90 days by default. Keep it above
    /// [`Retention::idle_sessions`](kortyx_store::Retention::idle_sessions).
    #[must_use]
    pub fn keep_idle(mut self, time: Duration) -> Self {
        self.keep_idle = time.max(Duration::from_mins(1));
        self
    }

    /// Never lets a script touch two slots, as in a Cluster: for proxies that hide one behind a single address. Indexes are
    /// then told after the reply, and ids that do not [say where they live](kortyx_store::Store::placement) cost a round trip
    /// before the transition that brings them. Always on for `redis-cluster://`.
    #[must_use]
    pub fn by_slot(mut self, by_slot: bool) -> Self {
        self.by_slot = by_slot || self.is_cluster();
        self
    }

    /// Moves the clock that scripts go by, in milliseconds; for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn clock_offset(mut self, millis: Arc<AtomicI64>) -> Self {
        self.clock_offset = millis;
        self
    }

    /// The address, with its passwords masked.
    pub fn url(&self) -> &str {
        &self.masked_url
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.secret_url.split_once("://").is_some_and(|(scheme, _)| scheme.ends_with("-cluster"))
    }

    /// A message in which no password is left.
    pub(crate) fn redact(&self, message: &str) -> String {
        let masked = message.replace(&self.secret_url, &self.masked_url);
        self.secrets.iter().fold(masked, |message, secret| message.replace(secret.as_str(), MASK))
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig")
            .field("url", &self.masked_url)
            .field("prefix", &self.prefix)
            .field("connections", &self.connections)
            .field("in_flight", &self.in_flight)
            .field("patience", &self.patience)
            .field("by_slot", &self.by_slot)
            .finish_non_exhaustive()
    }
}

/// The address without its passwords, and the passwords.
fn mask(scheme: &str, authority: &str, tail: &str) -> (String, Vec<String>) {
    let mut secrets = Vec::new();
    let authority = match authority.rsplit_once('@') {
        Some((credentials, host)) => {
            let (user, password) = credentials.split_once(':').unwrap_or(("", credentials));
            secrets.push(password.to_owned());
            format!("{user}:{MASK}@{host}")
        }
        None => authority.to_owned(),
    };
    let (path, query) = tail.split_once('?').map_or((tail, None), |(path, query)| (path, Some(query)));
    let settings = query.into_iter().flat_map(|query| query.split('&')).map(|setting| match setting.split_once('=') {
        Some((name @ "sentinelPassword", secret)) => {
            secrets.push(secret.to_owned());
            format!("{name}={MASK}")
        }
        _ => setting.to_owned(),
    });
    let query = settings.collect::<Vec<_>>().join("&");
    let mark = if query.is_empty() { "" } else { "?" };
    secrets.retain(|secret| !secret.is_empty());
    (format!("{scheme}://{authority}{path}{mark}{query}"), secrets)
}

fn invalid(message: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::InvalidRequest, OPERATION, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_deployment_has_an_address() {
        for (url, by_slot) in [
            ("redis://localhost", false),
            (" rediss://user:pw@host:6380/1 ", false),
            ("valkey://host", false),
            ("redis-sentinel://host:26379?sentinelServiceName=main", false),
            ("redis-cluster://host:7000?node=host:7001", true),
            ("valkeys-cluster://host", true),
        ] {
            assert_eq!(RedisConfig::parse(url).unwrap().by_slot, by_slot, "{url}");
        }
    }

    #[test]
    fn what_names_no_server_is_refused() {
        for url in ["", "localhost:6379", "http://host", "redis://", "redis://u:p@", "redis-sentinel://host:1"] {
            assert_eq!(RedisConfig::parse(url).unwrap_err().kind(), StoreErrorKind::InvalidRequest, "{url}");
        }
    }

    #[test]
    fn no_password_is_shown() {
        let url = "redis-sentinel://app:s3cret@h:1/0?sentinelServiceName=m&sentinelPassword=hush&node=h:2";
        let config = RedisConfig::parse(url).unwrap();
        assert_eq!(config.url(), "redis-sentinel://app:***@h:1/0?sentinelServiceName=m&sentinelPassword=***&node=h:2");
        for text in [format!("{config:?}"), config.redact(&format!("cannot reach {url}: s3cret, hush"))] {
            assert!(!text.contains("s3cret") && !text.contains("hush"), "{text}");
        }
        let only_password = RedisConfig::parse("redis://pw0rd@host").unwrap();
        assert_eq!(only_password.url(), "redis://:***@host");
        let odd = RedisConfig::parse("redis://u:a@b:c@host:1/2").unwrap();
        assert_eq!(odd.url(), "redis://u:***@host:1/2");
    }

    #[test]
    fn a_wrong_address_is_refused_without_its_password() {
        let error = RedisConfig::parse("redis//app:s3cret@host").unwrap_err();
        assert!(!error.to_string().contains("s3cret"));
    }

    #[test]
    fn a_prefix_is_plain() {
        let config = RedisConfig::parse("redis://localhost").unwrap();
        assert!(config.clone().prefix("shop.eu-1:kortyx").is_ok());
        for prefix in ["", "a{b}", "a*", "a b", "é", &"x".repeat(65)] {
            assert!(config.clone().prefix(prefix).is_err(), "{prefix}");
        }
    }

    #[test]
    fn a_cluster_is_always_served_by_slot() {
        let config = RedisConfig::parse("redis-cluster://host").unwrap();
        assert!(config.by_slot(false).by_slot);
        assert!(RedisConfig::parse("redis://host").unwrap().by_slot(true).by_slot);
    }
}
