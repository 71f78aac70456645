//! A proxy that counts round trips and cuts connections.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::Notify,
};

/// What the proxy does to a connection that it cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The next request reaches the server, its reply is lost.
    Reply,
    /// The next request is lost.
    Request,
}

#[derive(Default)]
struct State {
    trips: AtomicU64,
    cut_replies: AtomicBool,
    cut_requests: AtomicBool,
    cut: Notify,
}

/// Stands between a store and its server.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<State>,
}

impl Proxy {
    pub(crate) async fn start(server_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)).await else { return };
                    client.set_nodelay(true).unwrap();
                    server.set_nodelay(true).unwrap();
                    relay(client, server, &state).await;
                });
            }
        });
        Self { port, state }
    }

    /// How often the client has waited for the server since the last time that this was asked.
    pub(crate) fn trips(&self) -> u64 {
        self.state.trips.swap(0, Ordering::SeqCst)
    }

    /// Cuts the connection that speaks next.
    pub(crate) fn cut(&self, what: Cut) {
        let flag = if what == Cut::Reply { &self.state.cut_replies } else { &self.state.cut_requests };
        flag.store(true, Ordering::SeqCst);
    }

    /// Cuts every connection at once.
    pub(crate) fn cut_all(&self) {
        self.state.cut.notify_waiters();
    }
}

async fn relay(client: TcpStream, server: TcpStream, state: &State) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let mut asks = false;
    let (mut requests, mut replies) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        let passed = tokio::select! {
            () = state.cut.notified() => false,
            read = from_client.read(&mut requests) => match read {
                Ok(length @ 1..) if !state.cut_requests.swap(false, Ordering::SeqCst) => {
                    // What is sent in pieces before the server speaks is one trip.
                    if !std::mem::replace(&mut asks, true) {
                        state.trips.fetch_add(1, Ordering::SeqCst);
                    }
                    let is_last = state.cut_replies.swap(false, Ordering::SeqCst);
                    let passed = to_server.write_all(&requests[..length]).await.is_ok();
                    if is_last {
                        lose_reply(&mut from_server, to_server).await;
                        return;
                    }
                    passed
                }
                _ => false,
            },
            read = from_server.read(&mut replies) => match read {
                Ok(length @ 1..) => {
                    asks = false;
                    to_client.write_all(&replies[..length]).await.is_ok()
                }
                _ => false,
            },
        };
        if !passed {
            return;
        }
    }
}

/// Waits until the server has done what it was asked, and passes nothing on.
async fn lose_reply(from_server: &mut OwnedReadHalf, to_server: OwnedWriteHalf) {
    let mut reply = [0; 1];
    let _ = from_server.read(&mut reply).await;
    drop(to_server);
}
