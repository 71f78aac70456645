//! A server with a store in memory, and a workflow for each kind of question and output.

mod client;
mod seeds;
mod workflows;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use kortyx::{
    Agent,
    http::{AnswerLinks, Authoriser, Caller, Ending, Grant, Http, LinkKey, Refusal, Server},
    memory::MemoryStore,
    protocol::Timestamp,
    store::{ManualClock, Store},
};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

pub use client::{Frame, Open, Request, Response, open, send};
pub use seeds::seeds;

/// Who answers at a site.
pub const ACTOR: &str = "ann";

/// Everybody is a tenant: `acme`, or whom the header `x-tenant` names. `nobody` may see nothing.
struct Tenants;

#[async_trait]
impl Authoriser for Tenants {
    async fn authorise(&self, caller: Caller<'_>) -> Result<Grant, Refusal> {
        match caller.header("x-tenant").unwrap_or("acme") {
            "nobody" => Ok(Grant::new()),
            "stranger" => Err(Refusal::unauthenticated("Bearer")),
            "banned" => Err(Refusal::forbidden("you may not")),
            tenant => Ok(Grant::new().tenant("tenant", tenant).actor(ACTOR)),
        }
    }
}

/// A server on a free port.
pub struct Site {
    /// Where it listens.
    pub address: SocketAddr,
    /// The agent behind it.
    pub agent: Agent,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

impl Site {
    /// A site whose clock the test moves, without answer links.
    pub async fn standing() -> (Self, Arc<ManualClock>) {
        // 2026-01-01, midnight.
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_767_225_600_000)));
        let store = MemoryStore::builder().with_clock(clock.clone()).build();
        (Self::start(Arc::new(store), |http| http).await, clock)
    }

    /// A site that goes by the system's clock, with every route.
    pub async fn running() -> Self {
        Self::start(Arc::new(MemoryStore::new()), |http| http.links(links())).await
    }

    async fn start(store: Arc<dyn Store>, configure: impl FnOnce(Http) -> Http) -> Self {
        let agent = workflows::register(Agent::builder().shared_store(store).without_worker()).build().await.unwrap();
        Self::over(agent, configure).await
    }

    /// A site over this agent.
    pub async fn over(agent: Agent, configure: impl FnOnce(Http) -> Http) -> Self {
        let http = configure(Http::new(agent.clone(), Tenants));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let ending = Ending { drain: Duration::ZERO, close: Duration::from_secs(1) };
        let server = Server::new(&http, http.router()).ending(ending);
        let server = tokio::spawn(server.serve(listener, async { drop(stopped.await) }));
        Self { address, agent, stop, server }
    }

    /// Stops it.
    pub async fn end(self) {
        drop(self.stop);
        self.server.await.unwrap();
    }
}

fn links() -> AnswerLinks {
    AnswerLinks::new("/answers", LinkKey::new("k1", [7; 32]).unwrap())
}
