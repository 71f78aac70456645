//! Thousands of connections that mean no good, while somebody who does is served.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use libtest_mimic::Trial;
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    broken::{Broken, Doing as _, holds},
    honest,
    raw::{Raw, head},
    server::{Kept, Memory, Server, mb},
    trial,
};

/// How long headers and bodies may take to arrive.
const READ: Duration = Duration::from_secs(4);
/// How often the honest client is served in each wave of attacks; these go on as long.
const VISITS: u64 = 12;
const WAVES: u64 = 3;
/// What the server may hold at most, in kilobytes: for each connection what its buffers may hold, and little more.
const MOST: u64 = 384 * 1024;
/// By how much the most may grow from the second wave to the last, in kilobytes: what the allocator keeps varies by some tens of
/// thousands, and each of a wave's ten thousand connections would leave more if it left seven.
const SLACK: u64 = 64 * 1024;

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("attackers_by_the_thousand_are_refused_with_memory_flat_while_others_are_served", attacks)]
}

/// What an attacker sends on each of its connections, and what may come of it.
struct Attack {
    name: &'static str,
    /// How many connections do so at once.
    at_once: usize,
    /// What is sent first.
    opening: Vec<u8>,
    then: Then,
    /// How the server replies before it closes; "" where it just closes, or the reply may be lost among what is still sent.
    reply: &'static str,
}

/// What is sent after the opening.
#[derive(Clone, Copy)]
enum Then {
    /// A byte now and then, for ever.
    Trickle(u8),
    /// The same many bytes, for ever.
    Flood(&'static [u8]),
    /// Nothing, and the connection stays open.
    Wait,
    /// Nothing any more: the client's side is closed.
    Close,
}

static LINE: [u8; 16 * 1024] = [b'x'; 16 * 1024];

/// A chunk of a body, with its length.
static CHUNK: [u8; 6 + 0x4000 + 2] = {
    let mut chunk = [b' '; 6 + 0x4000 + 2];
    let (length, rest) = chunk.split_at_mut(6);
    length.copy_from_slice(b"4000\r\n");
    rest.split_at_mut(0x4000).1.copy_from_slice(b"\r\n");
    chunk
};

fn all() -> Vec<Attack> {
    let post = |rest: &str| format!("{}{rest}", head("POST", "/chat")).into_bytes();
    let with_body = |body: &[u8]| [&post(&format!("content-length: {}\r\n\r\n", body.len())), body].concat();
    let attack = |name, at_once, opening, then, reply| Attack { name, at_once, opening, then, reply };
    let half = r#"{"messages":[{"role":"user","content":""#;
    let get = format!("{}\r\n", head("GET", "/health/live"));
    let not_text = [b"\"".as_slice(), &[0xff; 4_000], b"\""].concat();
    let garbage = format!("{get}{}", "\u{1}garbage".repeat(5_000)).into_bytes();
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".repeat(50);
    let (announced, short) = ("content-length: 99999999999\r\n\r\n", "content-length: 900\r\n\r\n");
    let (chunked, headers) = ("transfer-encoding: chunked\r\n\r\n", format!("{}\r\n", "h: x\r\n".repeat(500)));
    vec![
        attack("header bytes that trickle", 3_000, post("x-slow: "), Then::Trickle(b'x'), ""),
        attack("header lines without end", 100, post(""), Then::Flood(b"a: b\r\n"), ""),
        attack("a header line without end", 100, post("x-long: "), Then::Flood(&LINE), ""),
        attack("many headers", 200, post(&headers), Then::Wait, "431"),
        attack("an address without end", 100, b"GET /".to_vec(), Then::Flood(&LINE), ""),
        attack("silence after the first byte", 1_000, b"G".to_vec(), Then::Wait, ""),
        attack("bodies that trickle", 500, post(short), Then::Trickle(b' '), "408"),
        attack("bodies that are announced too large", 300, post(announced), Then::Wait, "413"),
        attack("bodies without end", 50, post(chunked), Then::Flood(&CHUNK), ""),
        attack("half a body", 200, post(&format!("{short}{half}")), Then::Close, ""),
        attack("bodies that are no text", 200, with_body(&not_text), Then::Wait, "400"),
        attack("nesting without end", 100, with_body("[".repeat(100_000).as_bytes()), Then::Wait, "400"),
        attack("garbage behind a request", 200, garbage, Then::Wait, "200"),
        attack("what is no HTTP", 200, hello, Then::Wait, "400"),
    ]
}

async fn attacks() {
    let mut server = Server::with(Kept::InFile, |orders| orders.read = READ).await;
    let address = server.address;
    honest::visit(address, 0).await.unwrap();
    let (before, descriptors) = (server.memory().now(), server.memory().descriptors());
    let mut most = Vec::new();
    for wave in 0..WAVES {
        most.push(self::wave(address, server.memory(), wave * VISITS + 1).await);
    }
    let all: Vec<_> = most.iter().map(|most| mb(*most)).collect();
    println!("load: {WAVES} waves of attackers: server {} MB before, at most {all:?} MB in each wave", mb(before));
    assert!(most.iter().all(|most| *most < MOST), "{most:?} kB under attack");
    assert!(most[2] <= most[1] + SLACK, "memory grows from wave to wave: {most:?} kB");
    server.settles(descriptors).await;
    assert_eq!(server.report().await.driven, 0);
    server.end().await;
}

/// All attack, until the honest client was served often enough. The most that the server held, in kilobytes.
async fn wave(address: SocketAddr, memory: Memory, first: u64) -> u64 {
    let is_over = Arc::new(AtomicBool::new(false));
    let refused = Arc::new(AtomicU64::new(0));
    let unseen = Arc::new(Mutex::new(
        all().iter().filter(|attack| !attack.reply.is_empty()).map(|attack| attack.name).collect::<BTreeSet<_>>(),
    ));
    let mut attackers = JoinSet::new();
    for attack in all().into_iter().map(Arc::new) {
        for _ in 0..attack.at_once {
            let (attack, is_over) = (attack.clone(), is_over.clone());
            let (refused, unseen) = (refused.clone(), unseen.clone());
            attackers.spawn(async move {
                loop {
                    if attack.run(address).await? {
                        unseen.lock().unwrap().remove(attack.name);
                    }
                    refused.fetch_add(1, Ordering::Relaxed);
                    if is_over.load(Ordering::Relaxed) {
                        return Ok::<_, Broken>(());
                    }
                    // A moment, so that those who are refused at once do not crowd out those who take their time.
                    sleep(READ).await;
                }
            });
        }
    }
    let mut most = memory.now();
    let mut longest = Duration::ZERO;
    let mut visits = stream::iter(first..first + VISITS);
    while let Some(number) = visits.next().await {
        let began = Instant::now();
        honest::visit(address, number).await.unwrap();
        longest = longest.max(began.elapsed());
        most = most.max(memory.now());
        sleep(Duration::from_millis(250)).await;
    }
    is_over.store(true, Ordering::Relaxed);
    let connections = attackers.len();
    while let Some(ended) = attackers.join_next().await {
        most = most.max(memory.now());
        ended.unwrap().unwrap();
    }
    println!(
        "load: {connections} attackers at once, {} connections refused; meanwhile {VISITS} chats of somebody else, which took {} ms at most",
        refused.load(Ordering::Relaxed),
        longest.as_millis(),
    );
    assert_eq!(*unseen.lock().unwrap(), BTreeSet::new(), "what was never replied to as it should be");
    most
}

impl Attack {
    /// One connection, until the server closes it: whether it replied as it does where it has the time to.
    async fn run(&self, address: SocketAddr) -> Result<bool, Broken> {
        let stream = TcpStream::connect(address).await.doing("connecting")?;
        let (reader, mut writer) = stream.into_split();
        let mut raw = Raw { stream: reader, heard: Vec::new() };
        let send = async {
            // The server may close before it has read everything.
            let mut sent = writer.write_all(&self.opening).await;
            while sent.is_ok() {
                sent = match self.then {
                    Then::Trickle(byte) => {
                        sleep(Duration::from_secs(1)).await;
                        writer.write_all(&[byte]).await
                    }
                    Then::Flood(bytes) => writer.write_all(bytes).await,
                    Then::Close => {
                        drop(writer.shutdown().await);
                        break;
                    }
                    Then::Wait => break,
                };
            }
            std::future::pending::<()>().await;
        };
        let hear = async { while raw.hears_more().await {} };
        tokio::select! {
            () = hear => {}
            () = send => {}
        }
        let heard = String::from_utf8_lossy(&raw.heard);
        let status = heard.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).unwrap_or_default();
        // Where too many attack at once, it may be too late for more than to close.
        let is_refused = status == self.reply || status.is_empty() || status.starts_with('4');
        holds(is_refused, || format!("{}: {heard}", self.name))?;
        Ok(status == self.reply)
    }
}
