//! Relays before every server of a Cluster: what a server says takes its time, and what indexes are told can be withheld.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::Cluster;

/// The relays; they end with the test.
pub(crate) struct Relays {
    first: u16,
    state: Arc<State>,
    _accepting: JoinSet<()>,
}

struct State {
    delay: Duration,
    /// Ports of servers and of their relays, as a server writes numbers: a node tells where the others are.
    ports: Vec<(Vec<u8>, Vec<u8>)>,
    withholds: AtomicBool,
    withheld: AtomicUsize,
}

impl Relays {
    /// Relays to these servers, each of whose replies takes so long.
    pub(crate) async fn to(cluster: &Cluster, delay: Duration) -> Self {
        let (mut listeners, mut ports) = (Vec::new(), Vec::new());
        for server in &cluster.servers {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            ports.push((server.port, listener.local_addr().unwrap().port()));
            listeners.push(listener);
        }
        let number = |port: u16| format!(":{port}\r\n").into_bytes();
        let names = ports.iter().map(|(server, relay)| (number(*server), number(*relay))).collect();
        let (withholds, withheld) = (AtomicBool::new(false), AtomicUsize::new(0));
        let state = Arc::new(State { delay, ports: names, withholds, withheld });
        let mut accepting = JoinSet::new();
        for (listener, (server, _)) in listeners.into_iter().zip(ports.iter().copied()) {
            accepting.spawn(accept(listener, server, state.clone()));
        }
        Self { first: ports.first().unwrap().1, state, _accepting: accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis-cluster://127.0.0.1:{}", self.first)
    }

    /// From now on no index hears of anything new.
    pub(crate) fn withhold(&self) {
        self.state.withholds.store(true, Ordering::SeqCst);
    }

    /// How much was withheld.
    pub(crate) fn withheld(&self) -> usize {
        self.state.withheld.load(Ordering::SeqCst)
    }
}

impl State {
    /// Whether this goes on to the server.
    fn passes(&self, asked: &[u8]) -> bool {
        let is_withheld = self.withholds.load(Ordering::SeqCst) && contains(asked, b"\r\n$4\r\nZADD\r\n");
        self.withheld.fetch_add(usize::from(is_withheld), Ordering::SeqCst);
        !is_withheld
    }

    /// What a server said, with the relays in its place.
    fn replaced(&self, mut said: Vec<u8>) -> Vec<u8> {
        for (server, relay) in &self.ports {
            let mut from = 0;
            let place = |said: &[u8], from| said.windows(server.len()).skip(from).position(|window| window == server);
            while let Some(found) = place(&said, from) {
                let at = from + found;
                said.splice(at..at + server.len(), relay.iter().copied());
                from = at + relay.len();
            }
        }
        said
    }
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|window| window == wanted)
}

async fn accept(listener: TcpListener, server: u16, state: Arc<State>) {
    let mut relays = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let state = state.clone();
        relays.spawn(async move {
            if let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await {
                let (_, _) = (client.set_nodelay(true), server.set_nodelay(true));
                let ((client, to_client), (server, to_server)) = (client.into_split(), server.into_split());
                // When one side is gone, so is the other.
                tokio::select! { () = ask(client, to_server, &state) => {} () = say(server, to_client, &state) => {} }
            }
        });
    }
}

async fn read(from: &mut OwnedReadHalf) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 1 << 16];
    let read = from.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
    buffer.truncate(read);
    Some(buffer)
}

async fn ask(mut client: OwnedReadHalf, mut server: OwnedWriteHalf, state: &State) {
    while let Some(asked) = read(&mut client).await {
        if !state.passes(&asked) {
            // What follows on this connection would get the reply to another command.
            std::future::pending::<()>().await;
        }
        if server.write_all(&asked).await.is_err() {
            return;
        }
    }
}

/// Each reply waits for itself alone, so that those that come together go together.
async fn say(mut server: OwnedReadHalf, mut client: OwnedWriteHalf, state: &State) {
    let (sender, mut waiting) = mpsc::unbounded_channel();
    let hear = async {
        while let Some(said) = read(&mut server).await {
            let _ = sender.send((Instant::now() + state.delay, state.replaced(said)));
        }
    };
    let pass = async {
        while let Some((due, said)) = waiting.recv().await {
            sleep_until(due).await;
            if client.write_all(&said).await.is_err() {
                return;
            }
        }
    };
    tokio::select! { () = hear => {} () = pass => {} }
}
