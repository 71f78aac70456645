//! A place that processes share, the log of what they did, and the processes.

use std::{
    fs::{self, OpenOptions},
    os::unix::process::ExitStatusExt as _,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use kortyx::{
    Agent,
    protocol::{RunId, SessionId},
    store::{RunRecord, RunStatus, Scope, Store},
};
use kortyx_tests::{
    driven::{Flows, Line, Log, SESSION},
    place::{Place, Time},
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::sleep,
};

/// What a process gets from a kill.
const SIGKILL: i32 = 9;
/// How often to look whether something has happened.
const LOOK: Duration = Duration::from_millis(5);

/// A place of its own for every test.
pub(crate) struct World {
    directory: TempDir,
    place: Place,
}

/// A process to be started.
pub(crate) struct Start(Command);

/// A process that was started.
pub(crate) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
    errors: PathBuf,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Well,
    Killed,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = || Place::Sqlite { path: directory.path().join("kortyx.db"), is_synced: true };
        Self { place: Place::fresh(directory.path(), true).unwrap_or_else(file), directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn log(&self) -> Log {
        Log::at(self.path("log"))
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        self.log().read().unwrap()
    }

    /// The store as this process opens it.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        self.place.open(&Time::ahead(Duration::ZERO)).await.unwrap()
    }

    /// An agent of this process that takes answers and drives nothing.
    pub(crate) async fn clerk(&self) -> Agent {
        Agent::builder().shared_store(self.store().await).accept_only().build().await.unwrap()
    }

    /// An agent of this process that begins runs and recovers none.
    pub(crate) async fn starter(&self) -> (Agent, Flows) {
        let flows = Flows::new(&self.log()).unwrap();
        let builder = Agent::builder().workflow(&flows.asking).workflow(&flows.crowd).without_worker();
        let agent = builder.shared_store(self.store().await).build().await.unwrap();
        (agent, flows)
    }

    /// The driver program. Its clock is ahead by so many minutes, so that it finds leases of those before it run out.
    pub(crate) fn driver(&self, minutes_ahead: u64) -> Start {
        let mut command = Command::new(env!("CARGO_BIN_EXE_driver"));
        command.arg("--place").arg(serde_json::to_string(&self.place).unwrap()).arg("--log").arg(self.path("log"));
        command.arg("--ahead").arg((minutes_ahead * 60).to_string());
        command.env_remove("KORTYX_KILL_AT").kill_on_drop(true);
        Start(command)
    }

    /// Starts a process.
    pub(crate) fn start(&self, start: Start) -> Process {
        let errors = self.path("errors");
        let Start(mut command) = start;
        let stderr = OpenOptions::new().append(true).create(true).open(&errors).unwrap();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        Process { stdin: child.stdin.take(), stdout, child, errors }
    }

    /// Runs a process to its end.
    pub(crate) async fn run(&self, start: Start) -> Ended {
        self.start(start).ended().await
    }
}

impl Start {
    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.0.args(args);
        self
    }

    /// How long its leases last.
    pub(crate) fn lease(self, lease: Duration) -> Self {
        self.args(&["--lease", &lease.as_millis().to_string()])
    }

    /// When it kills itself.
    pub(crate) fn kill_at(mut self, point: &str) -> Self {
        self.0.env("KORTYX_KILL_AT", point);
        self
    }
}

impl Process {
    /// Writes a line to it. It may be dead.
    pub(crate) async fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        drop(stdin.write_all(format!("{line}\n").as_bytes()).await);
    }

    /// The next line that it writes; `None` once it has ended.
    pub(crate) async fn hear(&mut self) -> Option<String> {
        self.stdout.next_line().await.unwrap()
    }

    /// Ends it as it ends by itself.
    pub(crate) async fn end(&mut self) -> Ended {
        self.stdin = None;
        self.ended().await
    }

    /// Waits for its end.
    pub(crate) async fn ended(&mut self) -> Ended {
        let status = self.child.wait().await.unwrap();
        self.judged(status)
    }

    /// Kills it, wherever it is.
    pub(crate) async fn kill(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!("a process ended before it was killed: {status}\n{}", self.errors());
        }
        self.child.kill().await.unwrap();
    }

    /// Has it go on after it stopped itself.
    pub(crate) fn go_on(&self, log: &Log) {
        fs::write(log.signal(), "").unwrap();
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::CONT).unwrap();
    }

    fn judged(&self, status: ExitStatus) -> Ended {
        match status {
            status if status.success() => Ended::Well,
            status if status.signal() == Some(SIGKILL) => Ended::Killed,
            status => panic!("a process ended with {status}:\n{}", self.errors()),
        }
    }

    fn errors(&self) -> String {
        fs::read_to_string(&self.errors).unwrap_or_default()
    }
}

/// The scope of everything that happens here.
pub(crate) fn scope() -> Scope {
    Scope::session(SessionId::new(SESSION).unwrap())
}

/// Waits until a run neither runs nor should.
pub(crate) async fn settled(agent: &Agent, run_id: &RunId) -> RunRecord {
    loop {
        let run = agent.store().run(run_id).await.unwrap().unwrap();
        if run.status != RunStatus::Running {
            return run;
        }
        sleep(LOOK).await;
    }
}
