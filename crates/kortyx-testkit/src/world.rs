//! A place that processes share, the log of what they did, and the processes.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use kortyx_orchestrator::Agent;
use kortyx_store::Store;
use tempfile::TempDir;

use crate::{
    Ended, Error, Kill, Line, Log, Process, Subject, Task,
    error::Doing as _,
    message::{Orders, VARIABLE},
    switched::Switched,
};

/// A subject, and the program whose processes [work on it](crate::member). Clones are the same.
#[derive(Clone)]
pub struct Kit {
    subject: Arc<dyn Subject>,
    program: PathBuf,
}

/// A place of its own for one test, empty at first.
pub struct World {
    kit: Kit,
    place: String,
    log: Log,
    directory: TempDir,
}

/// A process to be started.
#[must_use]
pub struct Start<'a> {
    world: &'a World,
    orders: Orders,
}

impl Kit {
    /// The subject, with this program for its processes.
    pub fn new<S: Subject>(subject: Arc<S>) -> Result<Self, Error> {
        Ok(Self { subject, program: env::current_exe().doing("finding this program")? })
    }

    /// Has another program do the processes' work; its `main` calls [`member`](crate::member) too, with the same subject.
    #[must_use]
    pub fn program(mut self, program: impl AsRef<Path>) -> Self {
        program.as_ref().clone_into(&mut self.program);
        self
    }

    /// A new, empty world.
    pub fn world(&self) -> Result<World, Error> {
        let directory = tempfile::tempdir().doing("making a directory")?;
        let place = self.subject.place(directory.path()).doing("naming a place")?;
        Ok(World { kit: self.clone(), place, log: Log::at(directory.path().join("log")), directory })
    }
}

impl World {
    /// Its subject.
    pub fn subject(&self) -> &dyn Subject {
        self.kit.subject.as_ref()
    }

    /// Where its runs are, as its subject named it.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What happens in it is written here.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// All that happened in it so far.
    pub fn lines(&self) -> Result<Vec<Line>, Error> {
        self.log.read().doing("reading the log")
    }

    /// The store as this process opens it.
    pub async fn store(&self) -> Result<Arc<dyn Store>, Error> {
        self.subject().open(&self.place, Duration::ZERO).await.doing("opening the store")
    }

    /// An agent of this process that takes answers and drives nothing.
    pub async fn clerk(&self) -> Result<Agent, Error> {
        let builder = Agent::builder().shared_store(self.store().await?).accept_only();
        builder.build().await.doing("building an agent")
    }

    /// An agent of this process that begins runs and recovers none. What it makes durable is in the log.
    pub async fn starter(&self) -> Result<Agent, Error> {
        let store = Switched::new(self.store().await?, self.log.clone(), Kill::Never);
        let builder = Agent::builder().shared_store(Arc::new(store)).without_worker();
        let builder = self.subject().agent(builder, &self.log).doing("registering workflows")?;
        builder.build().await.doing("building an agent")
    }

    /// A process that will do this.
    pub fn member(&self, task: Task) -> Start<'_> {
        let (place, log) = (self.place.clone(), self.log.path().to_owned());
        let (ahead, lease) = (Duration::ZERO, Duration::from_secs(30));
        Start { world: self, orders: Orders { place, log, ahead, lease, kill: Kill::Never, task } }
    }
}

impl Start<'_> {
    /// How far its store's clock is ahead: far enough, and it finds leases of others run out.
    pub fn ahead(mut self, ahead: Duration) -> Self {
        self.orders.ahead = ahead;
        self
    }

    /// How long its leases last: 30 seconds by default.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.orders.lease = lease;
        self
    }

    /// When it kills itself.
    pub fn kill(mut self, kill: Kill) -> Self {
        self.orders.kill = kill;
        self
    }

    /// Starts it.
    pub fn start(self) -> Result<Process, Error> {
        let orders = serde_json::to_string(&self.orders).doing("writing what a process is to do")?;
        let mut command = tokio::process::Command::new(&self.world.kit.program);
        command.env(VARIABLE, orders);
        Process::start(command, self.world.directory.path().join("errors"))
    }

    /// Starts it and waits for its end.
    pub async fn run(self) -> Result<Ended, Error> {
        self.start()?.ended().await
    }
}
