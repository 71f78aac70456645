//! Requests of the port as scripts take them: packed or as JSON, with payloads beside it.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use kortyx_store::{
    AskKey, Driver, NewCheckpoint, NewInterrupt, NewRun, Reissue, Scalar, Scope, StoreError, StoreErrorKind, TurnRef,
    WorkflowPin,
};
use serde_json::{Map, Value, json};

use crate::{
    names::{encode_scalar, pair_digest, pin_digest, token_digest},
    pack::Packer,
    snapshot::stored,
};

/// The version of records that this code writes and reads.
pub(crate) const VERSION: u8 = 2;
/// The place of the first payload among a script's arguments.
const FIRST: usize = 3;
/// The largest number that a script tells from its neighbours: 2^53 - 1.
const EXACT: u64 = (1 << 53) - 1;

/// A request under way to a script.
pub(crate) struct Request {
    operation: &'static str,
    payload_limit: usize,
    /// What a script reads that takes JSON.
    pub(crate) body: Map<String, Value>,
    /// What a script reads that takes a record.
    pub(crate) packed: Packer,
    pub(crate) payloads: Vec<Bytes>,
}

impl Request {
    pub(crate) fn new(operation: &'static str, payload_limit: usize) -> Self {
        Self { operation, payload_limit, body: Map::new(), packed: Packer::with_room(512), payloads: Vec::new() }
    }

    /// Sets a part; an absent one is left out.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        if !value.is_null() {
            self.body.insert(name.to_owned(), value);
        }
    }

    /// The request as its script takes it.
    pub(crate) fn head(&mut self) -> Bytes {
        if self.packed.is_empty() {
            return Value::Object(std::mem::take(&mut self.body)).to_string().into();
        }
        self.packed.take()
    }

    /// Refuses a payload over the limit.
    pub(crate) fn check(&self, what: &str, payload: &[u8]) -> Result<(), StoreError> {
        if payload.len() <= self.payload_limit {
            return Ok(());
        }
        let message = format!("{what} has {} bytes, the limit is {}", payload.len(), self.payload_limit);
        Err(StoreError::new(StoreErrorKind::TooLarge, self.operation, message))
    }

    /// Puts a payload beside the request; refuses one over the limit.
    pub(crate) fn payload(&mut self, what: &str, payload: Bytes) -> Result<(), StoreError> {
        self.check(what, &payload)?;
        self.payloads.push(payload);
        Ok(())
    }

    /// The same of a snapshot, as it is stored.
    pub(crate) fn snapshot(&mut self, snapshot: Bytes) -> Result<(), StoreError> {
        self.check("a snapshot", &snapshot)?;
        self.payloads.push(stored(snapshot));
        Ok(())
    }

    /// Puts beside the request what is within its limits by what it is made of; gives its place.
    pub(crate) fn stored(&mut self, content: impl Into<Bytes>) -> Value {
        self.payloads.push(content.into());
        Value::from(self.payloads.len() + FIRST - 1)
    }

    pub(crate) fn driver(&mut self, driver: &Driver) {
        self.set("driver", json!({ "ttl": millis(driver.ttl) }));
    }

    /// Questions, and keys to withdraw.
    pub(crate) fn asks(&mut self, publish: Vec<NewInterrupt>, withdraw: &[AskKey]) -> Result<(), StoreError> {
        self.packed.count(publish.len()).count(withdraw.len());
        for new in publish {
            self.check("a question", &new.question)?;
            self.check("a default", new.default.as_deref().unwrap_or_default())?;
            self.packed
                .byte(u8::from(new.optional_cancel))
                .byte(u8::from(new.after_response_completed))
                .byte(u8::from(new.default.is_some()))
                .number(millis(new.expires_in))
                .raw(&token_digest(&new.token))
                .id(new.request_id.as_str())
                .id(new.token.expose())
                .bytes(new.ask.0.as_bytes());
            self.payloads.push(rest_of(&new));
        }
        for ask in withdraw {
            self.packed.bytes(ask.0.as_bytes());
        }
        Ok(())
    }

    /// What a turn ends with: a checkpoint's id and what it is given with, empty for none; behind them what the run says. Nothing
    /// for neither.
    pub(crate) fn ending(&mut self, checkpoint: Option<NewCheckpoint>, chunks: Vec<Bytes>) -> Result<(), StoreError> {
        if checkpoint.is_some() || !chunks.is_empty() {
            self.turn(checkpoint)?;
        }
        self.chunks(chunks)
    }

    /// A checkpoint's id and what it is given with, empty for none.
    pub(crate) fn turn(&mut self, checkpoint: Option<NewCheckpoint>) -> Result<(), StoreError> {
        let Some(new) = checkpoint else {
            self.payloads.extend([Bytes::new(), Bytes::new()]);
            return Ok(());
        };
        self.check("a checkpoint's state", &new.state)?;
        self.payloads.push(new.id.as_str().to_owned().into());
        self.payloads.push(given_with(new));
        Ok(())
    }

    /// What a run says, behind everything else.
    pub(crate) fn chunks(&mut self, chunks: Vec<Bytes>) -> Result<(), StoreError> {
        chunks.into_iter().try_for_each(|chunk| self.payload("a chunk", chunk))
    }

    /// The turn that a new run follows, behind everything else that is packed.
    pub(crate) fn follows(&mut self, turn: Option<&TurnRef>) {
        if let Some(TurnRef { checkpoint_id, turn_index }) = turn {
            self.packed.id(checkpoint_id.as_str()).number(*turn_index);
        }
    }

    pub(crate) fn reissue(&mut self, reissue: &[Reissue]) {
        let reissue = reissue.iter().map(|new| {
            let digest = self.stored(token_digest(&new.token).to_vec());
            json!({
                "from": new.from.as_str(), "id": new.request_id.as_str(), "token": new.token.expose(), "digest": digest,
            })
        });
        let reissue = reissue.collect::<Vec<_>>();
        self.set("reissue", reissue);
    }
}

/// What scripts need not look into of a question; of its default, that it comes first.
fn rest_of(new: &NewInterrupt) -> Bytes {
    let mut packed = Packer::with_room(64 + new.question.len());
    packed.bytes(new.default.as_deref().unwrap_or_default()).bytes(new.workflow.as_bytes()).bytes(new.node.as_bytes());
    packed.bytes(&new.question).take()
}

/// What a checkpoint is given with.
pub(crate) fn given_with(new: NewCheckpoint) -> Bytes {
    let mut packed = Packer::with_room(128 + new.state.len());
    packed.byte(VERSION).bytes(new.workflow.as_bytes()).option(new.workflow_version.as_deref());
    packed.option(new.label.as_deref());
    for texts in [new.nodes, new.structured_stream_ids] {
        packed.count(texts.len());
        for text in texts {
            packed.bytes(text.as_bytes());
        }
    }
    packed.bytes(&new.state).take()
}

/// What never changes of a run.
pub(crate) fn fixed(run: &NewRun) -> Bytes {
    let pairs: Vec<_> = run.context.iter().map(|(key, value)| pair_digest(key, value)).collect();
    let context = if run.context.is_empty() { "{}".to_owned() } else { context(&run.context).to_string() };
    let mut packed = Packer::with_room(256);
    packed.byte(VERSION).bytes(pairs.join(",").as_bytes()).bytes(context.as_bytes());
    packed.id(run.run_id.as_str()).id(run.session_id.as_str()).take()
}

/// Context values by key, each as text that says its type.
fn context(context: &BTreeMap<String, Scalar>) -> Value {
    Value::Object(context.iter().map(|(key, value)| (key.clone(), encode_scalar(value).into())).collect())
}

/// A definition, behind its digest.
pub(crate) fn definition(pin: &WorkflowPin) -> Bytes {
    let mut packed = Packer::with_room(160);
    packed.raw(pin_digest(pin).as_bytes());
    packed.bytes(pin.id.as_bytes()).bytes(pin.version.as_bytes()).bytes(pin.fingerprint.as_bytes()).take()
}

pub(crate) fn scope(scope: &Scope) -> Value {
    let mut value = Map::new();
    value.insert("context".to_owned(), context(&scope.context));
    value.extend(scope.session_id.as_ref().map(|id| ("session".to_owned(), Value::from(id.as_str()))));
    Value::Object(value)
}

/// Whole milliseconds, at most to the end of time.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(EXACT).min(300_000_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_stand_beside_the_request_in_order() {
        let mut request = Request::new("open", 4);
        request.payload("a", Bytes::from_static(b"1")).unwrap();
        assert_eq!(request.stored(Bytes::from_static(b"12345")), json!(4));
        let error = request.payload("a snapshot", Bytes::from_static(b"12345")).unwrap_err();
        assert_eq!(error.to_string(), "open: a snapshot has 5 bytes, the limit is 4");
        assert_eq!((error.kind(), request.payloads.len()), (StoreErrorKind::TooLarge, 2));
    }

    #[test]
    fn times_stay_where_scripts_can_tell_them_apart() {
        assert_eq!(millis(Duration::MAX), 300_000_000_000_000);
        assert_eq!(millis(Duration::from_micros(1_999)), 1);
    }

    #[test]
    fn a_request_without_a_record_is_json_without_what_is_absent() {
        let mut request = Request::new("answer", 0);
        request.set("absent", None::<String>);
        request.set("run", "r");
        assert_eq!(request.head(), r#"{"run":"r"}"#);
        request.packed.byte(1);
        assert_eq!(request.head(), "\u{1}");
    }
}
