//! Clients that read slowly, or not at all.

use std::time::Duration;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};

use crate::{
    client::Call,
    execute::execute,
    world::{Plan, Site, eventually},
};

/// Asks for a stream that never ends and reads nothing, with a small window.
async fn unread(site: &Site, session: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(site.address).await.unwrap();
    let body = json!({"sessionId": session, "workflowId": "endless", "messages": [{"role": "user", "content": "x"}]});
    let body = body.to_string();
    let head = format!("POST /chat HTTP/1.1\r\nhost: x\r\nx-tenant: acme\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    stream
}

/// What this process holds in memory, in kilobytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn readers_of_a_byte_now_and_then_hold_nobody_up_and_cost_little() {
    const READERS: usize = 8;
    let site = Site::start().await;
    execute(&site, "review").await;
    let before = resident();
    let mut readers = Vec::new();
    for index in 0..READERS {
        readers.push(unread(&site, &format!("s{index}")).await);
    }
    eventually(|| site.agent().driven_runs() == READERS).await;
    for _ in 0..20 {
        for reader in &mut readers {
            reader.read_u8().await.unwrap();
        }
        assert_eq!(execute(&site, "review").await["status"], "suspended");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let per_reader = resident().saturating_sub(before) / READERS as u64;
    assert!(per_reader < 4096, "{per_reader} kB for each reader");
    drop(readers);
    eventually(|| site.agent().driven_runs() == 0).await;
}

#[tokio::test]
async fn a_reader_that_takes_nothing_loses_its_connection_and_its_run() {
    let mut plan = Plan::new();
    plan.server.write_stall = Duration::from_millis(300);
    let site = plan.start().await;
    let _reader = unread(&site, "s1").await;
    eventually(|| site.agent().driven_runs() == 1).await;
    eventually(|| site.agent().driven_runs() == 0).await;
}

#[tokio::test]
async fn idle_streams_cost_little() {
    const STREAMS: usize = 200;
    let site = Site::start().await;
    let silent = |index: usize| {
        let messages = json!([{"role": "user", "content": "x"}]);
        json!({"sessionId": format!("s{index}"), "workflowId": "silent", "messages": messages})
    };
    drop(Call::post(site.address, "/chat", &silent(STREAMS)).open().await);
    let before = resident();
    let mut open = Vec::new();
    for index in 0..STREAMS {
        let mut stream = Call::post(site.address, "/chat", &silent(index)).open().await;
        stream.frame().await.unwrap();
        open.push(stream);
    }
    // Both ends of each connection live in this process; ten thousand streams must fit in a gigabyte.
    let per_stream = resident().saturating_sub(before) / STREAMS as u64;
    assert!(per_stream < 100, "{per_stream} kB for each stream and its client");
}
