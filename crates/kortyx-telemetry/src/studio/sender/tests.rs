//! What the sender does when the receiver takes, refuses, delays or only partly takes events. Time is paused.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use kortyx_orchestrator::{Correlation, Fact};
use kortyx_protocol::{RunId, SessionId, json};
use kortyx_store::{RunStatus, WorkflowPin};
use serde_json::Value;
use tokio::{task::JoinHandle, time::Instant};

use super::*;
use crate::studio::{ReporterCounts, StudioConfig};

/// A receiver that answers as it is told, and takes everything when it is told no more.
#[derive(Clone, Default)]
struct Receiver(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    replies: VecDeque<Reply>,
    /// When, and the ids of the runs.
    seen: Vec<(Duration, Vec<String>)>,
    ids: Vec<String>,
    begun: Option<Instant>,
}

impl Deliver for Receiver {
    async fn post(&self, _: Route, body: Bytes) -> Reply {
        let mut script = self.0.lock().unwrap();
        let body: Value = json::from_slice(&body).unwrap();
        let events = body["events"].as_array().unwrap();
        let text = |event: &Value, at: &str| event.pointer(at).unwrap().as_str().unwrap().to_owned();
        let since = script.begun.unwrap_or_else(Instant::now).elapsed();
        script.seen.push((since, events.iter().map(|event| text(event, "/correlation/sessionId")).collect()));
        script.ids = events.iter().map(|event| text(event, "/eventId")).collect();
        match script.replies.pop_front() {
            Some(Reply::Taken(answer)) if answer.starts_with(b"reject ") => {
                let (_, retryable) = str::from_utf8(&answer).unwrap().split_once(' ').unwrap();
                let answer = format!(r#"{{"rejected":[{{"eventId":"{}","retryable":{retryable}}}]}}"#, script.ids[0]);
                Reply::Taken(answer.into())
            }
            Some(reply) => reply,
            None => Reply::Taken(Bytes::new()),
        }
    }
}

struct World {
    queue: Arc<Queue>,
    receiver: Receiver,
    task: JoinHandle<()>,
}

fn world(replies: impl IntoIterator<Item = Reply>) -> World {
    let config = StudioConfig::new("http://localhost", "key", "test", "desk").unwrap();
    let config = config.batch(2, Duration::from_secs(1)).retries(4, Duration::from_secs(1), Duration::from_secs(30));
    let queue = Arc::new(Queue::new(config.bounds.clone()));
    let receiver = Receiver::default();
    receiver.0.lock().unwrap().replies.extend(replies);
    receiver.0.lock().unwrap().begun = Some(Instant::now());
    let sender = Sender {
        queue: queue.clone(),
        mapper: Mapper::new(&config),
        revisions: Revisions::new(&config).unwrap(),
        patience: config.patience,
        to: receiver.clone(),
    };
    World { queue, receiver, task: tokio::spawn(sender.run()) }
}

impl World {
    fn tell(&self, name: &str) {
        self.queue.push(&fact(name, Some("w")));
    }

    fn tell_all(&self, names: &[&str]) {
        for name in names {
            self.tell(name);
        }
    }

    /// How long passed between one request and the next.
    fn waits(&self) -> Vec<Duration> {
        self.seen().windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0)).collect()
    }

    async fn flushed(&self) -> ReporterCounts {
        assert!(self.queue.flush(Duration::from_mins(10)).await);
        self.queue.counts.now()
    }

    fn seen(&self) -> Vec<(Duration, Vec<String>)> {
        self.receiver.0.lock().unwrap().seen.clone()
    }

    fn names(&self) -> Vec<Vec<String>> {
        self.seen().into_iter().map(|(_, names)| names).collect()
    }
}

/// A run ended, in a session of this name.
fn fact(session: &str, workflow: Option<&str>) -> Fact {
    let mut about = Correlation::new(RunId::from_random([1; 16]), SessionId::new(session).unwrap());
    if let Some(id) = workflow {
        about = about.bound_to(WorkflowPin { id: id.into(), version: "1".into(), fingerprint: "f".into() });
    }
    Fact::RunFinished { about, status: RunStatus::Completed, code: None, usage: None, output: None }
}

fn later(seconds: u64) -> Reply {
    Reply::Later { after: Duration::from_secs(seconds), why: "it answers 503".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn events_are_sent_in_the_order_in_which_they_were_told() {
    let world = world([]);
    world.tell_all(&["a", "b", "c"]);
    assert_eq!(world.flushed().await.sent, 3);
    assert_eq!(world.names(), [vec!["a", "b"], vec!["c"]]);
}

#[tokio::test(start_paused = true)]
async fn a_lone_event_waits_for_others_a_moment_and_is_sent_without_them() {
    let world = world([]);
    for name in ["a", "b"] {
        tokio::time::sleep(Duration::from_mins(1)).await;
        world.tell(name);
        assert!(!world.names().contains(&vec![name.to_owned()]));
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        assert_eq!(world.names().last(), Some(&vec![name.to_owned()]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_tried_again_with_the_same_ids_before_the_next() {
    let world = world([later(0), later(0)]);
    world.tell_all(&["a", "b", "c"]);
    assert_eq!(world.flushed().await.sent, 3);
    assert_eq!(world.names(), [vec!["a", "b"], vec!["a", "b"], vec!["a", "b"], vec!["c"]]);
    let waits = world.waits();
    assert!((1..=2).contains(&waits[0].as_secs()) && (2..=4).contains(&waits[1].as_secs()), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn the_receiver_may_ask_to_wait_up_to_a_limit() {
    let world = world([later(20), later(86_400)]);
    world.tell("a");
    assert_eq!(world.flushed().await.sent, 1);
    let waits: Vec<u64> = world.waits().iter().map(Duration::as_secs).collect();
    assert_eq!(waits, [20, 30]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_cannot_be_delivered_is_given_up_and_the_next_is_not() {
    let world = world((0..4).map(|_| later(0)));
    world.tell_all(&["a", "b", "c"]);
    let counts = world.flushed().await;
    assert_eq!((counts.abandoned, counts.sent), (2, 1));
    assert_eq!(world.names().last().unwrap(), &["c"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_for_good_is_counted_and_not_tried_again() {
    let world = world([Reply::Refused(401)]);
    world.tell_all(&["a", "b", "c"]);
    let counts = world.flushed().await;
    assert_eq!((counts.refused, counts.sent), (2, 1));
    assert_eq!(world.names().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn of_a_batch_that_was_taken_in_part_the_rest_is_sent_again_or_counted() {
    let world = world([Reply::Taken("reject true".into()), Reply::Taken("reject false".into())]);
    world.tell_all(&["a", "b"]);
    let counts = world.flushed().await;
    assert_eq!((counts.sent, counts.refused), (1, 1));
    assert_eq!(world.names(), [vec!["a", "b"], vec!["a"]]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_too_large_is_sent_in_parts() {
    let world = world([Reply::Refused(TOO_LARGE), Reply::Refused(TOO_LARGE)]);
    world.tell_all(&["a", "b"]);
    let counts = world.flushed().await;
    assert_eq!((counts.sent, counts.refused), (1, 1));
    assert_eq!(world.names(), [vec!["a", "b"], vec!["a"], vec!["b"]]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_does_not_fit_costs_no_other() {
    for status in [BAD_REQUEST, UNPROCESSABLE] {
        let world = world([Reply::Refused(status), Reply::Refused(status)]);
        world.tell_all(&["a", "b"]);
        let counts = world.flushed().await;
        assert_eq!((counts.sent, counts.refused), (1, 1));
        assert_eq!(world.names(), [vec!["a", "b"], vec!["a"], vec!["b"]]);
    }
}

#[test]
fn the_search_for_events_that_do_not_fit_ends() {
    let mut searches = 1;
    let mut halved = |status| is_halved(status, &mut searches);
    assert!(halved(TOO_LARGE) && halved(BAD_REQUEST));
    assert!(!halved(BAD_REQUEST) && !halved(UNPROCESSABLE));
    assert!(halved(TOO_LARGE));
    assert!(!halved(401));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_made_is_counted_and_holds_nothing_up() {
    let world = world([]);
    world.queue.push(&fact("a", None));
    world.tell("b");
    let counts = world.flushed().await;
    assert_eq!((counts.unbuildable, counts.sent), (1, 1));
    assert_eq!(world.names(), [vec!["b"]]);
}

#[tokio::test(start_paused = true)]
async fn flushing_waits_no_longer_than_it_may() {
    let world = world((0..100).map(|_| later(30)));
    world.tell("a");
    let begun = Instant::now();
    assert!(!world.queue.flush(Duration::from_secs(5)).await);
    assert_eq!(begun.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_sender_without_a_reporter_tries_once_and_ends() {
    let world = world((0..100).map(|_| later(0)));
    world.tell_all(&["a", "b", "c"]);
    world.queue.close();
    world.task.await.unwrap();
    assert_eq!(world.queue.counts.now().abandoned, 3);
}

#[tokio::test(start_paused = true)]
async fn a_sender_whose_reporter_goes_away_waits_no_longer() {
    let world = world((0..100).map(|_| later(30)));
    let begun = Instant::now();
    world.tell_all(&["a", "b"]);
    while world.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    world.queue.close();
    world.task.await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(world.queue.counts.now().abandoned, 2);
}

#[tokio::test(start_paused = true)]
async fn memory_stays_bounded_while_the_receiver_is_gone() {
    let world = world((0..1_000).map(|_| later(30)));
    for number in 0..50_000_u32 {
        world.tell("a");
        if number % 1000 == 0 {
            tokio::task::yield_now().await;
        }
    }
    let dropped = world.queue.counts.now().dropped;
    assert!((39_900..=40_000).contains(&dropped), "{dropped}");
}

/// Takes requests and never comes back.
struct Hung;

impl Deliver for Hung {
    async fn post(&self, _: Route, _: Bytes) -> Reply {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_transport_that_hangs_for_ever_holds_up_nobody_who_tells() {
    let config = StudioConfig::new("http://localhost", "key", "test", "desk").unwrap().waiting(10, 1_000_000);
    let config = config.batch(5, Duration::ZERO);
    let queue = Arc::new(Queue::new(config.bounds.clone()));
    let (mapper, revisions) = (Mapper::new(&config), Revisions::new(&config).unwrap());
    let sender = Sender { queue: queue.clone(), mapper, revisions, patience: config.patience, to: Hung };
    let task = tokio::spawn(sender.run());
    for _ in 0..5000 {
        queue.push(&fact("s", Some("w")));
        tokio::task::yield_now().await;
    }
    assert!(!queue.flush(Duration::from_hours(1)).await);
    let dropped = queue.counts.now().dropped;
    assert!((4985..=4990).contains(&dropped), "all but what waits and one batch: {dropped}");
    queue.close();
    assert!(!task.is_finished());
    task.abort();
}
