//! The raw loop: as many round trips with the same payloads, and nothing decided.

use std::sync::Arc;

use bytes::Bytes;
use fred::{
    clients::Client,
    interfaces::{ClientLike as _, KeysInterface as _},
};

use super::Place;
use crate::{error::Error, number::float, served::Raw, template::Template};

/// Sets keys and takes them again, over one connection.
#[derive(Clone)]
pub(super) struct Loop {
    client: Client,
    prefix: Arc<str>,
    /// The payload of each `SET` and of the `GETDEL` after it.
    payloads: Arc<[Bytes]>,
    /// A last `SET`, where the round trips are odd.
    last: bool,
}

impl Loop {
    /// What a pause writes is set and taken, as the claim of a run takes it; then what an answer and an end bring.
    pub(super) async fn new(place: &Place, trips: f64, template: &Template) -> Result<Self, Error> {
        let paused = [template.snapshot().as_ref(), template.question().question.as_ref()].concat();
        let ended = [template.given().as_ref(), template.outcome().as_ref()].concat();
        let mut payloads = vec![Bytes::from(paused)];
        while float(2 * payloads.len() as u64 + 1) < trips {
            payloads.push(Bytes::from(ended.clone()));
        }
        let last = float(2 * payloads.len() as u64) < trips;
        let prefix = format!("{}:raw:", place.prefix).into();
        Ok(Self { client: place.connect().await?, prefix, payloads: payloads.into(), last })
    }

    pub(super) async fn close(self) -> Result<(), Error> {
        Ok(self.client.quit().await?)
    }

    async fn set(&self, key: &str, payload: &Bytes) -> Result<(), Error> {
        Ok(self.client.set(key, payload.clone(), None, None, false).await?)
    }
}

impl Raw for Loop {
    async fn cycle(&self, number: u64) -> Result<(), Error> {
        for (place, payload) in self.payloads.iter().enumerate() {
            let key = format!("{}{number}:{place}", self.prefix);
            self.set(&key, payload).await?;
            let taken: Option<Bytes> = self.client.getdel(&key).await?;
            if taken.as_ref() != Some(payload) {
                return Err(Error::unexpected("a key does not hold what was set"));
            }
        }
        match self.payloads.last() {
            Some(payload) if self.last => self.set(&format!("{}{number}", self.prefix), payload).await,
            _ => Ok(()),
        }
    }
}
