//! A relay between stores and their server that cuts connections.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinHandle,
};

const BUFFER: usize = 1 << 16;

/// Stands between stores and a server on this machine, whatever they speak. It ends when it is dropped.
pub struct Proxy {
    port: u16,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    requests_to_lose: AtomicU64,
    replies_to_lose: AtomicU64,
    lost: AtomicU64,
    cut: Notify,
}

impl Proxy {
    /// Listens on a free port of the loopback interface, for a server on another one.
    pub async fn to(server: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(State::default());
        let shared = state.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let state = shared.clone();
                tokio::spawn(async move {
                    if let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await {
                        relay(client, server, &state).await;
                    }
                });
            }
        });
        Ok(Self { port, state, accepting })
    }

    /// Where stores reach it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts every connection at once.
    pub fn cut(&self) {
        self.state.cut.notify_waiters();
    }

    /// Loses the next request, and cuts its connection.
    pub fn lose_request(&self) {
        self.state.requests_to_lose.fetch_add(1, Ordering::SeqCst);
    }

    /// Passes the next request on, loses the reply, and cuts the connection.
    pub fn lose_reply(&self) {
        self.state.replies_to_lose.fetch_add(1, Ordering::SeqCst);
    }

    /// How many requests and replies were lost.
    pub fn lost(&self) -> u64 {
        self.state.lost.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

impl State {
    /// Takes one from what is to be lost.
    fn takes(&self, left: &AtomicU64) -> bool {
        let taken = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        self.lost.fetch_add(u64::from(taken), Ordering::SeqCst);
        taken
    }
}

/// Relays both ways until either side ends, or the connection is cut.
async fn relay(mut client: TcpStream, mut server: TcpStream, state: &State) {
    let (_, _) = (client.set_nodelay(true), server.set_nodelay(true));
    let (mut requests, mut replies) = (vec![0; BUFFER], vec![0; BUFFER]);
    // A connection that has not been spoken to yet is only being made.
    let mut trips = 0_u64;
    loop {
        let is_passed = tokio::select! {
            () = state.cut.notified() => false,
            read = client.read(&mut requests) => match part(&requests, read) {
                None => false,
                Some(_) if trips > 1 && state.takes(&state.requests_to_lose) => false,
                Some(request) => {
                    let is_lost = trips > 1 && state.takes(&state.replies_to_lose);
                    let is_passed = server.write_all(request).await.is_ok();
                    if is_lost {
                        let _ = server.read(&mut replies).await;
                    }
                    is_passed && !is_lost
                }
            },
            read = server.read(&mut replies) => match part(&replies, read) {
                None => false,
                Some(reply) => {
                    trips += 1;
                    client.write_all(reply).await.is_ok()
                }
            },
        };
        if !is_passed {
            return;
        }
    }
}

fn part(buffer: &[u8], read: io::Result<usize>) -> Option<&[u8]> {
    read.ok().filter(|length| *length > 0).and_then(|length| buffer.get(..length))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that says everything again.
    async fn echo() -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.into_split();
                    tokio::io::copy(&mut read, &mut write).await
                });
            }
        });
        port
    }

    async fn ask(stream: &mut TcpStream) -> bool {
        let mut reply = [0; 4];
        stream.write_all(b"ping").await.is_ok() && stream.read_exact(&mut reply).await.is_ok()
    }

    #[tokio::test]
    async fn what_is_said_passes_until_it_is_lost_or_cut() {
        let proxy = Proxy::to(echo().await).await.unwrap();
        let connect = async || {
            let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
            assert!(ask(&mut stream).await && ask(&mut stream).await);
            stream
        };
        let (mut first, mut second, mut third) = (connect().await, connect().await, connect().await);

        proxy.lose_request();
        assert!(!ask(&mut first).await);
        proxy.lose_reply();
        assert!(!ask(&mut second).await);
        assert_eq!(proxy.lost(), 2);
        assert!(ask(&mut third).await);
        proxy.cut();
        assert!(!ask(&mut third).await);
        assert!(ask(&mut connect().await).await);
    }
}
