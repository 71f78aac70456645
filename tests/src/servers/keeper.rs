//! A server process that ends with the test, however that ends.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU16, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Longer than any server needs to get ready, on a busy machine.
const LIMIT: Duration = Duration::from_mins(1);

/// Runs a program until its input ends, then stops it and removes the directory; or ends it with the signal that it reads.
const KEEPER: &str = r#"trap '' INT TERM
directory=$1; stop=$2; shift 2
"$@" </dev/null >>"$directory/log" 2>&1 &
child=$!
echo $child
if read -r signal; then
    kill -s "$signal" $child; wait $child
else
    kill -s "$stop" $child; wait $child; rm -rf "$directory"
fi"#;

/// A server's process and what watches over it.
pub(super) struct Keeper {
    shell: Child,
    pid: u32,
}

impl Keeper {
    /// Starts a program whose output goes to the file `log` of a directory, which goes with it.
    pub(super) fn start(directory: &Path, stop: &str, program: &Command) -> Self {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", KEEPER, "keeper"])
            .arg(directory)
            .arg(stop)
            .arg(program.get_program())
            .args(program.get_args());
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { shell, pid: line.trim().parse().unwrap() }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Ends the process with a signal. Its directory stays.
    pub(super) fn end(&mut self, signal: &str) {
        if let Some(mut stdin) = self.shell.stdin.take() {
            drop(writeln!(stdin, "{signal}"));
            self.shell.wait().unwrap();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        drop(self.shell.wait());
    }
}

/// Sends a signal to processes. Some may be gone.
pub(super) fn signal(name: &str, pids: &[String]) {
    drop(Command::new("kill").args(["-s", name]).args(pids).stderr(Stdio::null()).status());
}

/// A new directory that its keeper removes.
pub(super) fn directory(name: &str) -> PathBuf {
    tempfile::Builder::new().prefix(&format!("kortyx-{name}-")).tempdir().unwrap().keep()
}

/// Waits until a server is as it should be.
pub(super) fn until(what: &str, directory: &Path, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is_so() {
        let log = || std::fs::read_to_string(directory.join("log")).unwrap_or_default();
        assert!(Instant::now() < end, "{what} within {LIMIT:?}: {}", log());
        thread::sleep(Duration::from_millis(20));
    }
}

/// A port outside the range of ports that clients are given, so that no connection takes it while its server is away.
pub(super) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let base = 22_000 + u16::try_from(std::process::id() % 180).unwrap() * 50;
    (0..10_000)
        .map(|_| base + NEXT.fetch_add(1, Ordering::Relaxed))
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .unwrap()
}
