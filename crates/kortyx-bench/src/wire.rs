//! A relay in front of servers that counts round trips.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinSet,
};

use crate::error::Error;

/// The relay. It ends when this is dropped.
pub(crate) struct Wire {
    ports: Vec<u16>,
    counter: Arc<Counter>,
    _accepting: JoinSet<()>,
}

/// How often the client spoke after it was spoken to, over all connections. With one run at a time that is how often it waited:
/// what it asks of several servers at once is one wait, however many replies there are.
#[derive(Default)]
struct Counter {
    trips: AtomicU64,
    /// Whether the client was the last to speak.
    is_asked: AtomicBool,
}

/// Ports of servers and of their relays, as a Redis writes numbers. A node of a Cluster tells where the others are.
struct Ports(Vec<(Vec<u8>, Vec<u8>)>);

impl Wire {
    /// Starts a relay to each of these ports of the loopback interface; one count for all.
    pub(crate) async fn to(servers: &[u16]) -> Result<Self, Error> {
        let (mut listeners, mut ports) = (Vec::new(), Vec::new());
        for _ in servers {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(Error::io("listen"))?;
            ports.push(listener.local_addr().map_err(Error::io("listen"))?.port());
            listeners.push(listener);
        }
        let counter = Arc::new(Counter::default());
        let names = Arc::new(Ports::new(servers, &ports));
        let mut accepting = JoinSet::new();
        for (listener, server) in listeners.into_iter().zip(servers) {
            accepting.spawn(accept(listener, *server, counter.clone(), names.clone()));
        }
        Ok(Self { ports, counter, _accepting: accepting })
    }

    /// Where the relays listen, in the order of their servers.
    pub(crate) fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Round trips since the last call.
    pub(crate) fn take(&self) -> u64 {
        self.counter.take()
    }
}

impl Counter {
    fn client_speaks(&self) {
        if !self.is_asked.swap(true, Ordering::Relaxed) {
            self.trips.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn server_speaks(&self) {
        self.is_asked.store(false, Ordering::Relaxed);
    }

    fn take(&self) -> u64 {
        self.trips.swap(0, Ordering::Relaxed)
    }
}

impl Ports {
    fn new(servers: &[u16], relays: &[u16]) -> Self {
        let number = |port: &u16| format!(":{port}\r\n").into_bytes();
        Self(servers.iter().map(number).zip(relays.iter().map(number)).collect())
    }

    /// What a server said, with the relays in its place.
    fn replaced(&self, mut said: Vec<u8>) -> Vec<u8> {
        for (server, relay) in &self.0 {
            let mut from = 0;
            while let Some(found) = said.get(from..).and_then(|rest| place(rest, server)) {
                let at = from + found;
                said.splice(at..at + server.len(), relay.iter().copied());
                from = at + relay.len();
            }
        }
        said
    }
}

fn place(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

async fn accept(listener: TcpListener, server: u16, counter: Arc<Counter>, ports: Arc<Ports>) {
    let mut relays = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        relays.spawn(relay(client, server, counter.clone(), ports.clone()));
    }
}

async fn relay(client: TcpStream, server: u16, counter: Arc<Counter>, ports: Arc<Ports>) -> Option<()> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await.ok()?;
    client.set_nodelay(true).ok()?;
    server.set_nodelay(true).ok()?;
    let ((client, to_client), (server, to_server)) = (client.into_split(), server.into_split());
    let asking = pass(client, to_server, |asked| {
        counter.client_speaks();
        asked
    });
    let answering = pass(server, to_client, |said| {
        counter.server_speaks();
        ports.replaced(said)
    });
    // When one side is gone, so is the other.
    tokio::select! { _ = asking => {} _ = answering => {} }
    Some(())
}

/// Passes on what comes, until nothing does.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, see: impl Fn(Vec<u8>) -> Vec<u8>) -> Option<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer).await.ok()?;
        let come = buffer.get(..read).filter(|come| !come.is_empty())?;
        to.write_all(&see(come.to_vec())).await.ok()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers each line with a `.`, and a relay to it.
    async fn world() -> (Wire, JoinSet<()>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                connections.spawn(async move {
                    let mut byte = [0];
                    while client.read_exact(&mut byte).await.is_ok() {
                        if byte == *b"\n" {
                            client.write_all(b".").await.unwrap();
                        }
                    }
                });
            }
        });
        (Wire::to(&[port]).await.unwrap(), serving)
    }

    async fn connect(wire: &Wire) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, wire.ports()[0])).await.unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    async fn hear(stream: &mut TcpStream, replies: usize) {
        stream.read_exact(&mut vec![0; replies]).await.unwrap();
    }

    #[tokio::test]
    async fn each_question_that_waits_for_its_reply_is_a_round_trip() {
        let (wire, _serving) = world().await;
        let mut stream = connect(&wire).await;

        for _ in 0..3 {
            stream.write_all(b"one\n").await.unwrap();
            hear(&mut stream, 1).await;
        }

        assert_eq!(wire.take(), 3);
        assert_eq!(wire.take(), 0, "counted once");
    }

    #[tokio::test]
    async fn questions_in_one_message_or_in_pieces_are_one_round_trip() {
        let (wire, _serving) = world().await;
        let mut stream = connect(&wire).await;

        stream.write_all(b"one\ntwo\nthree\n").await.unwrap();
        hear(&mut stream, 3).await;
        assert_eq!(wire.take(), 1);

        stream.write_all(&vec![b'x'; 1 << 20]).await.unwrap();
        stream.write_all(b"\n").await.unwrap();
        hear(&mut stream, 1).await;
        assert_eq!(wire.take(), 1, "however large");
    }

    #[tokio::test]
    async fn a_wait_for_two_connections_at_once_is_one_and_one_after_the_other_are_two() {
        let (wire, _serving) = world().await;
        let (mut one, mut other) = (connect(&wire).await, connect(&wire).await);

        one.write_all(b"one").await.unwrap();
        other.write_all(b"other").await.unwrap();
        // Both have been passed on.
        while wire.counter.trips.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        one.write_all(b"\n").await.unwrap();
        hear(&mut one, 1).await;
        assert_eq!(wire.take(), 1);

        other.write_all(b"\n").await.unwrap();
        hear(&mut other, 1).await;
        assert_eq!(wire.take(), 1);
    }

    #[test]
    fn speaking_again_before_a_reply_is_no_other_round_trip() {
        let counter = Counter::default();

        for spoken in ["client", "client", "server", "server", "client", "server"] {
            if spoken == "client" { counter.client_speaks() } else { counter.server_speaks() }
        }

        assert_eq!(counter.take(), 2);
    }

    #[test]
    fn ports_that_a_node_tells_are_those_of_the_relays() {
        let ports = Ports::new(&[7000, 7001], &[40_001, 40_002]);

        let said = ports.replaced(b"*2\r\n:7000\r\n:7001\r\n:70001\r\n:7000\r\n".to_vec());

        assert_eq!(said, b"*2\r\n:40001\r\n:40002\r\n:70001\r\n:40001\r\n");
    }
}
