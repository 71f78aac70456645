//! Accepting connections and serving each.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::ConnectInfo,
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower_service::Service as _;

use kortyx_protocol::FailureCode;

use crate::problem::Problem;

use super::{ServerLimits, patient::Patient};

/// The smallest buffer that hyper takes.
const SMALLEST_BUFFER: usize = 8 * 1024;

/// How long to wait before accepting again when the system has no resources left.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Acceptor {
    app: Router,
    protocol: http1::Builder,
    header_bytes: usize,
    write_stall: Duration,
    places: Arc<Semaphore>,
    stopping: CancellationToken,
    connections: TaskTracker,
}

impl Acceptor {
    pub(super) fn new(
        app: Router,
        limits: &ServerLimits,
        stopping: CancellationToken,
        connections: TaskTracker,
    ) -> Self {
        let mut protocol = http1::Builder::new();
        protocol
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_read)
            .max_headers(limits.headers)
            .max_buf_size(limits.header_bytes.max(SMALLEST_BUFFER));
        let places = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
        let ServerLimits { header_bytes, write_stall, .. } = *limits;
        Self { app, protocol, header_bytes, write_stall, places, stopping, connections }
    }

    /// Accepts for as long as it is polled.
    pub(super) async fn run(self, listener: TcpListener) {
        loop {
            let Ok(place) = self.places.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, peer)) => self.serve(stream, peer, place),
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "no connection can be accepted now");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn serve(&self, stream: TcpStream, peer: SocketAddr, place: OwnedSemaphorePermit) {
        // Frames of a stream are small and must not wait for each other.
        let _ = stream.set_nodelay(true);
        let (app, header_bytes) = (self.app.clone(), self.header_bytes);
        let service = service_fn(move |mut request: Request<Incoming>| {
            let mut app = app.clone();
            request.extensions_mut().insert(ConnectInfo(peer));
            async move {
                if head_bytes(&request) > header_bytes {
                    return Ok::<_, Infallible>(too_large(header_bytes));
                }
                Ok(app.call(request.map(Body::new)).await.unwrap_or_else(|never| match never {}))
            }
        });
        let connection = self.protocol.serve_connection(TokioIo::new(Patient::new(stream, self.write_stall)), service);
        let stopping = self.stopping.clone();
        self.connections.spawn(async move {
            let _place = place;
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stopping.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, %peer, "a connection ended early");
            }
        });
    }
}

/// What a request's first line and headers take, about. hyper refuses what does not fit into its buffer, which may hold more.
fn head_bytes(request: &Request<Incoming>) -> usize {
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    let line = request.method().as_str().len() + request.uri().path().len() + request.uri().query().map_or(0, str::len);
    line + headers.sum::<usize>()
}

fn too_large(limit: usize) -> Response {
    let message = format!("the first line and the headers must have at most {limit} bytes");
    let problem = Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, FailureCode::PayloadTooLarge, message);
    problem.with_header(header::CONNECTION, "close").into_response()
}

/// The client gave up before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
