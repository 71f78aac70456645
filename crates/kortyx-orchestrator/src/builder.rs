//! How an agent is put together.

use std::{error::Error, ffi::OsString, future::Future, sync::Arc, time::Duration};

use kortyx_protocol::Limits;
use kortyx_runtime::{Counter, Engine, Registry, Workflow, workflow::DefinitionError};
use kortyx_store::Store;
use tokio::runtime::Handle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Agent, BuildError, OnDisconnect, ResponseFinalized, TelemetrySink, TurnAccepted, WaitingPolicy, WorkerConfig,
    agent::Inner,
    driver::{Drivers, pin},
    environment::{self, Lookup, Selected},
    follow::Followers,
    hooks::Hooks,
    host::{SystemHost, random},
    settings::Settings,
    telemetry::{Overdue, Telemetry},
    worker,
};

/// The shortest lease: shorter ones would be lost to an ordinary delay.
const SHORTEST_LEASE: Duration = Duration::from_millis(100);

/// Collects the parts of an [`Agent`]. Mistakes are reported by [`build`](Self::build).
#[must_use]
pub struct AgentBuilder {
    registry: Registry,
    refused: Option<DefinitionError>,
    store: Source,
    settings: Settings,
    /// Set in code, so the environment does not count.
    question_ttl: Option<Duration>,
    limits: kortyx_runtime::Limits,
    telemetry: Telemetry,
    hooks: Hooks,
    worker: WorkerConfig,
    runs_worker: bool,
    sets_up: bool,
}

/// Where the store comes from.
enum Source {
    /// Nobody said: memory.
    Default,
    Given(Arc<dyn Store>),
    Environment(Box<Lookup<'static>>),
}

impl AgentBuilder {
    pub(crate) fn new() -> Self {
        Self {
            registry: Registry::new(),
            refused: None,
            store: Source::Default,
            settings: Settings::default(),
            question_ttl: None,
            limits: kortyx_runtime::Limits::default(),
            telemetry: Telemetry::default(),
            hooks: Hooks::default(),
            worker: WorkerConfig::default(),
            runs_worker: true,
            sets_up: true,
        }
    }

    /// Registers a workflow. Several versions may stand side by side: new runs take the latest, paused ones their own.
    /// Child workflows and the targets of handoffs must be registered too.
    pub fn workflow<I, O>(mut self, workflow: &Workflow<I, O>) -> Self {
        if let Err(error) = self.registry.register(workflow) {
            self.refused.get_or_insert(error);
        }
        self
    }

    /// The workflow of chat turns that name none. Without it, the only registered one.
    pub fn default_workflow(mut self, id: impl Into<String>) -> Self {
        self.settings.default_workflow = Some(id.into());
        self
    }

    /// Keeps runs in this store. Without one they live in memory and end with the process.
    pub fn store(self, store: impl Store) -> Self {
        self.shared_store(Arc::new(store))
    }

    /// Keeps runs in this store, which others use too.
    pub fn shared_store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Source::Given(store);
        self
    }

    /// Takes the store and the time that questions live from environment variables.
    ///
    /// The store: `KORTYX_POSTGRES_URL`, else `KORTYX_REDIS_URL`, `REDIS_URL`, `KORTYX_FRAMEWORK_REDIS_URL`, else
    /// `KORTYX_SQLITE_PATH`, else memory; `KORTYX_CACHE_URL` names a Redis for a cache beside Postgres. The time: `KORTYX_FRAMEWORK_TTL_MS`, else `KORTYX_TTL_MS`, in milliseconds.
    /// A variable that is set to something this build cannot use is an error that names the variable and the Cargo feature.
    pub fn from_env(self) -> Self {
        self.from_variables(|name| std::env::var_os(name))
    }

    /// As [`from_env`](Self::from_env), with variables from elsewhere.
    pub fn from_variables(mut self, lookup: impl Fn(&str) -> Option<OsString> + Send + 'static) -> Self {
        self.store = Source::Environment(Box::new(lookup));
        self
    }

    /// How long a question may be answered when its author does not say. 15 minutes by default.
    pub fn question_ttl(mut self, ttl: Duration) -> Self {
        self.question_ttl = Some(ttl);
        self
    }

    /// How long a driver that stops without a word keeps its run from others. 30 seconds by default.
    pub fn lease_ttl(mut self, ttl: Duration) -> Self {
        self.settings.lease_ttl = ttl;
        self
    }

    /// How long a call waits for a run that somebody else drives, before it says that the run is still under way. 30 seconds by
    /// default.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.settings.wait = wait;
        self
    }

    /// How long a run is held back after a storage failure before it is offered to workers again. A second by default.
    pub fn cool_down(mut self, pause: Duration) -> Self {
        self.settings.cool_down = pause;
        self
    }

    /// How many chunks wait for a slow reader before the node is held back. 64 by default, at least 1.
    pub fn chat_buffer(mut self, chunks: usize) -> Self {
        self.settings.chat_buffer = chunks;
        self
    }

    /// What becomes of a message without resume metadata while a run of its session waits.
    pub fn on_waiting(mut self, policy: WaitingPolicy) -> Self {
        self.settings.waiting = policy;
        self
    }

    /// What becomes of a fresh chat turn whose client went away.
    pub fn on_disconnect(mut self, policy: OnDisconnect) -> Self {
        self.settings.on_disconnect = policy;
        self
    }

    /// Whether storage keeps what runs say, so that [`follow`](Agent::follow) finds it: by default it does, for as long as it keeps
    /// the run.
    pub fn keep_output(mut self, keep: bool) -> Self {
        self.settings.keep_output = keep;
        self
    }

    /// How long what a run says may wait until storage holds it, when the run stores nothing else meanwhile. 100 ms by default. A
    /// new run that has said something for that long is stored then, before its first pause.
    pub fn output_delay(mut self, delay: Duration) -> Self {
        self.settings.output_delay = delay;
        self
    }

    /// How large requests and answers may be.
    pub fn request_limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// What a run may do.
    pub fn run_limits(mut self, limits: kortyx_runtime::Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Limits how much a run may use of this, with its branches and its children, before it asks whether to go on; where neither the run's
    /// options nor its workflow say otherwise. After [`run_limits`](Self::run_limits), which sets all of them.
    pub fn limit(mut self, counter: Counter, most: u64) -> Self {
        self.limits.allowances = self.limits.allowances.limit(counter, most);
        self
    }

    /// Lets runs use any amount of this, where neither the run's options nor its workflow say otherwise.
    pub fn unlimited(mut self, counter: Counter) -> Self {
        self.limits.allowances = self.limits.allowances.unlimited(counter);
        self
    }

    /// Tells this sink what happens.
    pub fn telemetry(mut self, sink: impl TelemetrySink) -> Self {
        self.telemetry = Telemetry::to(sink);
        self
    }

    /// Calls this when a chat turn was accepted, before it says anything: for applications that keep transcripts of their own.
    ///
    /// The turn waits for the hook, within [`hook_timeout`](Self::hook_timeout). An error of the hook, a panic and one that takes
    /// too long go to tracing and change nothing. Called once for each turn that starts a run or gives an answer that is
    /// accepted now; not for one that is refused or repeats an answer, and not for `execute` and `resume`. When the process
    /// dies it may never be called, or be called for a fresh turn that left no run behind.
    ///
    /// ```
    /// # use kortyx_orchestrator::{Agent, TurnAccepted};
    /// # async fn insert(turn: TurnAccepted) -> Result<(), std::io::Error> { Ok(()) }
    /// let builder = Agent::builder().on_turn_accepted(|turn| async move { insert(turn).await });
    /// # let _ = builder;
    /// ```
    pub fn on_turn_accepted<F, E>(mut self, hook: impl Fn(TurnAccepted) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>> + 'static,
    {
        self.hooks.on_accepted(hook);
        self
    }

    /// Calls this when the response to an accepted chat turn is complete, before its `done`, whether its client is still there
    /// or not.
    ///
    /// Goes as [`on_turn_accepted`](Self::on_turn_accepted), and once for each time that was called: at the end of the response,
    /// also where the run goes on after it. When the process dies before, it is never called for that turn: the run goes on
    /// elsewhere without a response, and [`get_run`](Agent::get_run) tells how it ends.
    pub fn on_response_finalized<F, E>(mut self, hook: impl Fn(ResponseFinalized) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>> + 'static,
    {
        self.hooks.on_finalized(hook);
        self
    }

    /// How long a turn waits for a hook, which is stopped then. 5 seconds by default; [`on_turn_accepted`](Self::on_turn_accepted)
    /// gets at most half of a lease.
    pub fn hook_timeout(mut self, timeout: Duration) -> Self {
        self.hooks.timeout = timeout;
        self
    }

    /// How the worker works.
    pub fn worker(mut self, config: WorkerConfig) -> Self {
        self.worker = config;
        self
    }

    /// Starts no worker: runs whose driver dies, and questions past their time, are left to workers elsewhere or to
    /// [`Agent::worker`].
    pub fn without_worker(mut self) -> Self {
        self.runs_worker = false;
        self
    }

    /// Takes answers and leaves the runs to agents elsewhere that drive, and starts no worker. For web tiers and command lines
    /// without the workflows' code.
    pub fn accept_only(mut self) -> Self {
        self.settings.drives = false;
        self.without_worker()
    }

    /// Leaves the store's schema as it is, for programs that look into the stores of others: a newer one would upgrade the schema under
    /// processes that do not know it yet. A store that was never set up fails with the first call.
    pub fn without_setup(mut self) -> Self {
        self.sets_up = false;
        self
    }

    /// Opens and sets up the store, and starts the worker. Must be called inside a Tokio runtime, which then runs everything.
    pub async fn build(self) -> Result<Agent, BuildError> {
        let runtime = Handle::try_current().map_err(|_| BuildError::NoRuntime)?;
        if let Some(error) = self.refused {
            return Err(BuildError::Workflow(error));
        }
        let mut settings = self.settings;
        check(&settings, &self.registry, &self.worker)?;
        let (store, owns_store) = open(self.store, &mut settings).await?;
        settings.question_ttl = self.question_ttl.unwrap_or(settings.question_ttl);
        if self.sets_up {
            store.setup().await.map_err(BuildError::Store)?;
        }
        let pins = if settings.drives { self.registry.pins().iter().map(pin).collect() } else { Vec::new() };
        let gone = CancellationToken::new();
        let inner = Arc::new(Inner {
            engine: Engine::new(Arc::new(self.registry), self.limits),
            pins,
            store,
            owns_store,
            settings,
            worker: self.worker,
            telemetry: self.telemetry,
            overdue: Overdue::default(),
            hooks: self.hooks,
            host: Arc::new(SystemHost),
            driver_id: driver_id(),
            drivers: Drivers::default(),
            followers: Followers::default(),
            tasks: TaskTracker::new(),
            runtime,
            stopping: gone.child_token(),
            killed: CancellationToken::new(),
            _gone_on_drop: gone.clone().drop_guard(),
            gone,
        });
        worker::start_listener(&inner);
        if self.runs_worker {
            worker::start(&inner);
        }
        Ok(Agent(inner))
    }
}

fn check(settings: &Settings, registry: &Registry, worker: &WorkerConfig) -> Result<(), BuildError> {
    if let Some(id) = &settings.default_workflow
        && registry.latest(id).is_none()
    {
        return Err(BuildError::DefaultWorkflow(id.clone()));
    }
    if settings.lease_ttl < SHORTEST_LEASE {
        return Err(BuildError::Setting("the lease is shorter than 100 ms"));
    }
    if settings.chat_buffer == 0 {
        return Err(BuildError::Setting("the chat buffer holds no chunk: give it at least 1"));
    }
    worker.check().map_err(BuildError::Setting)
}

async fn open(source: Source, settings: &mut Settings) -> Result<(Arc<dyn Store>, bool), BuildError> {
    match source {
        Source::Given(store) => Ok((store, false)),
        Source::Default => memory().map(|store| (store, true)),
        Source::Environment(lookup) => {
            let ttl = environment::question_ttl(&*lookup).map_err(BuildError::Environment)?;
            settings.question_ttl = ttl.unwrap_or(settings.question_ttl);
            let selected = environment::store(&*lookup).map_err(BuildError::Environment)?;
            drop(lookup);
            Ok((connect(selected).await?, true))
        }
    }
}

#[cfg_attr(
    not(any(feature = "postgres", feature = "redis", feature = "sqlite")),
    expect(clippy::unused_async, reason = "adapters connect")
)]
async fn connect(selected: Selected) -> Result<Arc<dyn Store>, BuildError> {
    match selected {
        #[cfg(feature = "memory")]
        Selected::Memory => memory(),
        #[cfg(feature = "postgres")]
        Selected::Postgres(config) => {
            Ok(Arc::new(kortyx_postgres::PostgresStore::open(config).await.map_err(BuildError::Store)?))
        }
        #[cfg(feature = "cache")]
        Selected::Cached(config, cache) => {
            let store = kortyx_postgres::PostgresStore::open(config).await.map_err(BuildError::Store)?;
            let cache = kortyx_redis::RedisCache::new(&cache).map_err(BuildError::Store)?;
            Ok(Arc::new(kortyx_cache::CachedStore::new(store, cache, kortyx_cache::CacheConfig::new())))
        }
        #[cfg(feature = "redis")]
        Selected::Redis(config) => {
            Ok(Arc::new(kortyx_redis::RedisStore::connect(config).await.map_err(BuildError::Store)?))
        }
        #[cfg(feature = "sqlite")]
        Selected::Sqlite(config) => {
            Ok(Arc::new(kortyx_sqlite::SqliteStore::open(config).await.map_err(BuildError::Store)?))
        }
    }
}

#[cfg(feature = "memory")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature it fails")]
fn memory() -> Result<Arc<dyn Store>, BuildError> {
    tracing::warn!("runs are kept in memory: they do not survive a restart; give the agent a store to keep them");
    Ok(Arc::new(kortyx_memory::MemoryStore::new()))
}

#[cfg(not(feature = "memory"))]
fn memory() -> Result<Arc<dyn Store>, BuildError> {
    Err(BuildError::NoStore)
}

/// Names the process for operators.
fn driver_id() -> String {
    let suffix = u32::from_be_bytes(random().unwrap_or_default());
    format!("{}-{suffix:08x}", std::process::id())
}
