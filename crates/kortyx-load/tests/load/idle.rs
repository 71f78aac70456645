//! Ten thousand streams on which nothing happens, until it does.

use std::{net::SocketAddr, time::Duration};

use futures_util::{StreamExt as _, stream};
use kortyx_load::raise_descriptors;
use libtest_mimic::Trial;
use serde_json::json;
use tokio::time::Instant;

use crate::{
    client::post,
    quiet_trial,
    raw::{Raw, head, request},
    server::{Kept, Server, mb},
    turn::Turn,
};

/// Turns whose runs work, and say nothing.
const TURNS: usize = 5_000;
/// Runs that wait for an answer, and how many follow each.
const WAITING: usize = 1_250;
const FOLLOWERS: usize = 4;
const STREAMS: usize = TURNS + WAITING * FOLLOWERS;
/// How many clients connect, or answer, at once.
const AT_ONCE: usize = 100;
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// A sign of life, as it arrives: a piece of the body.
const SIGN: &str = "\r\n: \n\n\r\n";
/// How many signs of life every stream must show.
const SIGNS: usize = 2;
/// A gigabyte, in kilobytes.
const GIGABYTE: u64 = 1024 * 1024;

pub(crate) fn trials() -> Vec<Trial> {
    vec![quiet_trial("ten_thousand_idle_streams_fit_in_a_gigabyte_and_all_hear_what_comes", idle)]
}

async fn idle() {
    let may_open = raise_descriptors().unwrap();
    assert!(may_open > STREAMS as u64 + 1_000, "this system lets a process open {may_open} files: allow more");
    let mut server = Server::with(Kept::InFile, |orders| orders.keep_alive = KEEP_ALIVE).await;
    let address = server.address;
    let waiting = waiting(address).await;
    let (before, descriptors) = (server.memory().now(), server.memory().descriptors());
    let mut streams = open(address, &waiting).await;
    let opened = server.memory().now();
    assert_eq!(server.report().await.driven, TURNS);

    let began = Instant::now();
    streams = for_each(streams, async |stream: &mut Raw| {
        let signs = SIGNS + stream.count(SIGN);
        while stream.count(SIGN) < signs {
            assert!(stream.hears_more().await, "a stream ended that should be idle");
        }
    })
    .await;
    let (idle, most) = (server.memory().now(), server.memory().most());
    println!(
        "load: {STREAMS} idle streams: server {} MB before, {} MB with all open, {} MB after {:.0} s with signs of life, {} MB at most; {} kB for each",
        mb(before),
        mb(opened),
        mb(idle),
        began.elapsed().as_secs_f64(),
        mb(most),
        idle.saturating_sub(before) / STREAMS as u64,
    );
    assert!(most < GIGABYTE, "{STREAMS} idle streams take {} MB", mb(most));

    server.release().await;
    let answers = stream::iter(&waiting).map(|run| answer(address, run)).buffer_unordered(AT_ONCE);
    let hear_all = for_each(streams, async |stream: &mut Raw| {
        assert!(stream.hears("data: [DONE]\n\n").await, "a stream is cut off");
        let word = if stream.count("\"held\"") == 1 { "\"released\"" } else { "\"answered\"" };
        assert_eq!(stream.count(word), 1, "{}", String::from_utf8_lossy(&stream.heard));
    });
    let (streams, ()) = tokio::join!(hear_all, answers.collect::<()>());
    assert_eq!(streams.len(), STREAMS);
    drop(streams);
    server.settles(descriptors).await;
    server.end().await;
}

/// A run that waits.
struct Waiting {
    run_id: String,
    session: String,
    turn: Turn,
}

async fn waiting(address: SocketAddr) -> Vec<Waiting> {
    let begin = async |number: usize| {
        let session = format!("w{number}");
        let body = json!({"sessionId": session, "workflowId": "wait", "messages": [{"role": "user", "content": "x"}]});
        let open = post(address, "/chat", &body).await.unwrap();
        let run_id = open.run_id.clone().unwrap();
        Waiting { run_id, session, turn: Turn::streamed(open).await.unwrap() }
    };
    stream::iter(0..WAITING).map(begin).buffer_unordered(AT_ONCE).collect().await
}

async fn answer(address: SocketAddr, run: &Waiting) {
    let question = &run.turn.questions[0];
    let resume = json!({"token": question.token, "requestId": question.request_id, "text": "answered"});
    let message = json!({"role": "user", "content": "answered", "metadata": {"resume": resume}});
    let body = json!({"sessionId": run.session, "messages": [message]});
    let turn = Turn::streamed(post(address, "/chat", &body).await.unwrap()).await.unwrap();
    assert_eq!((turn.text.as_str(), turn.failure), ("answered", None));
}

/// Opens every stream, and hears of each what was said so far.
async fn open(address: SocketAddr, waiting: &[Waiting]) -> Vec<Raw> {
    let turns = (0..TURNS).map(|number| {
        let messages = json!([{"role": "user", "content": "x"}]);
        let body = json!({"sessionId": format!("h{number}"), "workflowId": "hold", "messages": messages});
        (request("/chat", &body), "\"held\"")
    });
    let followers = waiting.iter().flat_map(|run| {
        let ask = format!("{}\r\n", head("GET", &format!("/runs/{}/stream", run.run_id)));
        std::iter::repeat_n((ask, "\"type\":\"interrupt\""), FOLLOWERS)
    });
    let ask = async |(ask, sign): (String, &str)| {
        let mut raw = Raw::ask(address, &ask).await.unwrap();
        assert!(raw.hears(sign).await, "{}", String::from_utf8_lossy(&raw.heard));
        raw
    };
    stream::iter(turns.chain(followers)).map(ask).buffer_unordered(AT_ONCE).collect().await
}

/// Does something with every stream, all at once.
async fn for_each(streams: Vec<Raw>, act: impl AsyncFn(&mut Raw)) -> Vec<Raw> {
    let each = streams.into_iter().map(async |mut raw| {
        act(&mut raw).await;
        raw
    });
    futures_util::future::join_all(each).await
}
