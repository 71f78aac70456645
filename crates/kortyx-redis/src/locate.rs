//! Which session an id belongs to: locators, a bounded memory of them, and claims of new ids.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use futures_util::future::try_join_all;
use kortyx_store::{StoreError, StoreErrorKind};

use crate::{names::Kind, reply::Reply, store::RedisStore};

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

    pub(crate) fn put(&self, kind: Kind, id: &str, digest: &str) {
        let mut halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if halves.0.len() >= REMEMBERED {
            halves.1 = std::mem::take(&mut halves.0);
        }
        halves.0.insert((kind, id.to_owned()), digest.to_owned());
    }

    pub(crate) fn forget(&self, kind: Kind, id: &str) {
        let mut halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kind, id.to_owned());
        halves.0.remove(&key);
        halves.1.remove(&key);
    }
}

impl RedisStore {
    /// The digest of the session that this id belongs to, as far as locators say.
    pub(crate) async fn find(
        &self,
        operation: &'static str,
        kind: Kind,
        id: &str,
    ) -> Result<Option<String>, StoreError> {
        match self.memory.get(kind, id) {
            Some(digest) => Ok(Some(digest)),
            None => self.look_up(operation, kind, id).await,
        }
    }

    /// The same, without what this process remembers.
    pub(crate) async fn look_up(
        &self,
        operation: &'static str,
        kind: Kind,
        id: &str,
    ) -> Result<Option<String>, StoreError> {
        let key = Bytes::from(self.names.locator(kind, id));
        let found = match self.client(operation)?.command(operation, "GET", vec![key]).await? {
            Reply::Nil => None,
            reply => Some(reply.text().map_err(|damage| damage.during(operation))?),
        };
        match &found {
            Some(digest) => self.memory.put(kind, id, digest),
            None => self.memory.forget(kind, id),
        }
        Ok(found)
    }

    /// Takes new ids for a session before a transition brings them; on a single server the transition does.
    pub(crate) async fn take_ids(
        &self,
        operation: &'static str,
        digest: &str,
        ids: &[(Kind, String)],
    ) -> Result<(), StoreError> {
        if self.config.by_slot {
            try_join_all(ids.iter().map(|(kind, id)| self.take_id(operation, digest, *kind, id))).await?;
        }
        Ok(())
    }

    async fn take_id(&self, operation: &'static str, digest: &str, kind: Kind, id: &str) -> Result<(), StoreError> {
        let client = self.client(operation)?;
        let (key, value) = (Bytes::from(self.names.locator(kind, id)), Bytes::from(digest.to_owned()));
        let option = Bytes::from_static;
        let args =
            vec![key.clone(), value.clone(), option(b"NX"), option(b"GET"), option(b"PX"), option(CLAIM.as_bytes())];
        let owner = match client.command(operation, "SET", args).await? {
            Reply::Nil => return Ok(()),
            reply => reply.text().map_err(|damage| damage.during(operation))?,
        };
        if owner == digest {
            return Ok(());
        }
        if self.is_held(operation, &owner, kind, id).await? {
            self.memory.put(kind, id, &owner);
            let message = format!("{} {id} exists", kind.word());
            return Err(StoreError::new(StoreErrorKind::AlreadyExists, operation, message));
        }
        client.command(operation, "SET", vec![key, value]).await.map(drop)
    }

    /// Whether a session has this id.
    async fn is_held(&self, operation: &'static str, digest: &str, kind: Kind, id: &str) -> Result<bool, StoreError> {
        let session = self.names.session(digest);
        let tag = session.trim_end_matches(":s");
        let client = self.client(operation)?;
        let reply = match kind {
            Kind::Checkpoint => {
                let args = vec![Bytes::from(format!("{tag}:cm")), Bytes::from(id.to_owned())];
                client.command(operation, "HEXISTS", args).await?
            }
            Kind::Run | Kind::Question => {
                let key = format!("{tag}:{}:{id}", kind.letter());
                client.command(operation, "EXISTS", vec![Bytes::from(key)]).await?
            }
        };
        Ok(reply == Reply::Int(1))
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
