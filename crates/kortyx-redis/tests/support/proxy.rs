//! A relay between a store and its server that counts round trips and cuts connections.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{broadcast, watch},
    task::JoinHandle,
};

/// The relay; it ends with the test.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<State>,
    cut: broadcast::Sender<()>,
    accepting: JoinHandle<()>,
}

struct State {
    /// How often a client spoke after it was spoken to.
    trips: AtomicUsize,
    /// The reply to which script from now is to be swallowed, with its connection; 0 for none.
    swallow: AtomicUsize,
    /// Replies are told apart from greetings: only what follows an EVALSHA or EVAL is swallowed.
    swallowed: watch::Sender<usize>,
}

impl Proxy {
    pub(crate) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let state = Arc::new(State {
            trips: AtomicUsize::new(0),
            swallow: AtomicUsize::new(0),
            swallowed: watch::Sender::new(0),
        });
        let cut = broadcast::Sender::new(1);
        let (shared, cutter) = (state.clone(), cut.clone());
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (state, cut) = (shared.clone(), cutter.subscribe());
                tokio::spawn(async move {
                    if let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await {
                        relay(client, server, &state, cut).await;
                    }
                });
            }
        });
        Self { port: own, state, cut, accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Round trips since the last call.
    pub(crate) fn trips(&self) -> usize {
        self.state.trips.swap(0, Ordering::SeqCst)
    }

    /// Cuts every connection now.
    pub(crate) fn cut(&self) {
        let _ = self.cut.send(());
    }

    /// Lets the next script reach the server, and cuts its connection when the reply comes.
    pub(crate) fn swallow_next(&self) {
        self.swallow_after(0);
    }

    /// The same with the script that comes after so many others.
    pub(crate) fn swallow_after(&self, others: usize) {
        self.state.swallow.store(others + 1, Ordering::SeqCst);
    }

    /// How many replies were swallowed.
    pub(crate) fn swallowed(&self) -> usize {
        *self.state.swallowed.borrow()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

/// Relays both ways until either side ends, or the connection is cut.
async fn relay(mut client: TcpStream, mut server: TcpStream, state: &State, mut cut: broadcast::Receiver<()>) {
    let (_, _) = (client.set_nodelay(true), server.set_nodelay(true));
    let (mut from_client, mut from_server) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let (mut is_answered, runs_script) = (true, AtomicBool::new(false));
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let Some(bytes) = read.ok().filter(|read| *read > 0).and_then(|read| from_client.get(..read)) else { return };
                if is_answered {
                    state.trips.fetch_add(1, Ordering::SeqCst);
                    is_answered = false;
                }
                if bytes.windows(4).any(|window| window == b"EVAL") {
                    runs_script.store(true, Ordering::SeqCst);
                }
                if server.write_all(bytes).await.is_err() { return }
            }
            read = server.read(&mut from_server) => {
                let Some(bytes) = read.ok().filter(|read| *read > 0).and_then(|read| from_server.get(..read)) else { return };
                is_answered = true;
                let is_missing = bytes.starts_with(b"-NOSCRIPT");
                if runs_script.swap(false, Ordering::SeqCst) && !is_missing {
                    let counted = |left: usize| left.checked_sub(1);
                    let left = state.swallow.fetch_update(Ordering::SeqCst, Ordering::SeqCst, counted);
                    if left == Ok(1) {
                        state.swallowed.send_modify(|count| *count += 1);
                        return;
                    }
                }
                if client.write_all(bytes).await.is_err() { return }
            }
            _ = cut.recv() => return,
        }
    }
}
