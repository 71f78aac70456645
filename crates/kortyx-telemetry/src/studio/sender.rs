//! The task that sends.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use bytes::{BufMut as _, Bytes, BytesMut};
use kortyx_protocol::json;
use serde::Deserialize;
use tokio::time::timeout;

use super::{
    config::Patience,
    map::{Mapped, Mapper},
    queue::{Noted, Queue},
    revision::Revisions,
    transport::{Deliver, Reply, Route},
};

const BAD_REQUEST: u16 = 400;
const TOO_LARGE: u16 = 413;
const UNPROCESSABLE: u16 = 422;
/// How often a batch that does not fit the receiver's form is halved to find what is wrong: enough for two events among a hundred, and no
/// storm where nothing fits.
const SEARCHES: usize = 14;

/// Takes facts from the queue, makes events of them and delivers these, batch by batch.
pub(super) struct Sender<D> {
    pub(super) queue: Arc<Queue>,
    pub(super) mapper: Mapper,
    pub(super) revisions: Revisions,
    pub(super) patience: Patience,
    pub(super) to: D,
}

/// An event as it is sent.
struct Ready {
    id: String,
    json: String,
}

/// What the receiver says of a batch that it took.
#[derive(Default, Deserialize)]
struct Taken {
    #[serde(default)]
    rejected: Vec<Rejected>,
}

/// An event of it that it did not take.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rejected {
    event_id: String,
    #[serde(default)]
    retryable: bool,
}

impl<D: Deliver> Sender<D> {
    /// Until the queue is closed and empty.
    pub(super) async fn run(mut self) {
        while let Some(facts) = self.queue.next().await {
            self.revisions.ensure(&self.to).await;
            let ready = facts.iter().filter_map(|noted| self.ready(noted)).collect();
            self.deliver(ready).await;
            if let Some(last) = facts.last() {
                self.queue.finish(last);
            }
        }
    }

    fn ready(&mut self, noted: &Noted) -> Option<Ready> {
        let event = match self.mapper.event(noted, &self.revisions, &self.queue.counts) {
            Mapped::Event(event) => event,
            Mapped::Nothing => return None,
            Mapped::Unbuildable(why) => return self.unbuildable(why),
        };
        match json::to_string(&*event) {
            Ok(json) => Some(Ready { id: event.event_id, json }),
            Err(_) => self.unbuildable("it cannot be written as JSON"),
        }
    }

    fn unbuildable(&self, why: &str) -> Option<Ready> {
        if self.queue.counts.unbuildable.add(1) {
            tracing::warn!(why, "an event cannot be made; such events are counted and this is not logged again");
        }
        None
    }

    /// Delivers a batch, in as many parts as the receiver wants, or gives it up.
    async fn deliver(&self, batch: Vec<Ready>) {
        let (mut parts, mut searches) = (VecDeque::from([batch]), SEARCHES);
        while let Some(part) = parts.pop_front() {
            if let Some((front, back)) = self.deliver_part(part, &mut searches).await {
                parts.push_front(back);
                parts.push_front(front);
            }
        }
    }

    /// Delivers events; gives them back in two parts when they are too large together, or one among them does not fit.
    async fn deliver_part(&self, mut left: Vec<Ready>, searches: &mut usize) -> Option<(Vec<Ready>, Vec<Ready>)> {
        let mut waits = self.waits();
        while !left.is_empty() {
            let (mut asked, mut reason) = (Duration::ZERO, "it took only a part".to_owned());
            match self.to.post(Route::Events, body(&left)).await {
                Reply::Taken(answer) => left = self.settle(left, &answer),
                Reply::Refused(status) if left.len() > 1 && is_halved(status, searches) => {
                    let back = left.split_off(left.len() / 2);
                    return Some((left, back));
                }
                Reply::Refused(status) => {
                    self.refused(left.len(), status);
                    return None;
                }
                Reply::Later { after, why } => (asked, reason) = (after, why),
            }
            if left.is_empty() {
                return None;
            }
            let wait = waits.next().filter(|_| !self.queue.is_closed());
            let Some(wait) = wait else {
                self.abandoned(left.len(), &reason);
                return None;
            };
            // Nobody waits for what comes after the reporter but the end of the process.
            let _ = timeout(wait.max(asked).min(self.patience.longest_wait), self.queue.closed()).await;
        }
        None
    }

    fn waits(&self) -> impl Iterator<Item = Duration> + use<D> {
        ExponentialBuilder::default()
            .with_min_delay(self.patience.first_wait)
            .with_max_delay(self.patience.longest_wait)
            .with_max_times(self.patience.attempts.saturating_sub(1))
            .with_jitter()
            .build()
    }

    /// What is left of a batch that was taken: the events that the receiver wants again.
    fn settle(&self, sent: Vec<Ready>, answer: &[u8]) -> Vec<Ready> {
        // An answer of another form says nothing against any event.
        let taken = json::from_slice::<Taken>(answer).unwrap_or_default();
        let (mut again, mut refused, all) = (Vec::new(), 0_usize, sent.len());
        for ready in sent {
            match taken.rejected.iter().find(|rejected| rejected.event_id == ready.id) {
                Some(rejected) if rejected.retryable => again.push(ready),
                Some(_) => refused = refused.saturating_add(1),
                None => {}
            }
        }
        self.queue.counts.sent.add(all.saturating_sub(again.len()).saturating_sub(refused));
        if refused > 0 {
            self.refused(refused, 0);
        }
        again
    }

    fn refused(&self, events: usize, status: u16) {
        if self.queue.counts.refused.add(events) {
            tracing::error!(
                status,
                "the receiver refuses telemetry; refused events are counted and this is not logged again"
            );
        }
    }

    fn abandoned(&self, events: usize, why: &str) {
        if self.queue.counts.abandoned.add(events) {
            tracing::warn!(why, "telemetry cannot be delivered; events are given up and this is not logged again");
        }
    }
}

/// Whether events that are refused together are offered in two halves.
fn is_halved(status: u16, searches: &mut usize) -> bool {
    match status {
        TOO_LARGE => true,
        BAD_REQUEST | UNPROCESSABLE => match searches.checked_sub(1) {
            Some(left) => {
                *searches = left;
                true
            }
            None => false,
        },
        _ => false,
    }
}

fn body(events: &[Ready]) -> Bytes {
    let length: usize = events.iter().map(|ready| ready.json.len().saturating_add(1)).sum();
    let mut body = BytesMut::with_capacity(length.saturating_add(16));
    body.put_slice(br#"{"events":["#);
    for (index, ready) in events.iter().enumerate() {
        if index > 0 {
            body.put_u8(b',');
        }
        body.put_slice(ready.json.as_bytes());
    }
    body.put_slice(b"]}");
    body.freeze()
}

#[cfg(test)]
mod tests;
