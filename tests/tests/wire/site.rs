//! A server with a store in memory, whose clock the test moves.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use kortyx::{
    Agent,
    http::{Authoriser, Caller, Ending, Grant, Http, Refusal, Server, async_trait},
    memory::MemoryStore,
    protocol::Timestamp,
    store::{ManualClock, Store},
};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use crate::workflows;

/// Everybody is a tenant: `acme`, or whom the header `x-tenant` names. `nobody` may see nothing.
struct Tenants;

#[async_trait]
impl Authoriser for Tenants {
    async fn authorise(&self, caller: Caller<'_>) -> Result<Grant, Refusal> {
        match caller.header("x-tenant").unwrap_or("acme") {
            "nobody" => Ok(Grant::new()),
            "stranger" => Err(Refusal::unauthenticated("Bearer")),
            "banned" => Err(Refusal::forbidden("you may not")),
            tenant => Ok(Grant::new().tenant("tenant", tenant).actor("ann")),
        }
    }
}

pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    clock: Arc<ManualClock>,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

impl Site {
    /// 2026-01-01, midnight.
    pub(crate) async fn start() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_767_225_600_000)));
        let store: Arc<dyn Store> = Arc::new(MemoryStore::builder().with_clock(clock.clone()).build());
        let agent = workflows::register(Agent::builder().shared_store(store).without_worker()).build().await.unwrap();
        let http = Http::new(agent, Tenants);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let ending = Ending { drain: Duration::ZERO, close: Duration::from_secs(1) };
        let server = Server::new(&http, http.router()).ending(ending);
        let server = tokio::spawn(server.serve(listener, async { drop(stopped.await) }));
        Self { address, clock, stop, server }
    }

    pub(crate) fn advance(&self, time: Duration) {
        self.clock.advance(time);
    }

    pub(crate) async fn end(self) {
        drop(self.stop);
        self.server.await.unwrap();
    }
}
