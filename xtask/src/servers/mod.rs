//! The servers that lanes need: started as child processes on loopback ports, or named by the environment.

mod account;
mod daemon;
mod home;
mod pgbouncer;
mod port;
mod postgres;
mod provision;
mod redis;
mod schemathesis;
mod software;

pub(crate) use provision::provision;
pub(crate) use software::Software;

use std::env;
use std::path::PathBuf;

use clap::ValueEnum;

use crate::error::Error;
use daemon::Daemon;

/// A server that a lane may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Server {
    /// A Redis or Valkey on its own.
    Redis,
    /// A Redis Cluster: three masters with a replica each.
    RedisCluster,
    /// A Postgres.
    Postgres,
    /// A `PgBouncer` in transaction mode, in front of the Postgres that is started here.
    #[value(name = "pgbouncer")]
    PgBouncer,
}

impl Server {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Redis, Self::RedisCluster, Self::Postgres, Self::PgBouncer];

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::RedisCluster => "redis-cluster",
            Self::Postgres => "postgres",
            Self::PgBouncer => "pgbouncer",
        }
    }

    /// The environment variable with its URL: taken when set, and what tests find it by.
    pub(crate) fn variable(self) -> &'static str {
        match self {
            Self::Redis => "KORTYX_TEST_REDIS_URL",
            Self::RedisCluster => "KORTYX_TEST_REDIS_CLUSTER_URL",
            Self::Postgres => "KORTYX_TEST_POSTGRES_URL",
            Self::PgBouncer => "KORTYX_TEST_PGBOUNCER_URL",
        }
    }

    /// The server that it stands in front of, and that is started before it.
    fn behind(self) -> Option<Self> {
        match self {
            Self::PgBouncer => Some(Self::Postgres),
            Self::Redis | Self::RedisCluster | Self::Postgres => None,
        }
    }

    /// The URL that the person who runs this gave.
    fn given(self) -> Option<String> {
        env::var(self.variable()).ok().filter(|url| !url.is_empty())
    }

    /// What has to be installed to start it.
    fn software(self) -> &'static [Software] {
        match self {
            Self::Redis | Self::RedisCluster => &[Software::Redis],
            Self::Postgres => &[Software::Postgres],
            Self::PgBouncer => &[Software::Postgres, Software::PgBouncer],
        }
    }
}

/// These programs are installed.
pub(crate) fn installed(programs: &[Software]) -> Result<(), Error> {
    let lacking = software::lacking(&[], programs);
    if lacking.is_empty() { Ok(()) } else { Err(software::missing(&lacking)) }
}

/// Where a server listens, on the loopback interface.
#[derive(Debug, Clone)]
struct Endpoint {
    port: u16,
    password: String,
    /// The same for tests.
    url: String,
}

/// A server that was started here.
#[derive(Debug)]
struct Running {
    server: Server,
    endpoint: Endpoint,
    daemons: Vec<Daemon>,
}

/// Servers that run. They stop when this is dropped.
#[derive(Debug)]
pub(crate) struct Servers {
    running: Vec<Running>,
    /// Where their output goes.
    logs: PathBuf,
    /// Whether a commit is on the disk before it is told.
    durable: bool,
    /// How many databases were made beside that of the cluster.
    databases: u32,
}

impl Servers {
    /// None yet.
    pub(crate) fn new(logs: PathBuf) -> Self {
        Self { running: Vec::new(), logs, durable: false, databases: 0 }
    }

    /// None yet, and commits will cost what they do in earnest.
    pub(crate) fn durable(logs: PathBuf) -> Self {
        Self { durable: true, ..Self::new(logs) }
    }

    /// The variable and the URL of each of these servers; those that are neither given nor running are started.
    pub(crate) fn urls(&mut self, needs: &[Server]) -> Result<Vec<(&'static str, String)>, Error> {
        let lacking = software::lacking(needs, &[]);
        if !lacking.is_empty() {
            return Err(software::missing(&lacking));
        }
        let mut urls = Vec::new();
        for server in needs {
            let url = match server.given() {
                Some(url) => url,
                None => self.started(*server)?.url,
            };
            urls.push((server.variable(), url));
        }
        Ok(urls)
    }

    /// The same URLs, with a new database where Postgres was started here.
    ///
    /// Tests make hundreds of schemas, each with the same functions, and Postgres looks through all functions of a name: what one
    /// program leaves behind would make the next one many times slower.
    pub(crate) fn with_new_database(
        &mut self,
        urls: &[(&'static str, String)],
    ) -> Result<Vec<(&'static str, String)>, Error> {
        let started = |server| self.running.iter().find(|running| running.server == server);
        let Some(postgres) = started(Server::Postgres) else { return Ok(urls.to_vec()) };
        let pooler = started(Server::PgBouncer);
        let own = [Some(postgres), pooler].into_iter().flatten().map(|running| &running.endpoint.url);
        let own: Vec<_> = own.filter(|own| urls.iter().any(|(_, url)| url == *own)).cloned().collect();
        if own.is_empty() {
            return Ok(urls.to_vec());
        }
        let name = format!("tests_{}", self.databases);
        postgres::add_database(&postgres.endpoint, &name)?;
        self.databases += 1;
        let moved = |url: &String| if own.contains(url) { postgres::in_database(url, &name) } else { url.clone() };
        Ok(urls.iter().map(|(variable, url)| (*variable, moved(url))).collect())
    }

    /// Stops what is neither among these nor stands behind one of them.
    pub(crate) fn keep(&mut self, needs: &[Server]) {
        let behind: Vec<_> = needs.iter().filter_map(|server| server.behind()).collect();
        self.running.retain(|running| needs.contains(&running.server) || behind.contains(&running.server));
    }

    /// How servers ended that should still run. They are started again when they are next needed.
    pub(crate) fn died(&mut self) -> Vec<Error> {
        let mut errors = Vec::new();
        let mut gone = Vec::new();
        for running in &mut self.running {
            let died: Vec<_> = running.daemons.iter_mut().filter_map(Daemon::died).collect();
            if !died.is_empty() || running.server.behind().is_some_and(|server| gone.contains(&server)) {
                gone.push(running.server);
            }
            errors.extend(died);
        }
        self.running.retain(|running| !gone.contains(&running.server));
        errors
    }

    fn started(&mut self, server: Server) -> Result<Endpoint, Error> {
        if let Some(running) = self.running.iter().find(|running| running.server == server) {
            return Ok(running.endpoint.clone());
        }
        let (endpoint, daemons) = match server {
            Server::Redis => redis::start(&self.logs, self.durable)?,
            Server::RedisCluster => redis::start_cluster(&self.logs)?,
            Server::Postgres => postgres::start(&self.logs, self.durable)?,
            Server::PgBouncer => {
                let postgres = self.started(Server::Postgres)?;
                pgbouncer::start(&self.logs, &postgres)?
            }
        };
        self.running.push(Running { server, endpoint: endpoint.clone(), daemons });
        Ok(endpoint)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpStream};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Nothing to test where it is not installed.
    fn installed(software: &[Software]) -> bool {
        software.iter().all(|software| software.installed())
    }

    fn listens(endpoint: &Endpoint) -> bool {
        TcpStream::connect((Ipv4Addr::LOCALHOST, endpoint.port)).is_ok()
    }

    fn stop(servers: &mut Servers, server: Server) {
        let running = servers.running.iter_mut().find(|running| running.server == server).unwrap();
        running.daemons.iter_mut().for_each(Daemon::kill);
    }

    #[test]
    fn each_program_gets_a_database_of_its_own() {
        if !installed(&[Software::Postgres]) {
            return;
        }
        let logs = tempfile::tempdir().unwrap();
        let mut servers = Servers::new(logs.path().to_owned());
        servers.started(Server::Postgres).unwrap();
        let url = servers.running[0].endpoint.url.clone();
        let urls = [("A", url.clone()), ("B", "redis://elsewhere/postgres".to_owned())];

        let first = servers.with_new_database(&urls).unwrap();
        let second = servers.with_new_database(&urls).unwrap();

        assert!(first[0].1 != url && second[0].1 != url && first[0].1 != second[0].1, "{first:?} {second:?}");
        assert_eq!((&first[1], &second[1]), (&urls[1], &urls[1]));
    }

    #[test]
    fn servers_run_until_no_lane_needs_them() {
        if !installed(&[Software::Redis]) {
            return;
        }
        let logs = tempfile::tempdir().unwrap();
        let mut servers = Servers::new(logs.path().to_owned());
        let first = servers.started(Server::Redis).unwrap();

        servers.keep(&[Server::Redis, Server::Postgres]);
        let second = servers.started(Server::Redis).unwrap();
        assert_eq!(first.url, second.url);
        assert!(listens(&second));

        servers.keep(&[Server::Postgres]);
        assert!(!listens(&second));
    }

    #[test]
    fn servers_stop_when_the_program_panics() {
        if !installed(&[Software::Redis]) {
            return;
        }
        let logs = tempfile::tempdir().unwrap();
        let mut endpoint = None;

        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut servers = Servers::new(logs.path().to_owned());
            endpoint = servers.started(Server::Redis).ok();
            assert!(endpoint.as_ref().is_some_and(|endpoint| !listens(endpoint)), "as it should");
        }));

        assert!(panicked.is_err());
        assert!(!listens(&endpoint.unwrap()));
    }

    #[test]
    fn a_server_that_died_is_told_once_and_started_again_with_those_before_it() {
        if !installed(&[Software::Postgres, Software::PgBouncer]) {
            return;
        }
        let logs = tempfile::tempdir().unwrap();
        let mut servers = Servers::new(logs.path().to_owned());
        let first = servers.started(Server::PgBouncer).unwrap();
        servers.keep(&[Server::PgBouncer]);
        assert!(servers.died().is_empty());

        stop(&mut servers, Server::Postgres);

        let died: Vec<_> = servers.died().iter().map(ToString::to_string).collect();
        assert!(matches!(died.as_slice(), [one] if one.starts_with("postgres ended (signal: 9")), "{died:?}");
        assert!(servers.died().is_empty());
        assert!(!listens(&first), "the one in front of it still runs");
        assert!(listens(&servers.started(Server::PgBouncer).unwrap()));
    }
}
