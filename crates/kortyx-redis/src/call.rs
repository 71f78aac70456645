//! Calling a script: its settings, its own id, its reply, and what it leaves to do in other slots.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use kortyx_store::{StoreError, StoreErrorKind};

use crate::{
    encode::{Request, millis},
    locate::NewId,
    names::is_digest,
    pack::Packer,
    reply::{Parts, Reading, Reply},
    script::{DUE, Script},
    store::RedisStore,
};

impl RedisStore {
    pub(crate) fn request(&self, operation: &'static str) -> Request {
        Request::new(operation, self.config.payload_limit)
    }

    /// Runs a transition on a session, once however often it must be sent.
    pub(crate) async fn transition(
        &self,
        operation: &'static str,
        script: &Script,
        digest: &str,
        request: Request,
    ) -> Result<Reply, StoreError> {
        let op = self.next_op();
        self.call(operation, script, (digest, &[]), &op, request).await
    }

    /// A transition of a session's own: takes the ids that it brings first, and remembers them after.
    pub(crate) async fn bring(
        &self,
        operation: &'static str,
        script: &Script,
        digest: &str,
        ids: &[NewId],
        request: Request,
    ) -> Result<Reply, StoreError> {
        self.take_ids(operation, digest, ids).await?;
        let op = self.next_op();
        let reply = self.call(operation, script, (digest, ids), &op, request).await?;
        for new in ids {
            self.memory.put(new.kind, &new.id, new.place(digest));
        }
        Ok(reply)
    }

    /// Runs a script that changes nothing, or that changes the same when it is sent again.
    pub(crate) async fn read(
        &self,
        operation: &'static str,
        script: &Script,
        digest: &str,
        request: Request,
    ) -> Result<Reply, StoreError> {
        self.call(operation, script, (digest, &[]), "", request).await
    }

    async fn call(
        &self,
        operation: &'static str,
        script: &Script,
        (digest, ids): (&str, &[NewId]),
        op: &str,
        mut request: Request,
    ) -> Result<Reply, StoreError> {
        let mut settings = Packer::with_room(128);
        settings.id(self.names.prefix()).byte(u8::from(!self.config.by_slot));
        settings.signed(self.config.clock_offset.load(Ordering::Relaxed));
        settings.number(millis(self.config.keep_finished)).number(millis(self.config.keep_idle)).id(op);
        let mut args = Vec::with_capacity(2 + request.payloads.len());
        args.extend([settings.take(), request.head()]);
        args.append(&mut request.payloads);
        let key = self.names.session(digest);
        let mut reply = self.client(operation)?.script(operation, script, &key, &args).await?;
        if is_elsewhere(&reply) {
            // An id says this slot and yet belongs to a session of another, or once did: where that is, it is decided.
            self.take_each(operation, digest, ids).await?;
            reply = self.client(operation)?.script(operation, script, &key, &args).await?;
        }
        let (said, hints) = done(operation, reply)?;
        if !hints.is_empty() {
            self.hints.leave(operation, hints).await;
        }
        Ok(said)
    }

    /// What an index says is due: its first entries up to now less an age, with their scores.
    pub(crate) async fn due(
        &self,
        operation: &'static str,
        index: &str,
        age: u64,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.index(operation, index, age, limit, "0").await
    }

    /// The entries of an index with the highest scores, from this one on.
    pub(crate) async fn highest(
        &self,
        operation: &'static str,
        index: &str,
        from: u64,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.index(operation, index, from, limit, "1").await
    }

    async fn index(
        &self,
        operation: &'static str,
        index: &str,
        bound: u64,
        limit: usize,
        from_highest: &str,
    ) -> Result<Vec<String>, StoreError> {
        self.hints.settled().await;
        let offset = self.config.clock_offset.load(Ordering::Relaxed);
        let args = [offset.to_string(), bound.to_string(), limit.to_string(), from_highest.to_owned()];
        let args = args.map(Bytes::from);
        let reply = self.client(operation)?.script(operation, &DUE, index, &args).await?;
        let members = || reply.list()?.into_iter().map(Reply::text).collect::<Reading<_>>();
        members().map_err(|damage| damage.during(operation))
    }
}

/// How a script ended.
enum Said {
    /// What it replied, and what it leaves to do.
    Done(Reply, Vec<Reply>),
    /// It changed nothing: the kind of its reason, and a message.
    Refused(String, String),
}

fn said(reply: Reply) -> Reading<Said> {
    if is_ordinary(&reply) {
        return Ok(Said::Done(reply, Vec::new()));
    }
    let mut parts = Parts::of(reply)?;
    if parts.text()? == "done" {
        return Ok(Said::Done(parts.next()?, parts.list()?));
    }
    Ok(Said::Refused(parts.text()?, parts.text()?))
}

/// Whether this is what the ordinary case of a script replies: a text, or a text and a payload.
fn is_ordinary(reply: &Reply) -> bool {
    matches!(reply, Reply::Bytes(_)) || matches!(reply, Reply::List(parts) if parts.len() == 2)
}

/// Whether a script changed nothing because an id may be taken in a slot that it cannot look into.
fn is_elsewhere(reply: &Reply) -> bool {
    matches!(reply, Reply::List(parts) if matches!(parts.as_slice(), [refused, kind, ..]
        if *refused == Reply::Bytes("refused".into()) && *kind == Reply::Bytes("elsewhere".into())))
}

/// What a script said and what it leaves to do; its refusal is an error.
fn done(operation: &'static str, reply: Reply) -> Result<(Reply, Vec<Reply>), StoreError> {
    let (kind, message) = match said(reply).map_err(|damage| damage.during(operation))? {
        Said::Done(reply, hints) => return Ok((reply, hints)),
        Said::Refused(kind, message) => (kind, message),
    };
    let kind = match kind.as_str() {
        "lease" => StoreErrorKind::LeaseLost,
        "exists" | "elsewhere" => StoreErrorKind::AlreadyExists,
        "invalid" => StoreErrorKind::InvalidRequest,
        "abandoned" => StoreErrorKind::Abandoned,
        _ => StoreErrorKind::Corrupt,
    };
    Err(StoreError::new(kind, operation, message))
}

/// What stands between a question's id and its run's: neither holds it.
pub(crate) const BETWEEN: char = '\u{1f}';

/// A place in an index: the session's digest and what follows it.
pub(crate) struct Entry {
    pub(crate) digest: String,
    pub(crate) rest: String,
    pub(crate) member: String,
}

impl Entry {
    /// Reads `stamp.number.digest.rest`.
    pub(crate) fn of_stamped(member: String) -> Option<Self> {
        Self::at(member, 32)
    }

    /// Reads `digest.rest`.
    pub(crate) fn of_session(member: String) -> Option<Self> {
        Self::at(member, 0)
    }

    fn at(member: String, place: usize) -> Option<Self> {
        let (digest, rest) = member.get(place..)?.split_once('.')?;
        let (digest, rest) = (digest.to_owned(), rest.to_owned());
        is_digest(&digest).then_some(Self { digest, rest, member })
    }

    /// A question's id and its run's, in `id`, [`BETWEEN`], `run`.
    pub(crate) fn question(&self) -> Option<(&str, &str)> {
        self.rest.split_once(BETWEEN)
    }

    /// The run's id in `epoch.id`.
    pub(crate) fn run_id(&self) -> Option<&str> {
        self.rest.split_once('.').map(|(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_an_error_of_its_kind() {
        let part = |text: &str| Reply::Bytes(Bytes::from(text.to_owned()));
        for (name, kind) in [("lease", StoreErrorKind::LeaseLost), ("exists", StoreErrorKind::AlreadyExists)] {
            let reply = Reply::List(vec![part("refused"), part(name), part("why")]);
            let error = done("record", reply).unwrap_err();
            assert_eq!((error.kind(), error.to_string()), (kind, "record: why".to_owned()));
        }
        let error = done("record", Reply::Int(1)).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    }

    #[test]
    fn an_entry_of_an_index_names_its_session_and_its_run() {
        let digest = "0123456789abcdef0123456789abcdef";
        let entry = Entry::of_stamped(format!("001767225600000000.000000000001.{digest}.4.run.1")).unwrap();
        assert_eq!((entry.digest.as_str(), entry.run_id()), (digest, Some("run.1")));
        let entry = Entry::of_stamped(format!("001767225600000000.000000000001.{digest}.human.1\x1frun.1")).unwrap();
        assert_eq!(entry.question(), Some(("human.1", "run.1")));
        let entry = Entry::of_session(format!("{digest}.99")).unwrap();
        assert_eq!((entry.digest.as_str(), entry.rest.as_str()), (digest, "99"));
        for member in ["", "x.y", "001767225600000000.000000000001.short.4.run"] {
            assert!(Entry::of_stamped(member.to_owned()).is_none(), "{member}");
        }
    }
}
