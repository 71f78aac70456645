//! Export to a collector on this machine, and to one that is not there.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use kortyx_telemetry::{Otel, OtelBuilder, OtelSink};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tracing_subscriber::prelude::*;

use crate::world::{LONG, agent, run_through};

/// Takes every request, and keeps its head and body.
async fn collector() -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(take(stream, kept.clone()));
        }
    });
    (url, seen)
}

async fn take(mut stream: TcpStream, seen: Arc<Mutex<Vec<u8>>>) {
    let mut bytes = Vec::new();
    loop {
        let mut more = [0; 8192];
        match stream.read(&mut more).await {
            Ok(read) if read > 0 => bytes.extend_from_slice(&more[..read]),
            _ => return,
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if bytes.len() - end - 4 >= length.parse::<usize>().unwrap() {
            seen.lock().unwrap().append(&mut bytes);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        }
    }
}

fn otel(url: &str) -> OtelBuilder {
    Otel::builder().endpoint(url).batch(100, Duration::from_mins(1)).timeout(Duration::from_millis(300))
}

/// Runs through with a layer of its own, and gives what was asked, how long it took, and the export.
async fn exported(builder: &OtelBuilder) -> (Vec<String>, Duration, Otel) {
    let otel = builder.start().unwrap();
    let layered = tracing_subscriber::registry().with(otel.layer()).set_default();
    let begun = Instant::now();
    let tokens = run_through(&agent(OtelSink::new()).await).await;
    drop(layered);
    (tokens, begun.elapsed(), otel)
}

#[tokio::test]
async fn what_is_exported_holds_ids_and_names_and_nothing_that_was_said() {
    let (url, seen) = collector().await;
    let builder = otel(&url).header("x-key", "50%41").service_name("desk").attribute("deployment", "blue");
    let (tokens, _, otel) = exported(&builder).await;
    assert!(otel.shutdown(LONG).await);

    let bytes = String::from_utf8_lossy(&seen.lock().unwrap()).into_owned();
    let wanted =
        ["POST /v1/traces", "x-key: 50%41\r", "desk", "deployment", "run review", "node ask", "step look up", "paused"];
    for wanted in wanted {
        assert!(bytes.contains(wanted), "{wanted} in {bytes}");
    }
    assert!(!bytes.contains("planted"), "{bytes}");
    assert!(tokens.iter().all(|token| !bytes.contains(token)));
}

#[tokio::test]
async fn a_collector_that_is_not_there_costs_spans_and_nothing_else() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/traces", gone.local_addr().unwrap());
    drop(gone);
    let (_, took, otel) = exported(&otel(&url)).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(!otel.flush(LONG).await);
    otel.shutdown(LONG).await;
}

#[tokio::test]
async fn a_collector_that_never_answers_does_not_hold_up_the_end() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/traces", silent.local_addr().unwrap());
    let (_, took, otel) = exported(&otel(&url).timeout(LONG).batch(1, Duration::from_millis(1))).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    let begun = Instant::now();
    assert!(!otel.shutdown(Duration::from_millis(100)).await);
    assert!(begun.elapsed() < Duration::from_secs(5));
}
