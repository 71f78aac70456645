//! What the tests of this crate share: a server of their own, or the one that the environment names.
//!
//! `KORTYX_TEST_POSTGRES_URL` and `KORTYX_TEST_PGBOUNCER_URL` name servers that run already. Without them a private server is
//! started on a free loopback port, in a temporary directory, and stopped when the test's process ends.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails in a test panics")]

use std::{
    env, fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use kortyx_postgres::{ClockShift, PostgresConfig};

/// Runs a program until its standard input ends, then stops it and removes the directory.
const KEEPER: &str = r#"trap '' INT TERM
directory=$1; shift
"$@" </dev/null >>"$directory/log" 2>&1 &
child=$!
cat >/dev/null
kill -INT $child; wait $child
rm -rf "$directory""#;

/// The address of the server for this process's tests.
pub(crate) fn url() -> String {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    env::var("KORTYX_TEST_POSTGRES_URL")
        .unwrap_or_else(|_| SERVER.get_or_init(|| Some(Server::start())).as_ref().map(Server::url).unwrap())
}

/// A schema that no other test uses.
pub(crate) fn fresh_schema() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("t_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn config_at(url: &str, schema: &str, shift: &ClockShift) -> PostgresConfig {
    PostgresConfig::parse(url).unwrap().schema(schema).unwrap().clock_shift(shift.clone())
}

/// A private server.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) directory: PathBuf,
    pub(crate) keeper: Option<Child>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let directory = tempfile::Builder::new().prefix("kortyx-postgres-").tempdir().unwrap().keep();
        give_away(&directory);
        let data = directory.join("data");
        let mut make = unprivileged(&binary("initdb"));
        make.args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-N", "-D"]).arg(&data);
        let output = make.current_dir(&directory).output().unwrap();
        assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
        let mut server = Self { port: free_port(), directory, keeper: None };
        server.run();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable", self.port)
    }

    /// Starts the server's process, and waits until it lets users in.
    pub(crate) fn run(&mut self) {
        let settings = [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "fsync=off",
            "max_connections=300",
            "shared_buffers=64MB",
            "log_min_messages=warning",
            "deadlock_timeout=200ms",
        ];
        let mut program = unprivileged(&binary("postgres"));
        program.arg("-D").arg(self.directory.join("data")).args(["-p", &self.port.to_string()]);
        for setting in settings {
            program.args(["-c", setting]);
        }
        self.keeper = Some(keep(&self.directory, &program));
        await_port(self.port, &self.directory);
        await_server(self.port);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            drop(keeper.stdin.take());
            let _ = keeper.wait();
        }
    }
}

/// A private pooler in transaction mode, which runs until this process ends.
pub(crate) struct Pooler {
    pub(crate) url: String,
    _keeper: Child,
}

impl Pooler {
    /// In front of this server. The setting says how few connections to it there are, so that sessions are handed on.
    pub(crate) fn start(server: &str, setting: &str) -> Self {
        let port = free_port();
        let (login, place) = server.split_once("://").unwrap().1.split_once('@').unwrap();
        let password = login.split_once(':').map(|(_, password)| format!(" password={password}")).unwrap_or_default();
        let (place, database) = place.split_once('/').unwrap();
        let ((host, server_port), database) = (place.split_once(':').unwrap(), database.split('?').next().unwrap());
        let directory = tempfile::Builder::new().prefix("kortyx-pgbouncer-").tempdir().unwrap().keep();
        let settings = directory.join("pgbouncer.ini");
        let text = format!(
            "[databases]\npostgres = user=postgres{password} host={host} port={server_port} dbname={database}\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
             max_client_conn = 500\n{setting}\nlogfile = {}\n",
            directory.join("pooler.log").display()
        );
        fs::write(&settings, text).unwrap();
        give_away(&directory);
        let path = which(&["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"])
            .unwrap_or_else(|| panic!("PgBouncer is not installed. Run: apt-get install -y pgbouncer"));
        let mut program = unprivileged(&path);
        program.arg(&settings);
        let keeper = keep(&directory, &program);
        await_port(port, &directory);
        Self { url: format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable"), _keeper: keeper }
    }
}

/// Starts a program with a keeper that stops it when this process ends, however it ends.
fn keep(directory: &Path, program: &Command) -> Child {
    let mut keeper = Command::new("sh");
    keeper.args(["-c", KEEPER, "keeper"]).arg(directory).arg(program.get_program()).args(program.get_args());
    keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn binary(name: &str) -> PathBuf {
    let mut found: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.filter_map(|version| Some(version.ok()?.path().join("bin").join(name))).collect())
        .unwrap_or_default();
    found.sort();
    found.extend(["/usr/local/bin", "/usr/bin"].map(|directory| Path::new(directory).join(name)));
    found.retain(|path| path.exists());
    let newest = found.into_iter().next_back();
    newest.unwrap_or_else(|| panic!("{name} is not installed. Run: apt-get install -y postgresql"))
}

fn which(paths: &[&str]) -> Option<PathBuf> {
    paths.iter().map(PathBuf::from).find(|path| path.exists())
}

/// The server refuses to run for root: it runs for `postgres` then.
fn unprivileged(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]).arg(program);
    command
}

pub(crate) fn give_away(directory: &Path) {
    if is_root() {
        assert!(Command::new("chown").args(["-R", "postgres"]).arg(directory).status().unwrap().success());
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout.starts_with(b"0\n")
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn await_port(port: u16, directory: &Path) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let log = || fs::read_to_string(directory.join("log")).unwrap_or_default();
        assert!(Instant::now() < deadline, "nothing listens on port {port}: {}", log());
        thread::sleep(Duration::from_millis(20));
    }
}

fn await_server(port: u16) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let mut ask = Command::new(binary("pg_isready"));
        let answer = ask.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]).status().unwrap();
        if answer.success() {
            return;
        }
        assert!(Instant::now() < deadline, "the server on port {port} does not get ready");
        thread::sleep(Duration::from_millis(20));
    }
}
