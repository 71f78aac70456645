//! A temporary folder that servers live in, and what is left of them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Longer than a server needs to start or to stop, on a busy machine.
const LIMIT: Duration = Duration::from_mins(1);
const VARIABLES: [&str; 4] =
    ["KORTYX_TEST_REDIS_URL", "KORTYX_TEST_REDIS_CLUSTER_URL", "KORTYX_TEST_POSTGRES_URL", "KORTYX_TEST_PGBOUNCER_URL"];

/// Where servers put their files.
pub(crate) struct World {
    folder: TempDir,
}

impl World {
    /// An empty one, that accounts without rights may enter.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        fs::set_permissions(folder.path().join("tmp"), fs::Permissions::from_mode(0o777)).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// `cargo xtask serve`, which knows no server of the person who runs the tests.
    pub(crate) fn serve(&self, args: &[&str]) -> Command {
        let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
        xtask.arg("serve").args(args).env("TMPDIR", self.path().join("tmp"));
        for variable in VARIABLES {
            xtask.env_remove(variable);
        }
        xtask
    }

    /// `cargo xtask serve` without a command, and the URL that it printed.
    pub(crate) fn running(&self, server: &str) -> (Child, String) {
        let mut child = self.serve(&[server]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let (_, url) = line.trim().split_once('=').unwrap();
        (child, url.trim_matches('\'').to_owned())
    }

    /// Nothing is left of any server of this world.
    pub(crate) fn is_clean(&self) -> bool {
        self.folders("").is_empty()
    }

    /// The names of what servers left that begin so.
    pub(crate) fn folders(&self, prefix: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path().join("tmp")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with(prefix)).collect()
    }

    /// A search path with these programs and what shells need, and nothing else.
    pub(crate) fn search_path(&self, programs: &[(&str, &Path)]) -> PathBuf {
        let folder = self.path().join("bin");
        fs::create_dir(&folder).unwrap();
        let tools = ["sh", "env", "id", "ln", "rm", "sleep", "printenv"];
        for (name, path) in tools.map(|tool| (tool, which::which(tool).unwrap())) {
            symlink(path, folder.join(name)).unwrap();
        }
        // It runs what it is given, as the real one does for those with rights.
        symlink(which::which("env").unwrap(), folder.join("sudo")).unwrap();
        for (name, path) in programs {
            symlink(path, folder.join(name)).unwrap();
        }
        folder
    }
}

/// These servers are installed, as the system says. Without them there is nothing to test.
pub(crate) fn installed(servers: &[&str]) -> bool {
    servers.iter().all(|server| {
        let found = match *server {
            "redis" => which::which("redis-server").is_ok() && which::which("redis-cli").is_ok(),
            "postgres" => which::which("initdb").is_ok() || Path::new("/usr/lib/postgresql").exists(),
            "pgbouncer" => which::which("pgbouncer").is_ok() || Path::new("/usr/sbin/pgbouncer").exists(),
            other => panic!("no such server: {other}"),
        };
        if !found {
            eprintln!("{server} is not installed: nothing is tested here");
        }
        found
    })
}

/// Whether somebody listens where a URL points.
pub(crate) fn listens(url: &str) -> bool {
    let (_, address) = url.rsplit_once('@').unwrap();
    TcpStream::connect(address.split(['/', '?']).next().unwrap()).is_ok()
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LIMIT, "not in {LIMIT:?}: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn signal(child: &Child, signal: &str) {
    let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// What a program printed, when it succeeded.
pub(crate) fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// What a program complained about.
pub(crate) fn complaint(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}
