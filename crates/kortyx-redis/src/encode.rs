//! Requests of the port as scripts take them: JSON, with payloads beside it.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use kortyx_store::{
    AskKey, Driver, Lease, NewCheckpoint, NewInterrupt, NewRun, Reissue, Scalar, Scope, StoreError, StoreErrorKind,
    WorkflowPin,
};
use serde_json::{Map, Value, json};

use crate::names::{encode_scalar, pair_digest, pin_digest};

/// The place of the first payload among a script's arguments.
const FIRST: usize = 3;
/// The largest number that a script tells from its neighbours: 2^53 - 1.
const EXACT: u64 = (1 << 53) - 1;

/// A request under way to a script.
pub(crate) struct Request {
    operation: &'static str,
    payload_limit: usize,
    pub(crate) body: Map<String, Value>,
    pub(crate) payloads: Vec<Bytes>,
}

impl Request {
    pub(crate) fn new(operation: &'static str, payload_limit: usize) -> Self {
        Self { operation, payload_limit, body: Map::new(), payloads: Vec::new() }
    }

    /// Sets a part; an absent one is left out.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        if !value.is_null() {
            self.body.insert(name.to_owned(), value);
        }
    }

    /// Puts a payload beside the request and gives its place; refuses one over the limit.
    pub(crate) fn payload(&mut self, what: &str, payload: Bytes) -> Result<Value, StoreError> {
        if payload.len() > self.payload_limit {
            let message = format!("{what} has {} bytes, the limit is {}", payload.len(), self.payload_limit);
            return Err(StoreError::new(StoreErrorKind::TooLarge, self.operation, message));
        }
        self.payloads.push(payload);
        Ok(Value::from(self.payloads.len() + FIRST - 1))
    }

    /// The same for what was stored before: it was within the limit then.
    pub(crate) fn stored(&mut self, content: Bytes) -> Value {
        self.payloads.push(content);
        Value::from(self.payloads.len() + FIRST - 1)
    }

    pub(crate) fn lease(&mut self, lease: &Lease) {
        self.set("run", lease.run_id.as_str());
        self.set("fence", lease.fence.to_string());
    }

    pub(crate) fn seen(&mut self, answers_seen: u64) {
        self.set("seen", answers_seen.min(EXACT));
    }

    pub(crate) fn driver(&mut self, driver: Option<&Driver>) {
        self.set("driver", driver.map(|driver| json!({ "ttl": millis(driver.ttl) })));
    }

    pub(crate) fn withdraw(&mut self, withdraw: Vec<AskKey>) {
        self.set("withdraw", withdraw.into_iter().map(|ask| ask.0).collect::<Vec<_>>());
    }

    pub(crate) fn publish(&mut self, publish: Vec<NewInterrupt>) -> Result<(), StoreError> {
        let questions = publish.into_iter().map(|new| self.question(new)).collect::<Result<Vec<_>, _>>()?;
        self.set("publish", questions);
        Ok(())
    }

    fn question(&mut self, new: NewInterrupt) -> Result<Value, StoreError> {
        let mut question = json!({
            "id": new.request_id.as_str(),
            "token": new.token.expose(),
            "ask": new.ask.0,
            "workflow": new.workflow,
            "node": new.node,
            "blob": self.payload("a question", new.question)?,
            "ttl": millis(new.expires_in),
            "opt": flag(new.optional_cancel),
            "after": flag(new.after_response_completed),
        });
        if let (Some(default), Some(question)) = (new.default, question.as_object_mut()) {
            question.insert("default".to_owned(), self.payload("a default", default)?);
        }
        Ok(question)
    }

    pub(crate) fn checkpoint(&mut self, checkpoint: Option<NewCheckpoint>) -> Result<(), StoreError> {
        let Some(new) = checkpoint else { return Ok(()) };
        let mut checkpoint = json!({
            "id": new.id.as_str(),
            "nodes": Value::from(new.nodes).to_string(),
            "workflow": new.workflow,
            "streams": Value::from(new.structured_stream_ids).to_string(),
            "state": self.payload("a checkpoint's state", new.state)?,
        });
        if let Some(checkpoint) = checkpoint.as_object_mut() {
            checkpoint.extend(new.label.map(|label| ("label".to_owned(), Value::from(label))));
            checkpoint.extend(new.workflow_version.map(|version| ("version".to_owned(), Value::from(version))));
        }
        self.set("checkpoint", checkpoint);
        Ok(())
    }

    pub(crate) fn reissue(&mut self, reissue: &[Reissue]) {
        let reissue = reissue.iter().map(
            |new| json!({ "from": new.from.as_str(), "id": new.request_id.as_str(), "token": new.token.expose() }),
        );
        self.set("reissue", reissue.collect::<Vec<_>>());
    }
}

pub(crate) fn new_run(run: &NewRun) -> Value {
    let pairs: Vec<_> = run.context.iter().map(|(key, value)| pair_digest(key, value)).collect();
    json!({
        "id": run.run_id.as_str(),
        "session": run.session_id.as_str(),
        "context": context(&run.context).to_string(),
        "pairs": pairs.join(","),
    })
}

/// Context values by key, each as text that says its type.
fn context(context: &BTreeMap<String, Scalar>) -> Value {
    Value::Object(context.iter().map(|(key, value)| (key.clone(), encode_scalar(value).into())).collect())
}

pub(crate) fn workflow(pin: &WorkflowPin) -> Value {
    json!({ "id": pin.id, "version": pin.version, "fingerprint": pin.fingerprint, "pin": pin_digest(pin) })
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

pub(crate) fn flag(is_set: bool) -> &'static str {
    if is_set { "1" } else { "0" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_stand_beside_the_request_in_order() {
        let mut request = Request::new("open", 4);
        assert_eq!(request.payload("a", Bytes::from_static(b"1")).unwrap(), json!(3));
        assert_eq!(request.payload("b", Bytes::from_static(b"\0")).unwrap(), json!(4));
        let error = request.payload("a snapshot", Bytes::from_static(b"12345")).unwrap_err();
        assert_eq!(error.to_string(), "open: a snapshot has 5 bytes, the limit is 4");
        assert_eq!(error.kind(), StoreErrorKind::TooLarge);
    }

    #[test]
    fn numbers_stay_where_scripts_can_tell_them_apart() {
        assert_eq!(millis(Duration::MAX), 300_000_000_000_000);
        let mut request = Request::new("renew", 0);
        request.seen(u64::MAX);
        assert_eq!(request.body.get("seen"), Some(&json!(9_007_199_254_740_991_u64)));
    }

    #[test]
    fn what_is_absent_is_left_out() {
        let mut request = Request::new("answer", 0);
        request.driver(None);
        assert!(request.body.is_empty());
    }
}
