//! An agent behind a server on a free port, and an authoriser that believes headers.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use kortyx_http::{
    AnswerLinks, Authoriser, Caller, Ending, Grant, Http, HttpLimits, LinkKey, Refusal, Server, ServerLimits,
    async_trait,
};
use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, AgentBuilder};
use kortyx_protocol::SessionId;
use kortyx_runtime::Limits;
use kortyx_store::{ManualClock, Store};
use serde_json::json;
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpSocket, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

use crate::workflows;

/// Believes the headers `x-tenant`, `x-session` and `x-actor`.
pub(crate) struct Headers;

#[async_trait]
impl Authoriser for Headers {
    async fn authorise(&self, caller: Caller<'_>) -> Result<Grant, Refusal> {
        let mut grant = match caller.header("x-tenant") {
            None => return Err(Refusal::unauthenticated("Test")),
            Some("banned") => return Err(Refusal::forbidden("you are banned")),
            Some("broken") => return Err(Refusal::unavailable()),
            Some("nobody") => Grant::new(),
            Some(tenant) => Grant::new().tenant("tenant", tenant),
        };
        if let Some(session) = caller.header("x-session") {
            grant = grant.session(SessionId::new(session).unwrap());
        }
        grant.actor = caller.header("x-actor").map(str::to_owned);
        Ok(grant)
    }
}

/// What a test sets before the server starts.
pub(crate) struct Plan {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) limits: HttpLimits,
    pub(crate) server: ServerLimits,
    pub(crate) ending: Ending,
}

impl Plan {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(ManualClock::at(kortyx_protocol::Timestamp::from_millis(1_767_225_600_000)));
        let store = Arc::new(MemoryStore::builder().with_clock(clock.clone()).build());
        let ending = Ending { drain: Duration::from_millis(100), close: Duration::from_secs(5) };
        Self { store, clock, limits: HttpLimits::default(), server: ServerLimits::default(), ending }
    }

    pub(crate) fn agent(&self) -> AgentBuilder {
        let store: Arc<dyn Store> = self.store.clone();
        // What a cancelled node may still take is not what is tested here.
        let mut quick = Limits::default();
        quick.cancel_grace = Duration::from_millis(50);
        workflows::register(Agent::builder().shared_store(store).without_worker().run_limits(quick))
    }

    pub(crate) async fn start(self) -> Site {
        let agent = self.agent().build().await.unwrap();
        self.start_with(agent).await
    }

    pub(crate) async fn start_with(self, agent: Agent) -> Site {
        let http = Http::new(agent, Headers).limits(self.limits.clone()).links(links());
        let app = http.router();
        self.serve(http, app).await
    }

    pub(crate) async fn serve(self, http: Http, app: Router) -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let server = Server::new(&http, app).limits(self.server).ending(self.ending);
        let task = tokio::spawn(server.serve(listener, async { drop(stopped.await) }));
        Site { address, http, store: self.store, clock: self.clock, stop: Some(stop), task }
    }
}

/// Links that the server takes.
pub(crate) fn links() -> AnswerLinks {
    AnswerLinks::new("/answers", LinkKey::new("k1", [7; 32]).unwrap())
}

/// A server that runs.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    pub(crate) http: Http,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: Arc<ManualClock>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Site {
    pub(crate) async fn start() -> Self {
        Plan::new().start().await
    }

    /// Tells the server to end.
    pub(crate) fn signal(&mut self) {
        self.stop.take();
    }

    /// Waits until the server has ended.
    pub(crate) async fn ended(self) {
        tokio::time::timeout(Duration::from_secs(20), self.task).await.unwrap().unwrap();
    }

    pub(crate) fn agent(&self) -> &Agent {
        self.http.agent()
    }
}

/// Waits for something that is about to happen.
pub(crate) async fn eventually(mut holds: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not happen");
}

/// Asks for a stream that never ends and reads nothing, with a small window.
pub(crate) async fn unread(site: &Site, session: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(site.address).await.unwrap();
    let body = json!({"sessionId": session, "workflowId": "endless", "messages": [{"role": "user", "content": "x"}]});
    let body = body.to_string();
    let head = format!("POST /chat HTTP/1.1\r\nhost: x\r\nx-tenant: acme\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    stream
}
