//! What clients cost in memory. Measured in a process of its own, one test at a time.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    dead_code,
    reason = "a world that cannot be built fails the test; it is shared with other tests"
)]

#[path = "../http/client.rs"]
mod client;
#[path = "../http/workflows.rs"]
mod workflows;
#[path = "../http/world.rs"]
mod world;

use std::time::Duration;

use serde_json::json;
use tokio::{io::AsyncReadExt as _, sync::Mutex};

use crate::{
    client::Call,
    world::{Site, eventually, unread},
};

/// Held by the test that measures.
static ALONE: Mutex<()> = Mutex::const_new(());

/// What this process holds in memory, in kilobytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn readers_of_a_byte_now_and_then_hold_nobody_up_and_cost_no_more_with_time() {
    const READERS: usize = 8;
    let _alone = ALONE.lock().await;
    let site = Site::start().await;
    let mut readers = Vec::new();
    for index in 0..READERS {
        readers.push(unread(&site, &format!("s{index}")).await);
    }
    eventually(|| site.agent().driven_runs() == READERS).await;
    // What fits into buffers is said at once.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let full = resident();
    for _ in 0..30 {
        for reader in &mut readers {
            reader.read_u8().await.unwrap();
        }
        let body = json!({"workflow": "echo", "input": {}});
        assert_eq!(Call::post(site.address, "/execute", &body).send().await.status, 200, "nobody else is held up");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let grown = resident().saturating_sub(full) / READERS as u64;
    assert!(grown < 200, "{grown} kB more for each reader");
    drop(readers);
    eventually(|| site.agent().driven_runs() == 0).await;
}

#[tokio::test]
async fn idle_streams_cost_little() {
    const STREAMS: usize = 200;
    let _alone = ALONE.lock().await;
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
