//! Clients that mean no good: slow, large, cut off, many.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, timeout},
};

use crate::{
    client::Call,
    world::{Plan, Site},
};

/// Sends these bytes and reads until the server closes.
async fn raw(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may close before it has read everything.
    let _ = stream.write_all(bytes).await;
    let mut reply = Vec::new();
    let _ = timeout(Duration::from_secs(10), stream.read_to_end(&mut reply)).await.expect("the server does not close");
    String::from_utf8_lossy(&reply).into_owned()
}

fn head(extra: &str) -> String {
    format!("POST /chat HTTP/1.1\r\nhost: x\r\nx-tenant: acme\r\n{extra}")
}

async fn is_well(site: &Site) {
    assert_eq!(Call::get(site.address, "/health/ready").send().await.status, 200);
}

fn quick() -> Plan {
    let mut plan = Plan::new();
    plan.server.header_read = Duration::from_millis(300);
    plan.limits.body_read = Duration::from_millis(300);
    plan.limits.request.body_bytes = 100_000;
    plan
}

#[tokio::test]
async fn headers_that_trickle_in_and_connections_that_ask_nothing_are_closed() {
    let site = quick().start().await;
    for begun in ["", "POST /chat HTTP/1.1\r\nhost: x\r\n", "GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n"] {
        let mut stream = TcpStream::connect(site.address).await.unwrap();
        stream.write_all(begun.as_bytes()).await.unwrap();
        let (mut reader, mut writer) = stream.into_split();
        let trickle = tokio::spawn(async move {
            let is_waiting = begun.is_empty() || begun.ends_with("\r\n\r\n");
            while !is_waiting && writer.write_all(b"a: b\r\n").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            writer
        });
        let started = Instant::now();
        let mut reply = Vec::new();
        let closed = timeout(Duration::from_secs(5), reader.read_to_end(&mut reply)).await;
        assert!(closed.is_ok(), "{begun:?} is held open; {:?}", String::from_utf8_lossy(&reply));
        assert!(started.elapsed() < Duration::from_secs(3));
        trickle.abort();
    }
    is_well(&site).await;
}

#[tokio::test]
async fn a_body_that_trickles_in_is_refused_in_time() {
    let site = quick().start().await;
    let mut stream = TcpStream::connect(site.address).await.unwrap();
    stream.write_all(head("content-length: 1000\r\n\r\n").as_bytes()).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let trickle = tokio::spawn(async move {
        while writer.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut reply = Vec::new();
    let _ = timeout(Duration::from_secs(5), reader.read_to_end(&mut reply)).await.expect("it is held open");
    let reply = String::from_utf8_lossy(&reply);
    assert!(reply.starts_with("HTTP/1.1 408 ") && reply.contains("took too long"), "{reply}");
    trickle.abort();
    is_well(&site).await;
}

#[tokio::test]
async fn large_bodies_are_refused_whether_they_say_so_or_not() {
    let site = quick().start().await;
    let announced = raw(site.address, head("content-length: 99999999999\r\n\r\n").as_bytes()).await;
    assert!(announced.starts_with("HTTP/1.1 413 ") && announced.contains("PAYLOAD_TOO_LARGE"), "{announced}");
    let mut chunked = head("transfer-encoding: chunked\r\n\r\n").into_bytes();
    for _ in 0..200 {
        chunked.extend_from_slice(b"3e8\r\n");
        chunked.extend_from_slice(&[b' '; 1000]);
        chunked.extend_from_slice(b"\r\n");
    }
    let unannounced = raw(site.address, &chunked).await;
    assert!(unannounced.is_empty() || unannounced.starts_with("HTTP/1.1 413 "), "{unannounced}");
    is_well(&site).await;
}

#[tokio::test]
async fn floods_of_headers_are_refused() {
    let site = quick().start().await;
    let many = "h: x\r\n".repeat(200);
    let large = format!("h: {}\r\n", "x".repeat(100_000));
    let line = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(100_000));
    for (request, status) in
        [(head(&format!("{many}\r\n")), "431"), (head(&format!("{large}\r\n")), "431"), (line, "4")]
    {
        let reply = raw(site.address, request.as_bytes()).await;
        assert!(reply.starts_with(&format!("HTTP/1.1 {status}")), "{reply}");
    }
    is_well(&site).await;
}

#[tokio::test]
async fn what_is_cut_off_or_is_no_http_leaves_no_trace() {
    let site = quick().start().await;
    let half = r#"{"messages":[{"role":"user","content":"#;
    for request in [
        head(&format!("content-length: 1000\r\n\r\n{half}")),
        head("transfer-encoding: chunked\r\n\r\nzz\r\n"),
        head("content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
        head("content-length: 5\r\ncontent-length: 6\r\n\r\n{}"),
        "\u{16}\u{3}\u{1}".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
    ] {
        let mut stream = TcpStream::connect(site.address).await.unwrap();
        let _ = stream.write_all(request.as_bytes()).await;
        stream.shutdown().await.ok();
        let mut reply = Vec::new();
        let read = timeout(Duration::from_secs(5), stream.read_to_end(&mut reply)).await;
        assert!(read.is_ok(), "{request:?} is held open");
        let reply = String::from_utf8_lossy(&reply);
        assert!(!reply.starts_with("HTTP/1.1 2") && !reply.starts_with("HTTP/1.1 5"), "{request:?}: {reply}");
    }
    assert_eq!(site.agent().driven_runs(), 0);
    is_well(&site).await;
}

#[tokio::test]
async fn requests_sent_at_once_are_answered_in_order() {
    let site = Site::start().await;
    let get = |path: &str, last: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\nx-tenant: acme\r\n{last}\r\n");
    let body = r#"{"workflow":"echo","input":1}"#;
    let post =
        format!("POST /execute HTTP/1.1\r\nhost: x\r\nx-tenant: acme\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let all = format!("{}{post}{}", get("/nowhere", ""), get("/health/live", "connection: close\r\n"));
    let reply = raw(site.address, all.as_bytes()).await;
    let statuses: Vec<_> = reply.match_indices("HTTP/1.1 ").map(|(at, _)| &reply[at + 9..at + 12]).collect();
    assert_eq!(statuses, ["404", "200", "200"], "{reply}");
}

#[tokio::test]
async fn only_so_many_connections_are_served_at_once() {
    let mut plan = quick();
    plan.server.connections = 2;
    let site = plan.start().await;
    let idle = [TcpStream::connect(site.address).await.unwrap(), TcpStream::connect(site.address).await.unwrap()];
    let started = Instant::now();
    is_well(&site).await;
    assert!(started.elapsed() > Duration::from_millis(200), "it waited until the idle ones were closed");
    drop(idle);
}
