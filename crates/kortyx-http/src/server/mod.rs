//! A server with the limits that axum's does not set, and a clean end.

mod accept;
mod patient;

use std::time::Duration;

use axum::Router;
use tokio::{
    net::TcpListener,
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::accept::Acceptor;
use crate::Http;

/// What the server takes from a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// How long the headers of a request may take to arrive, and how long a connection may wait for its next request; 10 seconds by
    /// default.
    pub header_read: Duration,
    /// Headers of a request; 100 by default. More are refused with 431.
    pub headers: usize,
    /// Bytes of a request's first line and headers together; 64 KiB by default, at least 8 KiB. More are refused with 431.
    pub header_bytes: usize,
    /// How long a client may take nothing of a response that is there; 2 minutes by default.
    pub write_stall: Duration,
    /// Connections at once; 20,000 by default. Others wait to be accepted.
    pub connections: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            header_read: Duration::from_secs(10),
            headers: 100,
            header_bytes: 64 * 1024,
            write_stall: Duration::from_mins(2),
            connections: 20_000,
        }
    }
}

/// How a server ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// How long runs and streams may go on until they pause or end; 10 seconds by default.
    pub drain: Duration,
    /// How long connections may then take to close; 5 seconds by default.
    pub close: Duration,
}

impl Default for Ending {
    fn default() -> Self {
        Self { drain: Duration::from_secs(10), close: Duration::from_secs(5) }
    }
}

/// Serves an application over HTTP/1.1, with limits, until a signal comes.
///
/// ```no_run
/// # use kortyx_http::{AllowLocal, Http, Server};
/// # async fn run(agent: kortyx_orchestrator::Agent) -> std::io::Result<()> {
/// let http = Http::new(agent, AllowLocal::new());
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
/// let signal = async { drop(tokio::signal::ctrl_c().await) };
/// Server::new(&http, http.router()).serve(listener, signal).await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a server serves nothing before `serve` is awaited"]
pub struct Server {
    http: Http,
    app: Router,
    limits: ServerLimits,
    ending: Ending,
}

impl Server {
    /// Serves this application, which holds the routes of `http`.
    pub fn new(http: &Http, app: Router) -> Self {
        Self { http: http.clone(), app, limits: ServerLimits::default(), ending: Ending::default() }
    }

    /// What it takes from a connection.
    pub fn limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// How it ends.
    pub fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    /// Serves until the signal comes, then ends: nothing is accepted any more and the agent takes nothing new. Runs and streams may go
    /// on for the time to drain. Streams that are open then end with a `status`, and runs that are under way are left to other processes.
    ///
    /// The agent is shut down when this returns. Dropped before, it stops accepting, and leaves connections and agent alone.
    pub async fn serve(self, listener: TcpListener, signal: impl Future<Output = ()>) {
        let (stopping, connections) = (CancellationToken::new(), TaskTracker::new());
        let acceptor = Acceptor::new(self.app, &self.limits, stopping.clone(), connections.clone());
        tokio::select! {
            () = acceptor.run(listener) => {}
            () = signal => {}
        }
        stopping.cancel();
        connections.close();
        self.http.shutdown(self.ending.drain).await;
        let deadline = Instant::now() + self.ending.close;
        if timeout_at(deadline, connections.wait()).await.is_err() {
            tracing::warn!(open = connections.len(), "some connections did not close in time");
        }
    }
}

impl Http {
    /// Shuts the agent down and ends open streams, for those who serve the routes with a server of their own. Stop accepting first.
    ///
    /// The agent takes nothing new at once. Runs and streams may go on for the time to drain; streams that are open then end with a
    /// `status`, and runs that are under way are left to other processes.
    pub async fn shutdown(&self, drain: Duration) {
        // Streams end before the agent stops their runs: so the last thing that a client hears is that the server stops.
        let end_streams = async {
            tokio::time::sleep(drain).await;
            self.closing.cancel();
        };
        tokio::select! {
            () = self.agent.shutdown(drain + STREAMS_END) => {}
            () = async { end_streams.await; std::future::pending().await } => {}
        }
        self.closing.cancel();
    }
}

/// By how much streams end before the agent stops their runs.
const STREAMS_END: Duration = Duration::from_millis(200);
