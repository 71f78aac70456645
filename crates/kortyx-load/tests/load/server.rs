//! The server process, and what it holds.

use std::{fs, net::SocketAddr, process::Stdio, time::Duration};

use kortyx_load::{Orders, RELEASE, REPORT, Report};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{sleep, timeout},
};

/// Longer than a server takes to end, also on a busy machine.
const END: Duration = Duration::from_mins(1);

/// Files that a store opens when it first needs them.
const STORE: usize = 8;

/// Where a server keeps its runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    InFile,
    InMemory,
}

/// A server process. It is killed when this is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    _directory: TempDir,
}

impl Server {
    /// A server that forgets nothing, with the default limits.
    pub(crate) async fn start(kept: Kept) -> Self {
        Self::with(kept, |_| {}).await
    }

    pub(crate) async fn with(kept: Kept, change: impl FnOnce(&mut Orders)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut orders = Orders {
            file: (kept == Kept::InFile).then(|| directory.path().join("kortyx.db")),
            keep_alive: Duration::from_secs(15),
            read: Duration::from_secs(10),
            retention: Duration::from_hours(24),
        };
        change(&mut orders);
        let mut command = Command::new(env!("CARGO_BIN_EXE_kortyx-load"));
        command.arg(serde_json::to_string(&orders).unwrap());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = stdout.next_line().await.unwrap().expect("the server did not start").parse().unwrap();
        Self { address, child, stdin, stdout, _directory: directory }
    }

    /// Lets every run of the workflow `hold` go on.
    pub(crate) async fn release(&mut self) {
        self.say(RELEASE).await;
    }

    pub(crate) async fn report(&mut self) -> Report {
        self.say(REPORT).await;
        serde_json::from_str(&self.stdout.next_line().await.unwrap().expect("the server has ended")).unwrap()
    }

    async fn say(&mut self, line: &str) {
        self.stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// What it holds in memory.
    pub(crate) fn memory(&self) -> Memory {
        Memory { pid: self.child.id().expect("the server has ended") }
    }

    /// Waits until no run executes and no more files and connections are open than at some time before.
    pub(crate) async fn settles(&mut self, before: usize) {
        let descriptors = before + STORE;
        let mut left = (0, 0);
        for _ in 0..600 {
            left = (self.report().await.driven, self.memory().descriptors());
            if left.0 == 0 && left.1 <= descriptors {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
        let (runs, open) = left;
        assert!(runs == 0 && open <= descriptors, "{runs} runs execute, {open} descriptors, {descriptors} before");
    }

    /// Ends it as it ends in earnest.
    pub(crate) async fn end(self) {
        let Self { mut child, stdin, .. } = self;
        drop(stdin);
        assert!(timeout(END, child.wait()).await.expect("the server does not end").unwrap().success());
    }
}

/// The memory of a process, as the system counts it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    pid: u32,
}

impl Memory {
    /// What is in memory now, in kilobytes.
    pub(crate) fn now(self) -> u64 {
        self.field("VmRSS:")
    }

    /// What was in memory at most.
    pub(crate) fn most(self) -> u64 {
        self.field("VmHWM:")
    }

    /// Files and connections that are open.
    pub(crate) fn descriptors(self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid)).unwrap().count()
    }

    fn field(self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

/// Kilobytes as megabytes, for people.
pub(crate) fn mb(kilobytes: u64) -> u64 {
    kilobytes / 1024
}
