//! Redis, alone and as a Cluster with replicas.

use std::{fmt::Write as _, fs, path::PathBuf, process::Command};

use super::keeper::{Keeper, directory, free_port, signal, until};
use crate::redis_cli;

/// A server that has written what it acknowledges, so that a crash loses nothing.
pub struct RedisServer {
    port: u16,
    directory: PathBuf,
    keeper: Option<Keeper>,
}

/// Three masters with a replica each.
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

impl RedisServer {
    /// Starts one.
    pub fn start() -> Self {
        Self::with("appendonly yes\nappendfsync always\n")
    }

    fn with(settings: &str) -> Self {
        let (port, directory) = (free_port(), directory("redis"));
        let settings = format!("port {port}\nbind 127.0.0.1\nsave \"\"\ndir {}\n{settings}", directory.display());
        fs::write(directory.join("redis.conf"), settings).unwrap();
        let mut server = Self { port, directory, keeper: None };
        server.run();
        server
    }

    /// Starts it again on its port, with what it had written.
    pub fn run(&mut self) {
        let mut program = Command::new("redis-server");
        program.arg(self.directory.join("redis.conf"));
        self.keeper = Some(Keeper::start(&self.directory, "TERM", &program));
        until("redis-server is not ready", &self.directory, || self.ask(&["PING"]).starts_with("PONG"));
    }

    /// Kills it.
    pub fn crash(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            keeper.end("KILL");
        }
    }

    /// Has it stand still.
    pub fn stop(&self) {
        self.signal("STOP");
    }

    /// Has it go on.
    pub fn go_on(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let pids: Vec<_> = self.keeper.iter().map(|keeper| keeper.pid().to_string()).collect();
        signal(name, &pids);
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs a command.
    pub fn ask(&self, args: &[&str]) -> String {
        redis_cli::ask(self.port, "", args).unwrap()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // One that stands still would not end.
        self.go_on();
        if self.keeper.take().is_none() {
            drop(fs::remove_dir_all(&self.directory));
        }
    }
}

impl RedisCluster {
    /// Starts one, and waits until all nodes know each other. A master that is away for two seconds is replaced.
    pub fn start() -> Self {
        let settings = "appendonly no\ncluster-enabled yes\ncluster-node-timeout 2000\nrepl-diskless-sync-delay 0\n";
        let node = |_| {
            let bus = free_port();
            RedisServer::with(&format!("{settings}cluster-port {bus}\n"))
        };
        let cluster = Self { nodes: (0..6).map(node).collect() };
        let mut meet = Command::new("redis-cli");
        meet.args(["--cluster", "create"]).args(cluster.nodes.iter().map(RedisServer::address));
        let output = meet.args(["--cluster-replicas", "1", "--cluster-yes"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        cluster.await_health();
        cluster
    }

    /// Waits until every slot is served and every replica follows its master.
    pub fn await_health(&self) {
        for node in &self.nodes {
            until("the cluster is not whole", &node.directory, || {
                let replication = node.ask(&["INFO", "replication"]);
                let is_linked =
                    ["master_link_status:up", "connected_slaves:1"].iter().any(|it| replication.contains(it));
                is_linked && node.serves_all()
            });
        }
    }

    /// Waits until the nodes that live say that every slot is served, and know no master that is away.
    pub fn await_service(&self) {
        for node in self.nodes.iter().filter(|node| node.keeper.is_some()) {
            until("the cluster does not serve every slot", &node.directory, || node.serves_all());
        }
    }

    /// The URL, which names every node.
    pub fn url(&self) -> String {
        let mut addresses = self.nodes.iter().map(RedisServer::address);
        let mut url = format!("redis-cluster://{}", addresses.next().unwrap_or_default());
        for (separator, address) in std::iter::once('?').chain(std::iter::repeat('&')).zip(addresses) {
            let _ = write!(url, "{separator}node={address}");
        }
        url
    }

    /// The nodes: first those that were masters in the beginning.
    pub fn nodes(&mut self) -> &mut [RedisServer] {
        &mut self.nodes
    }

    /// Moves this many slots from one master to another.
    pub fn reshard(&self, slots: u32) -> Result<(), String> {
        let node = self.nodes.iter().find(|node| node.keeper.is_some()).ok_or("no node lives")?;
        let nodes = node.ask(&["CLUSTER", "NODES"]);
        let masters = nodes.lines().filter(|line| line.contains("master") && !line.contains("fail"));
        let ids: Vec<_> = masters.filter_map(|line| line.split(' ').next()).collect();
        let [from, .., to] = ids.as_slice() else { return Err(format!("the masters are {ids:?}")) };
        let mut move_slots = Command::new("redis-cli");
        move_slots.args(["--cluster", "reshard", &node.address(), "--cluster-from", from, "--cluster-to", to]);
        let moved = move_slots.args(["--cluster-slots", &slots.to_string(), "--cluster-yes"]).output();
        let moved = moved.map_err(|error| error.to_string())?;
        if moved.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&moved.stdout).into_owned()) }
    }
}

impl RedisServer {
    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn serves_all(&self) -> bool {
        let nodes = self.ask(&["CLUSTER", "NODES"]);
        let masters = nodes.lines().filter(|line| line.contains("master") && !line.contains("fail")).count();
        masters == 3 && self.ask(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
    }
}
