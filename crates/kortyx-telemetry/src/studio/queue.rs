//! Facts that wait to be sent: a bounded queue that nobody on a run's path waits for.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use kortyx_orchestrator::Fact;
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

use super::{
    counts::Counts,
    weight::{light, weight},
};

/// A fact and when it was told.
pub(super) struct Noted {
    pub(super) fact: Fact,
    pub(super) at: SystemTime,
    pub(super) instant: Instant,
    number: u64,
    weight: usize,
}

#[cfg(test)]
impl Noted {
    /// A fact that was told now.
    pub(super) fn of(fact: &Fact) -> Self {
        Self { fact: fact.clone(), at: SystemTime::now(), instant: Instant::now(), number: 0, weight: 0 }
    }
}

/// What may wait, and how much of it is taken at once.
#[derive(Debug, Clone)]
pub(super) struct Bounds {
    pub(super) events: usize,
    pub(super) bytes: usize,
    /// How large a piece of content may be.
    pub(super) content: usize,
    pub(super) batch_events: usize,
    pub(super) batch_bytes: usize,
    /// How long a fact waits for others.
    pub(super) linger: Duration,
}

/// The queue.
pub(super) struct Queue {
    bounds: Bounds,
    waiting: Mutex<Waiting>,
    wake: Notify,
    /// The number of the last fact that was dealt with.
    done: watch::Sender<u64>,
    pub(super) counts: Counts,
}

#[derive(Default)]
struct Waiting {
    facts: VecDeque<Noted>,
    bytes: usize,
    /// How many were ever taken in.
    told: u64,
    /// Up to this one somebody waits for them to be sent.
    hurry: u64,
    is_closed: bool,
}

impl Queue {
    pub(super) fn new(bounds: Bounds) -> Self {
        let done = watch::Sender::new(0);
        Self { bounds, waiting: Mutex::default(), wake: Notify::new(), done, counts: Counts::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn length(&self) -> usize {
        self.lock().facts.len()
    }

    /// Takes a fact in. The oldest ones make room for it.
    pub(super) fn push(&self, fact: &Fact) {
        let (fact, omitted) = light(fact, self.bounds.content);
        self.counts.note_omitted(omitted);
        let weight = weight(&fact);
        if weight > self.bounds.bytes {
            self.note_dropped(1);
            return;
        }
        // Before the lock: copying takes longer than all that is done under it.
        let mut noted =
            Noted { fact: fact.into_owned(), at: SystemTime::now(), instant: Instant::now(), number: 0, weight };
        let mut evicted = Vec::new();
        let mut waiting = self.lock();
        waiting.told = waiting.told.saturating_add(1);
        noted.number = waiting.told;
        waiting.bytes = waiting.bytes.saturating_add(weight);
        waiting.facts.push_back(noted);
        while waiting.facts.len() > self.bounds.events || waiting.bytes > self.bounds.bytes {
            let Some(oldest) = waiting.facts.pop_front() else { break };
            waiting.bytes = waiting.bytes.saturating_sub(oldest.weight);
            evicted.push(oldest);
        }
        let length = waiting.facts.len();
        drop(waiting);
        if length == 1 || length == self.bounds.batch_events {
            self.wake.notify_one();
        }
        self.note_dropped(evicted.len());
    }

    fn note_dropped(&self, dropped: usize) {
        if self.counts.dropped.add(dropped) {
            tracing::warn!("more telemetry is told than can be sent: the oldest is dropped and counted");
        }
    }

    /// The next facts to send, once there are enough or the first has waited long enough. `None` when no more will come.
    pub(super) async fn next(&self) -> Option<Vec<Noted>> {
        loop {
            match self.stand() {
                Stand::Ended => return None,
                Stand::Empty => self.wake.notified().await,
                Stand::Some => {
                    let ripe = async {
                        while !matches!(self.stand(), Stand::Ripe) {
                            self.wake.notified().await;
                        }
                    };
                    // Either will do: what waits is taken.
                    let _ = timeout(self.bounds.linger, ripe).await;
                    return Some(self.take());
                }
                Stand::Ripe => return Some(self.take()),
            }
        }
    }

    fn stand(&self) -> Stand {
        let waiting = self.lock();
        let is_urgent = waiting.is_closed || waiting.hurry > *self.done.borrow();
        match waiting.facts.len() {
            0 if waiting.is_closed => Stand::Ended,
            0 => Stand::Empty,
            length if is_urgent || length >= self.bounds.batch_events => Stand::Ripe,
            _ => Stand::Some,
        }
    }

    fn take(&self) -> Vec<Noted> {
        let mut waiting = self.lock();
        let (mut taken, mut bytes) = (Vec::new(), 0_usize);
        while taken.len() < self.bounds.batch_events {
            let Some(weight) = waiting.facts.front().map(|noted| noted.weight) else { break };
            bytes = bytes.saturating_add(weight);
            if bytes > self.bounds.batch_bytes && !taken.is_empty() {
                break;
            }
            waiting.bytes = waiting.bytes.saturating_sub(weight);
            taken.extend(waiting.facts.pop_front());
        }
        taken
    }

    /// Facts were dealt with, up to this one.
    pub(super) fn finish(&self, last: &Noted) {
        self.done.send_replace(last.number);
    }

    /// Has all that was told until now dealt with, without waiting for more. Says whether it was in time.
    pub(super) async fn flush(&self, time: Duration) -> bool {
        let target = {
            let mut waiting = self.lock();
            waiting.hurry = waiting.told;
            waiting.told
        };
        self.wake.notify_one();
        let mut done = self.done.subscribe();
        timeout(time, done.wait_for(|done| *done >= target)).await.is_ok_and(|done| done.is_ok())
    }

    /// No more facts will come.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.wake.notify_one();
    }

    /// Waits until no more facts will come.
    pub(super) async fn closed(&self) {
        while !self.is_closed() {
            self.wake.notified().await;
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }
}

/// How the queue stands.
enum Stand {
    Empty,
    /// Something waits, and may wait for more.
    Some,
    /// What waits is to be sent now.
    Ripe,
    /// Nothing waits and nothing will come.
    Ended,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kortyx_orchestrator::{Content, Correlation};
    use kortyx_protocol::{RawJson, RunId, SessionId};
    use kortyx_store::Scalar;

    use super::*;

    fn bounds() -> Bounds {
        let linger = Duration::from_secs(1);
        Bounds { events: 5, bytes: 100_000, content: 90_000, batch_events: 3, batch_bytes: 100_000, linger }
    }

    fn fact(number: u8, bytes: usize) -> Fact {
        let run_id = RunId::from_random([number; 16]);
        let about = Correlation::new(run_id, SessionId::new("s").unwrap());
        let input = RawJson::of(&"x".repeat(bytes)).unwrap();
        Fact::RunStarted { about, input: Some(Content::new(input)) }
    }

    fn runs(facts: &[Noted]) -> Vec<String> {
        facts
            .iter()
            .map(|noted| noted.fact.about().unwrap().run_id().as_str().chars().skip(4).take(2).collect())
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_make_room_and_are_counted() {
        let queue = Queue::new(bounds());
        (1..=7).for_each(|number| queue.push(&fact(number, 0)));
        assert_eq!(queue.counts.now().dropped, 2);
        assert_eq!(runs(&queue.next().await.unwrap()), ["03", "04", "05"]);
        assert_eq!(runs(&queue.next().await.unwrap()), ["06", "07"]);
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_are_bounded_too() {
        let queue = Queue::new(bounds());
        (1..=3).for_each(|number| queue.push(&fact(number, 40_000)));
        assert_eq!(queue.counts.now().dropped, 1);
        assert_eq!(runs(&queue.next().await.unwrap()), ["02", "03"]);
        let large = Scalar::Text("x".repeat(200_000).into());
        let about = fact(4, 0).about().unwrap().clone().with_context(BTreeMap::from([("k".to_owned(), large)]));
        queue.push(&Fact::RunStarted { about, input: None });
        assert_eq!(queue.counts.now().dropped, 2, "it is larger than all that may wait");
    }

    #[tokio::test(start_paused = true)]
    async fn content_that_is_too_large_to_be_sent_takes_no_room() {
        let queue = Queue::new(bounds());
        (1..=3).for_each(|number| queue.push(&fact(number, 200_000)));
        let waiting = queue.next().await.unwrap();
        assert_eq!(runs(&waiting), ["01", "02", "03"]);
        assert!(waiting.iter().all(|noted| matches!(noted.fact, Fact::RunStarted { input: None, .. })));
        let counts = queue.counts.now();
        assert_eq!((counts.dropped, counts.omitted), (0, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lone_fact_waits_for_others_and_a_batch_does_not() {
        let queue = Queue::new(bounds());
        let begun = tokio::time::Instant::now();
        queue.push(&fact(1, 0));
        assert_eq!(queue.next().await.unwrap().len(), 1);
        assert_eq!(begun.elapsed(), Duration::from_secs(1));
        (1..=3).for_each(|number| queue.push(&fact(number, 0)));
        assert_eq!(queue.next().await.unwrap().len(), 3);
        assert_eq!(begun.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_when_the_queue_closes_is_still_taken() {
        let queue = Queue::new(bounds());
        queue.push(&fact(1, 0));
        queue.close();
        assert_eq!(queue.next().await.unwrap().len(), 1);
        assert!(queue.next().await.is_none());
    }

    #[test]
    fn a_queue_that_nobody_empties_stays_within_its_bounds_and_makes_nobody_wait() {
        const EACH: u8 = 250;
        let queue = Queue::new(bounds());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..EACH).for_each(|number| queue.push(&fact(number, usize::from(number) * 200))));
            }
        });
        let waiting = queue.lock();
        let weights: usize = waiting.facts.iter().map(|noted| noted.weight).sum();
        assert!(waiting.bytes == weights && weights <= 100_000 && waiting.facts.len() <= 5, "{weights}");
        assert!(waiting.facts.capacity() <= 16, "{}", waiting.facts.capacity());
        let left = u64::try_from(waiting.facts.len()).unwrap();
        assert_eq!(queue.counts.now().dropped + left, 4 * u64::from(EACH));
        assert!(waiting.facts.iter().zip(waiting.facts.iter().skip(1)).all(|(a, b)| a.number < b.number));
    }
}
