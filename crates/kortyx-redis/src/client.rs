//! The driver. No other file names it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use fred::{
    clients::{Pool, SubscriberClient},
    interfaces::{ClientLike, EventInterface, PubsubInterface},
    types::{
        Builder, ClusterHash, CustomCommand, Value,
        config::{Config, Options, ReconnectPolicy, Server, TcpConfig},
    },
};
use kortyx_store::{Signal, StoreError, StoreErrorKind};
use tokio::{
    sync::{OnceCell, Semaphore, SemaphorePermit, broadcast},
    task::JoinHandle,
    time::{sleep, timeout, timeout_at},
};

use crate::{config::RedisConfig, reply::Reply, script::Script, signal};

/// The first and the longest wait before another attempt.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// Connections to the server, and what is waiting for them.
pub(crate) struct Client {
    pool: Pool,
    subscriber: SubscriberClient,
    listening: Vec<JoinHandle<()>>,
    places: Semaphore,
    config: RedisConfig,
}

/// A server of the deployment that has keys of its own.
#[derive(Clone)]
pub(crate) struct Node(Option<Server>);

/// Where a command goes.
enum Route {
    /// To the server of this key.
    Key(ClusterHash),
    Node(Node),
}

impl Route {
    fn to(key: &[u8]) -> Self {
        Self::Key(ClusterHash::from(key))
    }
}

/// The digest by which a server knows a script.
pub(crate) fn sha1(source: &str) -> String {
    fred::util::sha1_hash(source)
}

/// The slot that a key is in.
#[cfg(test)]
pub(crate) fn slot(key: &str) -> u16 {
    fred::util::redis_keyslot(key.as_bytes())
}

impl Client {
    /// Connects; fails when the server cannot be reached or refuses the user.
    pub(crate) async fn connect(
        config: &RedisConfig,
        channel: String,
        signals: broadcast::Sender<Signal>,
    ) -> Result<Self, StoreError> {
        const OPERATION: &str = "connect";
        let failed = |error: &fred::error::Error| failure(config, OPERATION, error);
        let builder = builder(config).map_err(|error| failed(&error))?;
        let (until, mut wait) = (Instant::now() + config.patience, BACKOFF.0);
        let pool = loop {
            let pool = builder.build_pool(config.connections).map_err(|error| failed(&error))?;
            let error = match timeout_at(until.into(), pool.init()).await {
                Ok(Ok(_)) => break pool,
                Ok(Err(error)) => error,
                Err(_) => return Err(unreachable(config, OPERATION, "it does not answer")),
            };
            let _ = pool.quit().await;
            if !is_passing(&error) || Instant::now() + wait >= until {
                return Err(failed(&error));
            }
            sleep(wait).await;
            wait = (wait * 2).min(BACKOFF.1);
        };
        let subscriber = builder.build_subscriber_client().map_err(|error| failed(&error))?;
        let listening = vec![subscriber.manage_subscriptions(), listen(&subscriber, channel, signals)];
        let places = Semaphore::new(config.in_flight);
        Ok(Self { pool, subscriber, listening, places, config: config.clone() })
    }

    /// Runs a script on the session, index or value that this key names.
    pub(crate) async fn script(
        &self,
        operation: &'static str,
        script: &Script,
        key: &str,
        args: &[Bytes],
    ) -> Result<Reply, StoreError> {
        let (route, key) = (Route::to(key.as_bytes()), Bytes::copy_from_slice(key.as_bytes()));
        let with = |head: &Bytes| {
            let mut all = Vec::with_capacity(3 + args.len());
            all.extend([head.clone(), Bytes::from_static(b"1"), key.clone()].map(Value::Bytes));
            all.extend(args.iter().cloned().map(Value::Bytes));
            all
        };
        let _place = self.place(operation).await?;
        match self.persist("EVALSHA", &route, || with(&script.sha)).await {
            // The server lost it (restart, failover, flush) or never had it: this sends it, and the server keeps it.
            Err(error) if error.details().starts_with("NOSCRIPT") => {
                let source = Bytes::from(script.source.clone());
                let sent = self.persist("EVAL", &route, || with(&source)).await;
                sent.map_err(|error| failure(&self.config, operation, &error))
            }
            done => done.map_err(|error| failure(&self.config, operation, &error)),
        }
    }

    /// Runs a command whose first argument is its key.
    pub(crate) async fn command(
        &self,
        operation: &'static str,
        command: &'static str,
        args: Vec<Bytes>,
    ) -> Result<Reply, StoreError> {
        let route = Route::to(args.first().map_or(&[], |key| key.as_ref()));
        self.run(operation, command, route, args.into_iter().map(Value::Bytes).collect()).await
    }

    /// Runs a command whose first argument is its key, beside the calls that are under way.
    pub(crate) async fn aside(&self, command: &'static str, args: Vec<Bytes>) -> Result<Reply, StoreError> {
        let route = Route::to(args.first().map_or(&[], |key| key.as_ref()));
        let sent = self.persist(command, &route, || args.iter().cloned().map(Value::Bytes).collect()).await;
        sent.map_err(|error| failure(&self.config, "tell an index", &error))
    }

    /// Runs a command on one server.
    pub(crate) async fn on_node(
        &self,
        operation: &'static str,
        node: &Node,
        command: &'static str,
        args: Vec<Bytes>,
    ) -> Result<Reply, StoreError> {
        let args = args.into_iter().map(Value::Bytes).collect();
        self.run(operation, command, Route::Node(node.clone()), args).await
    }

    /// The servers that have keys.
    pub(crate) fn nodes(&self) -> Vec<Node> {
        if !self.config.is_cluster() {
            return vec![Node(None)];
        }
        self.pool.next().active_connections().into_iter().map(|server| Node(Some(server))).collect()
    }

    /// Lets calls that are under way finish, then closes every connection.
    pub(crate) async fn close(&self) {
        let all = u32::try_from(self.config.in_flight).unwrap_or(u32::MAX);
        let _ = timeout(self.config.patience, self.places.acquire_many(all)).await;
        self.places.close();
        for task in &self.listening {
            task.abort();
        }
        let _ = timeout(Duration::from_secs(1), self.subscriber.quit()).await;
        let _ = timeout(Duration::from_secs(1), self.pool.quit()).await;
    }

    async fn run(
        &self,
        operation: &'static str,
        command: &'static str,
        route: Route,
        args: Vec<Value>,
    ) -> Result<Reply, StoreError> {
        let _place = self.place(operation).await?;
        self.persist(command, &route, || args.clone()).await.map_err(|error| failure(&self.config, operation, &error))
    }

    async fn place(&self, operation: &'static str) -> Result<SemaphorePermit<'_>, StoreError> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        match timeout(self.config.patience, self.places.acquire()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) => Err(StoreError::new(StoreErrorKind::Closed, operation, "the store was closed")),
            Err(_) => {
                let RedisConfig { in_flight, connections, patience, .. } = &self.config;
                let message = format!(
                    "{in_flight} calls are under way on {connections} connections, none ended within {patience:?}"
                );
                Err(StoreError::new(StoreErrorKind::Unavailable, operation, message))
            }
        }
    }

    /// Tries until it is done, fails for good, or patience ends; the arguments are made anew for each attempt.
    async fn persist(
        &self,
        command: &'static str,
        route: &Route,
        args: impl Fn() -> Vec<Value>,
    ) -> Result<Reply, fred::error::Error> {
        let mut made = args();
        let allowance = allowance(&made);
        let (until, mut wait) = (Instant::now() + self.config.patience + allowance, BACKOFF.0);
        loop {
            let error = match self.attempt(command, route, made, self.config.attempt + allowance).await {
                Ok(value) => return Ok(reply(value)),
                Err(error) => error,
            };
            if !is_passing(&error) || Instant::now() + wait >= until {
                return Err(error);
            }
            sleep(wait).await;
            wait = (wait * 2).min(BACKOFF.1);
            made = args();
        }
    }

    async fn attempt(
        &self,
        command: &'static str,
        route: &Route,
        args: Vec<Value>,
        patience: Duration,
    ) -> Result<Value, fred::error::Error> {
        let mut options = Options { timeout: Some(patience), ..Options::default() };
        let hash = match route {
            Route::Key(slot) => slot.clone(),
            Route::Node(node) => {
                options.cluster_node.clone_from(&node.0);
                ClusterHash::Random
            }
        };
        let command = CustomCommand::new_static(command, hash, false);
        // The driver's future is large: within those of its callers it would be moved with each of them.
        Box::pin(self.pool.next().with_options(&options).custom(command, args)).await
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        for task in &self.listening {
            task.abort();
        }
        // The driver's own tasks go on until they are told to end.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (pool, subscriber) = (self.pool.clone(), self.subscriber.clone());
            runtime.spawn(async move {
                let _ = subscriber.quit().await;
                let _ = pool.quit().await;
            });
        }
    }
}

/// Connections for values that may be lost: nothing waits for a server that is not there, and nothing is tried again.
pub(crate) struct Values {
    pool: Pool,
    config: RedisConfig,
    /// Whether there was a server once.
    was_connected: OnceCell<()>,
}

impl Values {
    /// Connects meanwhile, and again and again.
    pub(crate) fn new(config: &RedisConfig) -> Result<Self, StoreError> {
        let failed = |error: &fred::error::Error| failure(config, "connect", error);
        let mut builder = builder(config).map_err(|error| failed(&error))?;
        builder.with_config(|config| config.fail_fast = false);
        let pool = builder.build_pool(config.connections).map_err(|error| failed(&error))?;
        drop(pool.connect());
        Ok(Self { pool, config: config.clone(), was_connected: OnceCell::new() })
    }

    /// Runs a command whose first argument is its key. The first ones wait for the connection, which takes a moment; one that
    /// was there and is gone fails them at once.
    pub(crate) async fn command(
        &self,
        operation: &'static str,
        command: &'static str,
        args: Vec<Bytes>,
    ) -> Result<Reply, StoreError> {
        let connected = self.was_connected.get_or_try_init(|| self.pool.wait_for_connect()).await;
        connected.map_err(|error| failure(&self.config, operation, &error))?;
        let options = Options {
            max_attempts: Some(1),
            fail_fast: true,
            timeout: Some(self.config.attempt),
            ..Options::default()
        };
        let hash = ClusterHash::from(args.first().map_or(&[][..], AsRef::as_ref));
        let command = CustomCommand::new_static(command, hash, false);
        let args: Vec<Value> = args.into_iter().map(Value::Bytes).collect();
        let sent = self.pool.next().with_options(&options).custom(command, args).await;
        sent.map(reply).map_err(|error| failure(&self.config, operation, &error))
    }

    pub(crate) async fn close(&self) {
        let _ = timeout(Duration::from_secs(1), self.pool.quit()).await;
    }
}

impl Drop for Values {
    fn drop(&mut self) {
        // The driver's own tasks go on until they are told to end.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let pool = self.pool.clone();
            runtime.spawn(async move { pool.quit().await });
        }
    }
}

/// How much longer a large call may take: a second for each mebibyte.
fn allowance(args: &[Value]) -> Duration {
    let bytes: usize = args.iter().filter_map(|arg| arg.as_bytes()).map(<[u8]>::len).sum();
    Duration::from_secs(u64::try_from(bytes >> 20).unwrap_or(0))
}

fn builder(config: &RedisConfig) -> Result<Builder, fred::error::Error> {
    let mut builder = Builder::from_config(Config::from_url(&config.secret_url)?);
    builder.set_policy(ReconnectPolicy::new_exponential(0, 20, 500, 2));
    let attempt = config.attempt;
    builder.with_connection_config(|connection| {
        connection.connection_timeout = attempt;
        connection.internal_command_timeout = attempt;
        // A transition that is sent again gets the first reply, so the driver may send it as often as it must.
        connection.max_command_attempts = 16;
        // Following ASK, the driver takes the next reply on the connection for its own, whoever's it is (fred 10.1), and a
        // script must not run where half of its keys are. So it follows nothing, and `persist` tries again.
        connection.max_redirections = 0;
        connection.unresponsive.max_timeout = Some(attempt * 2);
        connection.unresponsive.interval = Duration::from_secs(1);
        connection.tcp = TcpConfig { nodelay: Some(true), ..TcpConfig::default() };
    });
    Ok(builder)
}

/// Passes on what other processes say. The subscription comes back by itself after a failure.
fn listen(subscriber: &SubscriberClient, channel: String, signals: broadcast::Sender<Signal>) -> JoinHandle<()> {
    let (subscriber, mut messages) = (subscriber.clone(), subscriber.message_rx());
    tokio::spawn(async move {
        let _connection = subscriber.connect();
        while subscriber.wait_for_connect().await.is_err() || subscriber.subscribe(channel.as_str()).await.is_err() {
            sleep(BACKOFF.1).await;
        }
        loop {
            match messages.recv().await {
                Ok(message) => {
                    let signal = message.value.as_string().and_then(|text| signal::read(&text));
                    let _ = signal.map(|signal| signals.send(signal));
                }
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => break,
            }
        }
    })
}

fn reply(value: Value) -> Reply {
    match value {
        Value::Null | Value::Queued => Reply::Nil,
        Value::Boolean(value) => Reply::Int(i64::from(value)),
        Value::Integer(value) => Reply::Int(value),
        Value::Double(value) => Reply::Bytes(value.to_string().into()),
        Value::String(value) => Reply::Bytes(value.into_inner()),
        Value::Bytes(value) => Reply::Bytes(value),
        Value::Array(values) => Reply::List(values.into_iter().map(reply).collect()),
        Value::Map(map) => {
            let pairs = map.inner().into_iter().flat_map(|(key, value)| [Reply::Bytes(key.into_bytes()), reply(value)]);
            Reply::List(pairs.collect())
        }
    }
}

/// What a server says while it cannot serve yet, or not here.
const PASSING: [&str; 8] =
    ["LOADING", "READONLY", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "BUSY ", "NOREPLICAS", "UNBLOCKED"];

/// What a script says when its slot is on the move, always before it wrote anything: it first looks for its own reply.
const MOVING: &str = "Script attempted to access a non local key";
/// What the driver says of a Cluster some of whose slots nobody serves at the moment.
const NO_CLUSTER: &str = "Invalid or missing cluster state";
/// What the driver says between two connections, when it has none to send a command on.
const NO_CONNECTION: &str = "Failed to route command";

/// Whether another attempt may succeed.
fn is_passing(error: &fred::error::Error) -> bool {
    use fred::error::ErrorKind as Kind;
    let details = error.details();
    if details.contains("InvalidCertificate") {
        return false;
    }
    if details.starts_with("NOSCRIPT") || details.starts_with("OOM") || details.starts_with("NO") {
        return details.starts_with("NOREPLICAS");
    }
    match error.kind() {
        Kind::IO
        | Kind::Timeout
        | Kind::Canceled
        | Kind::Cluster
        | Kind::Routing
        | Kind::Backpressure
        | Kind::Sentinel => true,
        _ => {
            PASSING.iter().any(|word| details.starts_with(word))
                || details.contains(MOVING)
                || details.starts_with(NO_CLUSTER)
                || details.starts_with(NO_CONNECTION)
        }
    }
}

/// The store's error for the driver's.
fn failure(config: &RedisConfig, operation: &'static str, error: &fred::error::Error) -> StoreError {
    use fred::error::ErrorKind as Kind;
    let details = config.redact(error.details());
    let with = |kind, message: String| StoreError::new(kind, operation, message).with_source(details.clone());
    if details.starts_with("OOM") {
        let message = "the server's memory is full and nothing was written: free some, or raise its maxmemory";
        return with(StoreErrorKind::Unavailable, message.to_owned());
    }
    if details.contains("InvalidCertificate") {
        let message = format!("{} shows a certificate that the system does not trust", config.url());
        return with(StoreErrorKind::Backend, message);
    }
    match error.kind() {
        Kind::Auth | Kind::Config | Kind::Url | Kind::InvalidArgument | Kind::InvalidCommand => {
            with(StoreErrorKind::Backend, format!("{} refuses: {details}", config.url()))
        }
        _ if is_passing(error) => {
            unreachable(config, operation, &format!("no reply within {:?}", config.patience)).with_source(details)
        }
        _ => with(StoreErrorKind::Backend, format!("the server refuses: {details}")),
    }
}

fn unreachable(config: &RedisConfig, operation: &'static str, why: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, operation, format!("{} cannot be used: {why}", config.url()))
}

#[cfg(test)]
mod tests {
    use fred::error::{Error, ErrorKind};

    use super::*;

    fn config() -> RedisConfig {
        RedisConfig::parse("redis://app:s3cret@host").unwrap()
    }

    #[test]
    fn a_full_server_is_named_as_such() {
        let error = Error::new(ErrorKind::Unknown, "OOM command not allowed when used memory > 'maxmemory'.");
        let mapped = failure(&config(), "open", &error);
        assert_eq!(mapped.kind(), StoreErrorKind::Unavailable);
        assert!(mapped.to_string().starts_with("open: the server's memory is full"), "{mapped}");
        assert!(!is_passing(&error));
    }

    #[test]
    fn what_passes_is_tried_again_and_what_does_not_is_not() {
        for details in [
            "LOADING Redis is loading",
            "READONLY You can't write",
            "CLUSTERDOWN",
            "ERR Script attempted to access a non local key",
            "Failed to route command.",
        ] {
            assert!(is_passing(&Error::new(ErrorKind::Unknown, details)), "{details}");
        }
        assert!(is_passing(&Error::new(ErrorKind::IO, "reset")));
        assert!(!is_passing(&Error::new(ErrorKind::IO, "Custom { error: InvalidCertificate(UnknownIssuer) }")));
        for details in ["NOSCRIPT No matching script", "NOPERM this user", "NOAUTH", "ERR unknown command", "WRONGTYPE"]
        {
            assert!(!is_passing(&Error::new(ErrorKind::Unknown, details)), "{details}");
        }
    }

    #[test]
    fn no_error_shows_the_password() {
        let error = Error::new(ErrorKind::Auth, "WRONGPASS s3cret");
        let mapped = failure(&config(), "connect", &error);
        assert!(!format!("{mapped:?} {mapped}").contains("s3cret"));
    }
}
