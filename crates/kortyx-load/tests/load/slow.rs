//! Clients that read a byte a second of megabytes.

use std::{net::SocketAddr, time::Duration};

use futures_util::future::join_all;
use kortyx_load::{MANY, PIECE_BYTES};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt as _,
    time::{Instant, sleep},
};

use crate::{
    client::{get, post},
    honest, quiet_trial,
    raw::{Raw, head, request},
    server::{Kept, Server, mb},
    turn::{Followed, Stand, Turn},
};

/// How many read a byte a second of a turn of their own, and how many of a run that others read too.
const SLOW: usize = 40;
const FOLLOWERS: usize = 6;
const SECONDS: u64 = 15;
/// What a slow reader may cost, in kilobytes; all that it is told takes sixteen times as much.
const FOR_EACH: u64 = 1_024;
/// What everything else may take that is played meanwhile, in kilobytes: a run is read as a whole twice, by others.
const SLACK: u64 = 128 * 1024;
/// By how much the memory may grow while slow readers read on, in kilobytes.
const GROWTH: u64 = 8 * 1024;

pub(crate) fn trials() -> Vec<Trial> {
    vec![quiet_trial("readers_of_a_byte_a_second_hold_nobody_up_and_no_memory", slow)]
}

fn turn(session: &str) -> Value {
    json!({"sessionId": session, "workflowId": "megabytes", "messages": [{"role": "user", "content": "x"}]})
}

async fn slow() {
    let mut server = Server::start(Kept::InFile).await;
    let address = server.address;
    honest::visit(address, 0).await.unwrap();
    // A whole run first: what its memory was used for is there again.
    let read = Turn::streamed(post(address, "/chat", &turn("whole")).await.unwrap()).await.unwrap();
    assert_eq!((read.text.len(), read.failure), (MANY * PIECE_BYTES, None));
    let (before, descriptors) = (server.memory().now(), server.memory().descriptors());

    let slow = (0..SLOW).map(|number| {
        let ask = request("/chat", &turn(&format!("slow{number}")));
        async move { Raw::ask_with_little_room(address, &ask).await.unwrap() }
    });
    let mut readers = join_all(slow).await;
    sleep(Duration::from_secs(3)).await;
    let full = server.memory().now();
    let fast = post(address, "/chat", &turn("fast")).await.unwrap();
    let run_id = fast.run_id.clone().unwrap();
    readers.extend(join_all((0..FOLLOWERS).map(|_| follow(address, &run_id))).await);
    // Whoever reads fast is held up by nobody who does not, on the same run.
    let (read, followed) = tokio::join!(Turn::streamed(fast), follow_to_end(address, &run_id));
    assert_eq!((read.unwrap().text.len(), followed), (MANY * PIECE_BYTES, MANY * PIECE_BYTES));

    let (began, read, mut most) = (Instant::now(), server.memory().now(), 0);
    for second in 0..SECONDS {
        let ((), visited) = tokio::join!(read_a_byte(&mut readers), honest::visit(address, second + 1));
        visited.unwrap();
        most = most.max(server.memory().now());
        sleep(Duration::from_secs(1)).await;
    }
    let count = readers.len() as u64;
    println!(
        "load: {count} readers of a byte a second, of {} MB each, for {:.0} s: server {} MB before, {} MB with full buffers, {} MB when others have read all of it, {} MB at most",
        MANY * PIECE_BYTES / 1024 / 1024,
        began.elapsed().as_secs_f64(),
        mb(before),
        mb(full),
        mb(read),
        mb(most),
    );
    assert_eq!(server.report().await.driven, SLOW, "the runs of those who read slowly are held back, and go on");
    assert!(most < before + count * FOR_EACH + SLACK, "{} MB before, {} MB with slow readers", mb(before), mb(most));
    assert!(most < read + GROWTH, "{} MB at first, {} MB after a while", mb(read), mb(most));
    drop(readers);
    server.settles(descriptors).await;
    server.end().await;
}

async fn follow(address: SocketAddr, run_id: &str) -> Raw {
    let ask = format!("{}\r\n", head("GET", &format!("/runs/{run_id}/stream")));
    Raw::ask_with_little_room(address, &ask).await.unwrap()
}

/// How much text somebody hears who follows the run and reads fast.
async fn follow_to_end(address: SocketAddr, run_id: &str) -> usize {
    let mut followed = Followed::new(get(address, &format!("/runs/{run_id}/stream")).await.unwrap()).unwrap();
    assert!(matches!(followed.next().await.unwrap(), Stand::Ended(_)));
    followed.text.len()
}

async fn read_a_byte(readers: &mut [Raw]) {
    for reader in readers {
        reader.stream.read_u8().await.expect("a slow reader's connection is lost");
    }
}
