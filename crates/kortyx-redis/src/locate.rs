//! Which session an id belongs to: locators, a bounded memory of them, and claims of new ids.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use futures_util::future::try_join_all;
use kortyx_protocol::{CheckpointId, RequestId, RunId};
use kortyx_store::{StoreError, StoreErrorKind};

use crate::{
    names::{Kind, part_of_digest, part_of_id},
    reply::Reply,
    store::RedisStore,
};

/// Where an id belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The session.
    pub(crate) digest: String,
    /// Of a question: the run; else empty.
    pub(crate) run: String,
}

impl Place {
    /// Reads a locator.
    pub(crate) fn of(locator: &str) -> Option<Self> {
        let (digest, run) = locator.split_at_checked(32)?;
        Some(Self { digest: digest.to_owned(), run: run.to_owned() })
    }
}

/// An id that a transition brings.
pub(crate) struct NewId {
    pub(crate) kind: Kind,
    pub(crate) id: String,
    /// Of a question: the run; else empty.
    run: String,
}

impl NewId {
    pub(crate) fn run(id: &RunId) -> Self {
        Self { kind: Kind::Run, id: id.as_str().to_owned(), run: String::new() }
    }

    pub(crate) fn question(id: &RequestId, run: &RunId) -> Self {
        Self { kind: Kind::Question, id: id.as_str().to_owned(), run: run.as_str().to_owned() }
    }

    pub(crate) fn checkpoint(id: &CheckpointId) -> Self {
        Self { kind: Kind::Checkpoint, id: id.as_str().to_owned(), run: String::new() }
    }

    /// What its locator says in this session.
    pub(crate) fn place(&self, digest: &str) -> String {
        format!("{digest}{}", self.run)
    }
}

/// How many locators a process remembers, at most twice.
const REMEMBERED: usize = 50_000;
/// How long a claimed id stays taken when its transition never came, in milliseconds.
const CLAIM: &str = "3600000";

/// Locators that this process saw: the older half goes when the newer is full.
#[derive(Default)]
pub(crate) struct Memory(Mutex<(Half, Half)>);

type Half = HashMap<(Kind, String), String>;

impl Memory {
    fn get(&self, kind: Kind, id: &str) -> Option<String> {
        let halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kind, id.to_owned());
        halves.0.get(&key).or_else(|| halves.1.get(&key)).cloned()
    }

    pub(crate) fn put(&self, kind: Kind, id: &str, place: impl Into<String>) {
        let mut halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if halves.0.len() >= REMEMBERED {
            halves.1 = std::mem::take(&mut halves.0);
        }
        halves.0.insert((kind, id.to_owned()), place.into());
    }

    pub(crate) fn forget(&self, kind: Kind, id: &str) {
        let mut halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kind, id.to_owned());
        halves.0.remove(&key);
        halves.1.remove(&key);
    }
}

impl RedisStore {
    /// Where this id belongs, as far as this process remembers.
    pub(crate) fn remembered(&self, kind: Kind, id: &str) -> Option<Place> {
        self.memory.get(kind, id).as_deref().and_then(Place::of)
    }

    /// Where this id belongs, as far as locators say.
    pub(crate) async fn find(
        &self,
        operation: &'static str,
        kind: Kind,
        id: &str,
    ) -> Result<Option<Place>, StoreError> {
        match self.remembered(kind, id) {
            Some(place) => Ok(Some(place)),
            None => self.look_up(operation, kind, id).await,
        }
    }

    /// The same, without what this process remembers.
    pub(crate) async fn look_up(
        &self,
        operation: &'static str,
        kind: Kind,
        id: &str,
    ) -> Result<Option<Place>, StoreError> {
        let key = Bytes::from(self.names.locator(kind, id));
        let found = match self.client(operation)?.command(operation, "GET", vec![key]).await? {
            Reply::Nil => None,
            reply => Some(reply.text().map_err(|damage| damage.during(operation))?),
        };
        let place = found.as_deref().and_then(Place::of);
        match found.filter(|_| place.is_some()) {
            Some(found) => self.memory.put(kind, id, found),
            None => self.memory.forget(kind, id),
        }
        Ok(place)
    }

    /// Takes new ids for a session before a transition brings them, but for those that say the session's own slot: these the
    /// transition takes itself, and all of them where there are no slots.
    pub(crate) async fn take_ids(
        &self,
        operation: &'static str,
        digest: &str,
        ids: &[NewId],
    ) -> Result<(), StoreError> {
        if !self.config.by_slot {
            return Ok(());
        }
        self.take_each(operation, digest, ids.iter().filter(|new| part_of_id(&new.id) != part_of_digest(digest))).await
    }

    /// Takes each of these ids.
    pub(crate) async fn take_each(
        &self,
        operation: &'static str,
        digest: &str,
        ids: impl IntoIterator<Item = &NewId>,
    ) -> Result<(), StoreError> {
        let taken: Vec<_> = ids.into_iter().map(|new| self.take_id(operation, digest, new)).collect();
        if !taken.is_empty() {
            // A locator that is still to be removed must not take the new one with it.
            self.hints.settled().await;
        }
        try_join_all(taken).await.map(drop)
    }

    async fn take_id(&self, operation: &'static str, digest: &str, new: &NewId) -> Result<(), StoreError> {
        let client = self.client(operation)?;
        let place = new.place(digest);
        let (key, value) = (Bytes::from(self.names.locator(new.kind, &new.id)), Bytes::from(place.clone()));
        let option = Bytes::from_static;
        let args =
            vec![key.clone(), value.clone(), option(b"NX"), option(b"GET"), option(b"PX"), option(CLAIM.as_bytes())];
        let owner = match client.command(operation, "SET", args).await? {
            Reply::Nil => return Ok(()),
            reply => reply.text().map_err(|damage| damage.during(operation))?,
        };
        if owner == place {
            return Ok(());
        }
        if self.is_held(operation, &owner, new).await? {
            let message = format!("{} {} exists", new.kind.word(), new.id);
            self.memory.put(new.kind, &new.id, owner);
            return Err(StoreError::new(StoreErrorKind::AlreadyExists, operation, message));
        }
        client.command(operation, "SET", vec![key, value]).await.map(drop)
    }

    /// Whether this id is where a locator says.
    async fn is_held(&self, operation: &'static str, owner: &str, new: &NewId) -> Result<bool, StoreError> {
        let Some(place) = Place::of(owner) else { return Ok(false) };
        let session = self.names.session(&place.digest);
        let tag = session.trim_end_matches(":s");
        let (command, args) = match new.kind {
            Kind::Checkpoint => ("HEXISTS", vec![format!("{tag}:c"), new.id.clone()]),
            Kind::Question => ("HEXISTS", vec![format!("{tag}:r:{}", place.run), format!("q:{}", new.id)]),
            Kind::Run => ("EXISTS", vec![format!("{tag}:r:{}", new.id)]),
        };
        let args = args.into_iter().map(Bytes::from).collect();
        Ok(self.client(operation)?.command(operation, command, args).await? == Reply::Int(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded_and_the_newest_stays() {
        let memory = Memory::default();
        for i in 0..REMEMBERED * 3 {
            memory.put(Kind::Run, &i.to_string(), "d");
        }
        let halves = memory.0.lock().unwrap();
        assert!(halves.0.len() + halves.1.len() <= REMEMBERED * 2);
        drop(halves);
        assert!(memory.get(Kind::Run, &(REMEMBERED * 3 - 1).to_string()).is_some());
        assert!(memory.get(Kind::Run, "0").is_none());
        assert!(memory.get(Kind::Question, "1").is_none());
    }
}
