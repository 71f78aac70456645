//! Many chats at once.

use std::{
    collections::BTreeSet,
    env,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use futures_util::future::join_all;
use kortyx_load::ROUNDS;
use libtest_mimic::Trial;
use tokio::time::{Instant, sleep};

use crate::{
    broken::Broken,
    chat,
    client::get,
    server::{Kept, Memory, Server, mb},
    trial,
};

/// How many chats are under way at once.
const CHATS: u64 = 500;
/// How long a server in memory keeps what has ended: longer than a chat takes to look at it on a busy machine, and short enough for as much
/// to go as comes. What a file keeps is not in memory.
const RETENTION: Duration = Duration::from_secs(30);
/// How much memory may vary once the server is warm, in kilobytes; less than a kilobyte for each chat that is played meanwhile
/// on a fast machine.
const SLACK: u64 = 12 * 1024;

pub(crate) fn trials() -> Vec<Trial> {
    let both = || async {
        tokio::join!(chats(Kept::InFile), chats(Kept::InMemory));
    };
    vec![trial("five_hundred_chats_at_once_on_a_file_and_as_many_in_memory_lose_nothing_and_leave_nothing", both)]
}

/// A minute, or so many seconds as the environment says.
pub(crate) fn lasts() -> Duration {
    let seconds = env::var("KORTYX_TEST_LOAD_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(60))
}

async fn chats(kept: Kept) {
    let mut server = match kept {
        Kept::InFile => Server::start(kept).await,
        Kept::InMemory => Server::with(kept, |orders| orders.retention = RETENTION).await,
    };
    let address = server.address;
    let warm_up = chat::play(address, 0).await.unwrap();
    let descriptors = server.memory().descriptors();
    let (began, numbers) = (Instant::now(), AtomicU64::new(1));
    let end = began + lasts();
    let play_on = || async {
        let mut effects = Vec::new();
        while Instant::now() < end {
            effects.extend(chat::play(address, numbers.fetch_add(1, Ordering::Relaxed)).await?);
        }
        Ok::<_, Broken>(effects)
    };
    let players = join_all((0..CHATS).map(|_| play_on()));
    let (played, course) = tokio::join!(players, watch(server.memory(), end));
    let mut effects = warm_up;
    for played in played {
        effects.extend(played.unwrap_or_else(|broken| panic!("{broken}")));
    }
    let chats = numbers.into_inner();
    println!(
        "load: {CHATS} chats at once, {kept:?}: {chats} chats with {} answers in {:.0} s, no error; server {} MB warm, {} MB at the end",
        chats * ROUNDS as u64,
        began.elapsed().as_secs_f64(),
        mb(course.warm),
        mb(course.late),
    );

    let count = effects.len() as u64;
    assert_eq!(count, chats * ROUNDS as u64);
    assert_eq!(effects.into_iter().collect::<BTreeSet<_>>().len() as u64, count, "two effects are the same");
    assert_eq!(server.report().await.effects, count, "an effect happened that nobody was told of");
    let open = get(address, "/interrupts").await.unwrap().json(200).await.unwrap();
    assert_eq!(open["interrupts"], serde_json::json!([]), "a question is still open");
    // Before as much goes as comes, it has to grow.
    let is_flat = course.late <= course.warm + course.warm / 10 + SLACK;
    assert!(is_flat || lasts() < RETENTION * 2, "memory grows: {course:?}");
    server.settles(descriptors).await;
    server.end().await;
}

/// The memory of a server in the course of time, in kilobytes: the most of the second and of the last third.
#[derive(Debug)]
struct Course {
    warm: u64,
    late: u64,
}

async fn watch(memory: Memory, end: Instant) -> Course {
    let third = end.saturating_duration_since(Instant::now()) / 3;
    let (mut course, begins, ends) = (Course { warm: 0, late: 0 }, end - third * 2, end - third);
    while Instant::now() < end {
        sleep(Duration::from_millis(500)).await;
        let now = Instant::now();
        if now > ends {
            course.late = course.late.max(memory.now());
        } else if now > begins {
            course.warm = course.warm.max(memory.now());
        }
    }
    course
}
