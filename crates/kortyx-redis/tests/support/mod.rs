//! What the tests of this crate share: servers of their own.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails in a test panics")]

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use kortyx_redis::{RedisConfig, RedisStore};
use kortyx_store::Store;

pub(crate) mod proxy;
pub(crate) mod relay;

/// A server of the test's own on a free loopback port, gone with its data when dropped.
pub(crate) struct Server {
    child: Option<Child>,
    file: Option<String>,
    pub(crate) port: u16,
    directory: tempfile::TempDir,
    settings: Vec<String>,
}

impl Server {
    /// A server that keeps everything in memory.
    pub(crate) fn start() -> Self {
        Self::with(&["--save", "", "--appendonly", "no"])
    }

    pub(crate) fn with(settings: &[&str]) -> Self {
        Self::from(None, settings)
    }

    /// A server whose settings start with a file.
    fn from_file(file: &str, settings: &[&str]) -> Self {
        Self::from(Some(file), settings)
    }

    fn from(file: Option<&str>, settings: &[&str]) -> Self {
        let mut server = Self {
            child: None,
            file: file.map(str::to_owned),
            port: free_port(),
            directory: tempfile::tempdir().unwrap(),
            settings: settings.iter().map(|setting| (*setting).to_owned()).collect(),
        };
        server.run();
        server
    }

    /// Starts it, also again on the same port and directory.
    pub(crate) fn run(&mut self) {
        let mut command = Command::new("redis-server");
        command.args(&self.file).args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--dir"]);
        command.arg(self.directory.path()).args(&self.settings);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().unwrap_or_else(|error| {
            panic!(
                "redis-server cannot be started ({error}): install it with `sudo apt-get install -y redis-server`, or set \
                 KORTYX_TEST_REDIS_URL and KORTYX_TEST_REDIS_CLUSTER_URL where a test takes them"
            )
        }));
        let until = Instant::now() + Duration::from_secs(20);
        while !["PONG", "NOAUTH"].iter().any(|greeting| cli(self.port, &["PING"]).starts_with(greeting)) {
            assert!(Instant::now() < until, "redis-server did not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills it, without any farewell.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Sends a signal (`STOP`, `CONT`, `TERM`).
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([format!("-{name}"), pid]).status().unwrap().success());
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn config(&self) -> RedisConfig {
        RedisConfig::parse(&self.url()).unwrap()
    }

    pub(crate) async fn store(&self) -> RedisStore {
        set_up(self.config()).await
    }

    /// Runs a command beside the store.
    pub(crate) fn cli(&self, args: &[&str]) -> String {
        cli(self.port, args)
    }

    /// Runs a command and gives its reply line by line.
    pub(crate) fn lines(&self, args: &[&str]) -> Vec<String> {
        self.cli(args).lines().map(str::to_owned).filter(|line| !line.is_empty()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A master with a replica, and a sentinel that puts the one in the other's place.
pub(crate) struct Watched {
    pub(crate) master: Server,
    replica: Server,
    sentinel: Server,
}

impl Watched {
    pub(crate) fn start() -> Self {
        let master = Server::start();
        let port = master.port.to_string();
        let replica = Server::with(&["--save", "", "--replicaof", "127.0.0.1", &port]);
        let file = replica.directory.path().join("sentinel.conf");
        let watch = format!(
            "sentinel monitor main 127.0.0.1 {port} 1\nsentinel down-after-milliseconds main 500\n\
             sentinel failover-timeout main 5000\n"
        );
        std::fs::write(&file, watch).unwrap();
        let sentinel = Server::from_file(file.to_str().unwrap(), &["--sentinel"]);
        let watched = Self { master, replica, sentinel };
        watched.until("the replica did not join", |watched| {
            watched.replica.cli(&["INFO", "replication"]).contains("master_link_status:up")
                && watched.sentinel.cli(&["SENTINEL", "replicas", "main"]).contains("127.0.0.1")
        });
        watched
    }

    fn until(&self, problem: &str, is_done: impl Fn(&Self) -> bool) {
        let until = Instant::now() + Duration::from_secs(30);
        while !is_done(self) {
            assert!(Instant::now() < until, "{problem}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the replica has all that was written: both are at the same place of the master's stream.
    pub(crate) fn catch_up(&self) {
        let place = |info: String| {
            let found = info.lines().find_map(|line| line.strip_prefix("master_repl_offset:"));
            found.map(|place| place.trim().to_owned())
        };
        self.until("the replica did not catch up", |watched| {
            let written = place(watched.master.cli(&["INFO", "replication"]));
            written.is_some() && written == place(watched.replica.cli(&["INFO", "replication"]))
        });
    }

    pub(crate) fn url(&self) -> String {
        format!("redis-sentinel://127.0.0.1:{}?sentinelServiceName=main", self.sentinel.port)
    }
}

/// Three masters with all slots.
pub(crate) struct Cluster {
    pub(crate) servers: Vec<Server>,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let settings =
            ["--save", "", "--appendonly", "no", "--cluster-enabled", "yes", "--cluster-node-timeout", "15000"];
        let servers: Vec<_> = (0..3).map(|_| Server::with(&settings)).collect();
        let nodes: Vec<_> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
        let made = Command::new("redis-cli")
            .args(["--cluster", "create"])
            .args(&nodes)
            .args(["--cluster-replicas", "0", "--cluster-yes"])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
        let until = Instant::now() + Duration::from_secs(30);
        while !servers.iter().all(|server| server.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok")) {
            assert!(Instant::now() < until, "the cluster did not come up");
            std::thread::sleep(Duration::from_millis(50));
        }
        Self { servers }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis-cluster://127.0.0.1:{}", self.servers.first().unwrap().port)
    }
}

pub(crate) async fn set_up(config: RedisConfig) -> RedisStore {
    let store = RedisStore::connect(config).await.unwrap();
    store.setup().await.unwrap();
    store
}

fn cli(port: u16, args: &[&str]) -> String {
    let output = Command::new("redis-cli").args(["-p", &port.to_string()]).args(args).output();
    String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
}

/// A port outside the range of ports that clients are given, so that no connection takes it meanwhile; with room for a
/// cluster's bus 10,000 above.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let base = 10_000 + u64::from(std::process::id() % 200) * 50;
    for _ in 0..10_000 {
        let port = u16::try_from(base + NEXT.fetch_add(1, Ordering::Relaxed)).unwrap();
        let is_free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if is_free(port) && is_free(port + 10_000) {
            return port;
        }
    }
    panic!("no port is free")
}
