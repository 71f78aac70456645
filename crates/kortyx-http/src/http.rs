//! The routes of an agent.

use std::{fmt, sync::Arc};

use axum::{Router, routing::MethodRouter};
use kortyx_orchestrator::Agent;
use tokio_util::sync::CancellationToken;

use crate::{
    AnswerLinks, Authoriser, HttpLimits, Paths,
    endpoint::{Methods, endpoint, nowhere},
    routes::{self, Route, answers, chat, checkpoints, execute, health, interrupts, openapi, resume, runs},
    streams::Streams,
};

/// An agent over HTTP: every route asks the same authoriser.
///
/// Without an authoriser there is no `Http`, and without an `Http` no route. Cheap to clone; clones count streams together.
#[derive(Clone)]
pub struct Http {
    pub(crate) agent: Agent,
    pub(crate) authoriser: Arc<dyn Authoriser>,
    pub(crate) paths: Paths,
    pub(crate) limits: HttpLimits,
    pub(crate) links: Option<AnswerLinks>,
    pub(crate) streams: Streams,
    /// Cancelled when open streams must end.
    pub(crate) closing: CancellationToken,
}

/// Every route of an agent at its usual path.
///
/// ```
/// # use kortyx_http::{AllowLocal, router};
/// # fn app(agent: kortyx_orchestrator::Agent) -> axum::Router {
/// axum::Router::new().nest("/api", router(agent, AllowLocal::new()))
/// # }
/// ```
pub fn router(agent: Agent, authoriser: impl Authoriser) -> Router {
    Http::new(agent, authoriser).router()
}

impl Http {
    /// An agent over HTTP, with the usual paths and limits.
    pub fn new(agent: Agent, authoriser: impl Authoriser) -> Self {
        Self {
            agent,
            authoriser: Arc::new(authoriser),
            paths: Paths::default(),
            limits: HttpLimits::default(),
            links: None,
            streams: Streams::default(),
            closing: CancellationToken::new(),
        }
    }

    /// Where the routes of the router are.
    #[must_use]
    pub fn paths(mut self, paths: Paths) -> Self {
        self.paths = paths;
        self
    }

    /// What a client may ask.
    #[must_use]
    pub fn limits(mut self, limits: HttpLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Takes answers from links that these made.
    #[must_use]
    pub fn links(mut self, links: AnswerLinks) -> Self {
        self.links = Some(links);
        self
    }

    /// The agent behind the routes.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// How many chat turns and run streams are being answered now, for metrics. Clones count together.
    pub fn open_streams(&self) -> usize {
        self.streams.open()
    }

    /// Every route, and the same errors for every other address.
    ///
    /// # Panics
    /// As axum does when two routes have the same path, or a path does not begin with `/`.
    pub fn router(&self) -> Router {
        let mount = |router: Router, (path, methods): Route| router.route(&path, self.endpoint(methods));
        self.routes().into_iter().fold(Router::new(), mount).fallback(nowhere)
    }

    /// Every route of the router.
    pub(crate) fn routes(&self) -> Vec<Route> {
        routes::table(&self.paths, self.links.is_some())
    }

    /// Chat turns: `POST`, streamed or buffered.
    pub fn chat<S: Clone + Send + Sync + 'static>(&self) -> MethodRouter<S> {
        self.endpoint(chat::METHODS)
    }

    /// Executions: `POST`.
    pub fn execute<S: Clone + Send + Sync + 'static>(&self) -> MethodRouter<S> {
        self.endpoint(execute::METHODS)
    }

    /// Answers with a handle: `POST`, one or a batch.
    pub fn resume<S: Clone + Send + Sync + 'static>(&self) -> MethodRouter<S> {
        self.endpoint(resume::METHODS)
    }

    /// Open questions of the caller's scope: `GET`, page by page.
    pub fn interrupts<S: Clone + Send + Sync + 'static>(&self) -> MethodRouter<S> {
        self.endpoint(interrupts::LIST)
    }

    /// A question: `GET`. The path must have the parameter `{id}`.
    pub fn interrupt<S: Clone + Send + Sync + 'static>(&self) -> MethodRouter<S> {
        self.endpoint(interrupts::GET)
    }

    /// The answer to a question by its id: `POST`. The path must have the parameter `{id}`.
    pub fn answer<S: Clone + Send + Sync + 'static>(&self) -> MethodRouter<S> {
        self.endpoint(interrupts::ANSWER)
    }

    /// What a run said from a number on, and says: `GET`, streamed. The path must have the parameter `{id}`.
    pub fn run_stream<S: Clone + Send + Sync + 'static>(&self) -> MethodRouter<S> {
        self.endpoint(runs::STREAM)
    }

    /// Checkpoints of sessions: `POST`.
    pub fn checkpoints<S: Clone + Send + Sync + 'static>(&self) -> MethodRouter<S> {
        self.endpoint(checkpoints::METHODS)
    }

    /// The pages of answer links: `GET` shows the question, `POST` answers it. The path must have the parameter `{id}`. The link's
    /// signature is the right to answer, so the authoriser is not asked; without [`links`](Self::links) none works.
    pub fn answer_page<S: Clone + Send + Sync + 'static>(&self) -> MethodRouter<S> {
        self.endpoint(answers::METHODS)
    }

    /// An `OpenAPI` 3.1 document of the routes at [`paths`](Self::paths): `GET`. Routes that you mount elsewhere are not where it says.
    pub fn openapi<S: Clone + Send + Sync + 'static>(&self) -> MethodRouter<S> {
        self.endpoint(openapi::METHODS)
    }

    /// Whether the process serves: `GET`. Says nothing of the agent, so the authoriser is not asked.
    pub fn live<S: Clone + Send + Sync + 'static>(&self) -> MethodRouter<S> {
        self.endpoint(health::LIVE)
    }

    /// Whether the process can work, which takes its store: `GET`. The authoriser is not asked.
    pub fn ready<S: Clone + Send + Sync + 'static>(&self) -> MethodRouter<S> {
        self.endpoint(health::READY)
    }

    fn endpoint<S: Clone + Send + Sync + 'static>(&self, methods: Methods) -> MethodRouter<S> {
        endpoint(Arc::new(self.clone()), methods)
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agent, paths, limits, .. } = self;
        f.debug_struct("Http")
            .field("agent", agent)
            .field("paths", paths)
            .field("limits", limits)
            .finish_non_exhaustive()
    }
}
