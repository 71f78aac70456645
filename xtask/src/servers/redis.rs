//! Redis, alone and as a cluster.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Endpoint;
use super::daemon::{Daemon, Stop};
use super::home::Home;
use super::port;
use super::software::{self, Software};
use crate::error::Error;

/// Three masters, then a replica of each.
const NODES: usize = 6;
/// What is acknowledged is on the disk, as `docs/redis.md` has it where nothing may be lost.
const DURABLE: &str = "appendonly yes\nappendfsync always\n";
const NOT_DURABLE: &str = "appendonly no\n";
/// Longer than a question to a server that runs takes.
const QUESTION: Duration = Duration::from_secs(5);
/// Longer than the nodes of a cluster need to meet.
const MEETING: Duration = Duration::from_mins(1);

/// Starts a Redis, which keeps everything in memory only unless it shall be durable.
pub(super) fn start(logs: &Path, durable: bool) -> Result<(Endpoint, Vec<Daemon>), Error> {
    let password = software::password()?;
    let keeps = if durable { DURABLE } else { NOT_DURABLE };
    let start = |port| Ok((port, node("redis", (port, None), keeps, &password, logs)?));
    let (port, daemon) = port::retry(port::free, start)?;
    let url = format!("redis://default:{password}@127.0.0.1:{port}");
    Ok((Endpoint { port, password, url }, vec![daemon]))
}

/// Starts a Redis Cluster. The URL names its masters, the others after the first as parameters `node`.
pub(super) fn start_cluster(logs: &Path) -> Result<(Endpoint, Vec<Daemon>), Error> {
    let password = software::password()?;
    let mut ports = Vec::new();
    let mut nodes = Vec::new();
    for number in 1..=NODES {
        let name = format!("redis-cluster-{number}");
        let pick = || Ok((port::free()?, port::free()?));
        let start = |(port, bus)| Ok((port, node(&name, (port, Some(bus)), NOT_DURABLE, &password, logs)?));
        let (port, daemon) = port::retry(pick, start)?;
        ports.push(port);
        nodes.push(daemon);
    }
    meet(&mut nodes, &ports, &password)?;
    for (node, port) in nodes.iter_mut().zip(&ports) {
        node.wait(|home| {
            let ask = |question| ask(home, *port, &password, question);
            let served = ask(&["cluster", "info"])?.contains("cluster_state:ok");
            Ok(served && is_whole(&ask(&["cluster", "nodes"])?) && is_linked(&ask(&["info", "replication"])?))
        })?;
    }
    let mut masters = ports.into_iter().take(NODES / 2);
    let port = masters.next().unwrap_or_default();
    let mut url = format!("redis-cluster://default:{password}@127.0.0.1:{port}");
    for (separator, port) in ['?', '&'].into_iter().zip(masters) {
        let _ = write!(url, "{separator}node=127.0.0.1:{port}");
    }
    Ok((Endpoint { port, password, url }, nodes))
}

fn node(
    name: &str,
    (port, bus): (u16, Option<u16>),
    keeps: &str,
    password: &str,
    logs: &Path,
) -> Result<Daemon, Error> {
    let server = software::find(&["redis-server", "valkey-server"]).ok_or_else(|| Software::Redis.missing())?;
    let home = Home::new(name, None)?;
    let mut config = format!(
        "bind 127.0.0.1\nport {port}\nrequirepass {password}\nmasterauth {password}\nsave \"\"\n{keeps}\
         maxmemory-policy noeviction\n"
    );
    if let Some(bus) = bus {
        // Nobody takes the place of a master that only was busy: tests of that have a cluster of their own.
        let _ = write!(
            config,
            "cluster-enabled yes\ncluster-port {bus}\ncluster-config-file nodes.conf\ncluster-node-timeout 15000\n\
             repl-diskless-sync yes\nrepl-diskless-sync-delay 0\n"
        );
    }
    let mut command = home.command(&server);
    command.arg(home.write("redis.conf", &config)?);
    let mut daemon = Daemon::spawn(name, command, Stop::Terminate, logs, home)?;
    daemon.wait(|home| Ok(ask(home, port, password, &["ping"])?.trim() == "PONG"))?;
    Ok(daemon)
}

fn meet(nodes: &mut [Daemon], ports: &[u16], password: &str) -> Result<(), Error> {
    let Some(first) = nodes.first() else { return Ok(()) };
    let mut command = first.home().command(&cli()?);
    command.env("REDISCLI_AUTH", password).args(["--cluster", "create"]);
    command.args(ports.iter().map(|port| format!("127.0.0.1:{port}")));
    command.args(["--cluster-replicas", "1", "--cluster-yes"]);
    let met = first.home().run(command, MEETING);
    // A node that died explains more than the command that missed it.
    match nodes.iter_mut().find_map(Daemon::died) {
        Some(died) => Err(died),
        None => met.map(drop),
    }
}

fn ask(home: &Home, port: u16, password: &str, question: &[&str]) -> Result<String, Error> {
    let mut command = home.command(&cli()?);
    command.env("REDISCLI_AUTH", password).args(["-h", "127.0.0.1", "-p", &port.to_string()]).args(question);
    home.run(command, QUESTION)
}

fn cli() -> Result<PathBuf, Error> {
    software::find(&["redis-cli", "valkey-cli"]).ok_or_else(|| Software::Redis.missing())
}

/// A node knows, and reaches, every master and every replica; it hears of them one by one.
fn is_whole(nodes: &str) -> bool {
    // `<id> <address> <flags> <master> <ping> <pong> <epoch> <link> <slots>…`
    let count = |role: &str| {
        let has = |line: &&str| line.contains(role) && line.contains(" connected");
        nodes.lines().filter(has).count()
    };
    count("master ") == NODES / 2 && count("slave ") == NODES / 2
}

/// A replica follows its master, and a master has a replica.
fn is_linked(replication: &str) -> bool {
    let has = |line: &str| replication.lines().any(|one| one.trim_end() == line);
    if has("role:master") { has("connected_slaves:1") } else { has("master_link_status:up") }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn a_cluster_is_whole_when_a_node_reaches_every_master_and_every_replica() {
        let master = "id 127.0.0.1:1@2 master - 0 1 2 connected 0-5460\n";
        let replica = "id 127.0.0.1:1@2 slave id 0 1 2 connected\n";
        let lost = "id 127.0.0.1:1@2 slave,fail? id 0 1 2 disconnected\n";
        let myself = "id 127.0.0.1:1@2 myself,master - 0 1 2 connected 0-5460\n";

        assert!(is_whole(&(master.repeat(2) + myself + &replica.repeat(3))));
        assert!(!is_whole(&(master.repeat(3) + &replica.repeat(2) + lost)));
        assert!(!is_whole(&(master.repeat(4) + &replica.repeat(2))));
    }

    #[test]
    fn a_pair_is_linked_when_both_sides_say_so() {
        assert!(is_linked("role:master\r\nconnected_slaves:1\r\n"));
        assert!(!is_linked("role:master\r\nconnected_slaves:0\r\n"));
        assert!(is_linked("role:slave\r\nmaster_link_status:up\r\n"));
        assert!(!is_linked("role:slave\r\nmaster_link_status:down\r\n"));
    }

    #[test]
    fn a_port_that_somebody_has_taken_is_told_from_other_failures() {
        if !Software::Redis.installed() {
            return;
        }
        let logs = tempfile::tempdir().unwrap();
        let stranger = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = stranger.local_addr().unwrap().port();

        let error = node("redis", (port, None), NOT_DURABLE, "secret", logs.path()).unwrap_err();

        assert!(matches!(&error, Error::PortTaken { server } if server == "redis"), "{error}");
    }
}
