//! Postgres, never as root.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::keeper::{Keeper, directory, free_port, signal, until};

/// A crash of the server loses nothing; without `fsync` only one of the system would.
const SETTINGS: [&str; 6] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=200",
    "fsync=off",
    "shared_buffers=64MB",
    "log_min_messages=fatal",
];

/// A server with an empty database.
pub struct PostgresServer {
    port: u16,
    directory: PathBuf,
    keeper: Option<Keeper>,
}

impl PostgresServer {
    /// Starts one.
    pub fn start() -> Self {
        let directory = directory("postgres");
        give_away(&directory);
        let mut make = unprivileged(&binary("initdb"));
        make.args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-N", "-D"])
            .arg(directory.join("data"));
        let output = make.current_dir(&directory).output().unwrap();
        assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
        let mut server = Self { port: free_port(), directory, keeper: None };
        server.run();
        server
    }

    /// Starts it again on its port, with what it had written.
    pub fn run(&mut self) {
        let mut program = unprivileged(&binary("postgres"));
        program.arg("-D").arg(self.directory.join("data")).args(["-p", &self.port.to_string()]);
        program.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
        self.keeper = Some(Keeper::start(&self.directory, "INT", &program));
        let mut ready = Command::new(binary("pg_isready"));
        ready.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
        until("postgres is not ready", &self.directory, || ready.status().unwrap().success());
    }

    /// Ends its processes at once, with every connection, and without a word to anybody.
    pub fn crash(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            keeper.end("QUIT");
        }
    }

    /// Has it, with every process that serves a connection, stand still.
    pub fn stop(&self) {
        self.signal("STOP");
    }

    /// Has it go on.
    pub fn go_on(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let Some(keeper) = &self.keeper else { return };
        let pid = keeper.pid().to_string();
        let children = Command::new("ps").args(["-o", "pid=", "--ppid", &pid]).output().unwrap();
        let children = String::from_utf8_lossy(&children.stdout).into_owned();
        let pids: Vec<_> = std::iter::once(pid).chain(children.split_whitespace().map(str::to_owned)).collect();
        signal(name, &pids);
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends the connections of every client.
    pub fn end_connections(&self) {
        let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        let mut psql = Command::new(binary("psql"));
        psql.args(["-X", "-q", "-w", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
        let ended = psql.args(["-U", "postgres", "-d", "postgres", "-c", sql]).stdout(Stdio::null()).status();
        assert!(ended.unwrap().success(), "psql cannot end connections");
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // One that stands still would not end.
        self.go_on();
        if self.keeper.take().is_none() {
            drop(fs::remove_dir_all(&self.directory));
        }
    }
}

/// The newest one that is installed.
fn binary(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut found: Vec<_> = versions.filter_map(|version| Some(version.ok()?.path().join("bin").join(name))).collect();
    found.sort();
    found.extend(["/usr/local/bin", "/usr/bin"].map(|directory| Path::new(directory).join(name)));
    found.retain(|path| path.exists());
    let newest = found.iter().rev().find(|path| path.starts_with("/usr/lib")).or(found.first());
    newest.cloned().unwrap_or_else(|| panic!("{name} is not installed. Run: apt-get install -y postgresql"))
}

/// A program as an account that servers accept: they refuse root.
fn unprivileged(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]).arg(program);
    command
}

/// Gives a directory and what is in it to that account.
fn give_away(directory: &Path) {
    if rustix::process::geteuid().is_root() {
        assert!(Command::new("chown").args(["-R", "postgres"]).arg(directory).status().unwrap().success());
    }
}
