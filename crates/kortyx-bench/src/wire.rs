//! A relay in front of servers that counts round trips.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    task::JoinSet,
    time::sleep_until,
};

use crate::error::Error;

/// The relay. It ends when this is dropped.
pub(crate) struct Wire {
    ports: Vec<u16>,
    counter: Arc<Counter>,
    delay: Duration,
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
        Self::slow(servers, Duration::ZERO).await
    }

    /// The same, and each reply takes so much longer: far longer than what a call does beside waiting, so that its duration tells
    /// how many replies it waited for, one after another, whatever else is said meanwhile.
    pub(crate) async fn slow(servers: &[u16], delay: Duration) -> Result<Self, Error> {
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
            accepting.spawn(accept(listener, *server, counter.clone(), names.clone(), delay));
        }
        Ok(Self { ports, counter, delay, _accepting: accepting })
    }

    /// Where the relays listen, in the order of their servers.
    pub(crate) fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Round trips since the last call.
    pub(crate) fn take(&self) -> u64 {
        self.counter.take()
    }

    /// Round trips of what began then: as they were counted since the last call, or as long as they took.
    pub(crate) fn trips_since(&self, began: Instant) -> u64 {
        let counted = self.take();
        match self.delay.as_millis() {
            0 => counted,
            delay => u64::try_from(began.elapsed().as_millis() / delay).unwrap_or(u64::MAX),
        }
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

async fn accept(listener: TcpListener, server: u16, counter: Arc<Counter>, ports: Arc<Ports>, delay: Duration) {
    let mut relays = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        relays.spawn(relay(client, server, counter.clone(), ports.clone(), delay));
    }
}

async fn relay(
    client: TcpStream,
    server: u16,
    counter: Arc<Counter>,
    ports: Arc<Ports>,
    delay: Duration,
) -> Option<()> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await.ok()?;
    client.set_nodelay(true).ok()?;
    server.set_nodelay(true).ok()?;
    let ((client, to_client), (server, to_server)) = (client.into_split(), server.into_split());
    let asking = pass(client, to_server, Duration::ZERO, |asked| {
        counter.client_speaks();
        asked
    });
    let answering = pass(server, to_client, delay, |said| {
        counter.server_speaks();
        ports.replaced(said)
    });
    // When one side is gone, so is the other.
    tokio::select! { _ = asking => {} _ = answering => {} }
    Some(())
}

/// Passes on what comes, until nothing does; each after its own delay, so that what comes together goes together.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    delay: Duration,
    see: impl Fn(Vec<u8>) -> Vec<u8>,
) -> Option<()> {
    let mut buffer = vec![0; 64 * 1024];
    if delay.is_zero() {
        loop {
            to.write_all(&see(next(&mut from, &mut buffer).await?)).await.ok()?;
        }
    }
    let (sender, mut late) = mpsc::unbounded_channel();
    let coming = async {
        while let Some(come) = next(&mut from, &mut buffer).await {
            sender.send((Instant::now() + delay, see(come))).ok()?;
        }
        None
    };
    let going = async {
        while let Some((due, come)) = late.recv().await {
            sleep_until(due.into()).await;
            to.write_all(&come).await.ok()?;
        }
        None
    };
    tokio::select! { over = coming => over, over = going => over }
}

async fn next(from: &mut OwnedReadHalf, buffer: &mut [u8]) -> Option<Vec<u8>> {
    let read = from.read(buffer).await.ok()?;
    buffer.get(..read).filter(|come| !come.is_empty()).map(<[u8]>::to_vec)
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

    #[tokio::test]
    async fn replies_that_are_late_tell_by_the_time_how_many_were_waited_for() {
        let (world, _serving) = world().await;
        let wire = Wire::slow(world.ports(), Duration::from_millis(50)).await.unwrap();
        let (mut stream, mut other) = (connect(&wire).await, connect(&wire).await);

        let mut fewest = u64::MAX;
        for _ in 0..5 {
            let began = Instant::now();
            for _ in 0..2 {
                stream.write_all(b"one\n").await.unwrap();
                other.write_all(b"meanwhile\n").await.unwrap();
                hear(&mut stream, 1).await;
            }
            fewest = fewest.min(wire.trips_since(began));
            hear(&mut other, 2).await;
        }

        assert_eq!(fewest, 2);
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
