//! Transitions and readings as the database's functions take them.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use kortyx_protocol::RunId;
use kortyx_store::{
    AskKey, Driver, InterruptQuery, Lease, NewCheckpoint, NewInterrupt, NewResponse, NewRun, Reissue, RunQuery, RunRef,
    RunStatus, Scalar, Scope, SessionQuery, StoreError, StoreErrorKind, WorkflowPin,
};
use serde_json::{Map, Value, json};

use crate::{
    PostgresConfig,
    encoding::{encode, encode_context, hex, pair_digest, pin_digest},
};

/// A call of a function: what it is to do, as JSON that names payloads by their places.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) operation: &'static str,
    /// A transition's own id; `None` for what only reads.
    pub(crate) transition: Option<String>,
    pub(crate) body: Value,
    pub(crate) payloads: Vec<Bytes>,
    /// Whether it concerns what a run says, its response, or the turn that it follows: functions of their own decide over that.
    pub(crate) is_of_output: bool,
}

impl Request {
    /// The call as a text, for a pooler that may hand every statement to another server process.
    pub(crate) fn inline(&self, config: &PostgresConfig, again: bool) -> String {
        let body = literal(&self.body.to_string());
        let (statement, places) = match &self.transition {
            Some(id) => {
                let payloads = self.payloads.iter().map(|payload| format!("E'\\\\x{}'::bytea", hex(payload)));
                let payloads = format!("ARRAY[{}]::bytea[]", payloads.collect::<Vec<_>>().join(","));
                let places = vec![literal(self.operation), literal(id), again.to_string(), body, payloads];
                let statement = if self.is_of_output {
                    include_str!("queries/transit_2_inline.sql")
                } else {
                    include_str!("queries/transit_inline.sql")
                };
                (statement, places)
            }
            None => (self.reading(), vec![literal(self.operation), body]),
        };
        let statement = config.render(statement);
        // Only the statement is searched for places, never what was put there.
        let mut parts = statement.split('$');
        let mut sql = parts.next().unwrap_or_default().to_owned();
        for (part, value) in parts.zip(places) {
            sql.push_str(&value);
            sql.push_str(part.trim_start_matches(|digit: char| digit.is_ascii_digit()));
        }
        sql
    }

    fn reading(&self) -> &'static str {
        match of_inspection(self.operation) {
            Some(statement) => statement,
            None if self.is_of_output => include_str!("queries/read_2.sql"),
            None => include_str!("queries/read.sql"),
        }
    }
}

/// The statement of what only inspectors read: it takes what readings take, the operation first, and needs no function of its own.
pub(crate) fn of_inspection(operation: &str) -> Option<&'static str> {
    match operation {
        "list_runs" => Some(include_str!("queries/list_runs.sql")),
        "history" => Some(include_str!("queries/history.sql")),
        "list_sessions" => Some(include_str!("queries/list_sessions.sql")),
        "stats" => Some(include_str!("queries/stats.sql")),
        _ => None,
    }
}

/// A text as a literal that means the same whatever the server's settings.
fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// What cursors of pages of runs and sessions start with; the key of the last one that was looked at follows.
const RUNS: &str = "runs.";
const SESSIONS: &str = "sessions.";

/// A request that is being put together.
pub(crate) struct Draft {
    body: Map<String, Value>,
    payloads: Vec<Bytes>,
    is_of_output: bool,
}

impl Draft {
    pub(crate) fn new() -> Self {
        Self { body: Map::new(), payloads: Vec::new(), is_of_output: false }
    }

    /// Reads a run with what its response ended with.
    pub(crate) fn run(run_id: &RunId) -> Self {
        Self { is_of_output: true, ..Self::new() }.with("id", run_id.as_str())
    }

    /// Reads a piece of a run's output.
    pub(crate) fn output(run_id: &RunId, after: u64, limit: u32) -> Self {
        let draft = Self { is_of_output: true, ..Self::new() };
        draft.with("id", run_id.as_str()).with("after", bounded(after)).with("limit", limit)
    }

    /// Sets a part.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.body.insert(name.to_owned(), value.into());
        self
    }

    /// Sets a part to a payload.
    #[must_use]
    pub(crate) fn with_payload(mut self, name: &str, payload: &Bytes) -> Self {
        let place = self.place(payload);
        self.with(name, place)
    }

    /// Takes a payload, and gives its place, from 1.
    pub(crate) fn place(&mut self, payload: &Bytes) -> Value {
        self.payloads.push(payload.clone());
        self.payloads.len().into()
    }

    /// Takes chunks, if there are any: the request names the first and the last.
    #[must_use]
    pub(crate) fn with_chunks(mut self, chunks: &[Bytes]) -> Self {
        if chunks.is_empty() {
            return self;
        }
        let first = self.payloads.len() + 1;
        self.payloads.extend_from_slice(chunks);
        self.is_of_output = true;
        let last = self.payloads.len();
        self.with("chunks", vec![first, last])
    }

    #[must_use]
    pub(crate) fn with_lease(self, lease: &Lease) -> Self {
        self.with("lease", json!({"run_id": lease.run_id.as_str(), "fence": bounded(lease.fence)}))
    }

    /// A new run, or the lease of one.
    #[must_use]
    pub(crate) fn with_run(self, run: &RunRef, workflow: &WorkflowPin) -> Self {
        let draft = match run {
            RunRef::New(run, _) => self.with_new_run(run).with("lease", Value::Null),
            RunRef::Held(lease) => self.with_lease(lease).with("run", Value::Null),
        };
        draft.with("pin", pin(workflow))
    }

    #[must_use]
    pub(crate) fn with_new_run(mut self, run: &NewRun) -> Self {
        self.is_of_output |= run.follows.is_some();
        self.with("run", new_run(run))
    }

    #[must_use]
    pub(crate) fn with_questions(mut self, publish: &[NewInterrupt], withdraw: &[AskKey]) -> Self {
        let published: Vec<Value> = publish.iter().map(|new| self.question(new)).collect();
        let withdrawn: Vec<Value> = withdraw.iter().map(|ask| encode(&ask.0).into()).collect();
        self.with("publish", published).with("withdraw", withdrawn)
    }

    fn question(&mut self, new: &NewInterrupt) -> Value {
        json!({
            "request_id": new.request_id.as_str(),
            "token": new.token.expose(),
            "ask": encode(&new.ask.0),
            "workflow": encode(&new.workflow),
            "node": encode(&new.node),
            "question": self.place(&new.question),
            "default": new.default.as_ref().map(|default| self.place(default)),
            "ttl": millis(new.expires_in),
            "optional_cancel": new.optional_cancel,
            "after_response": new.after_response_completed,
        })
    }

    #[must_use]
    pub(crate) fn with_checkpoint(mut self, checkpoint: Option<&NewCheckpoint>) -> Self {
        let value = checkpoint.map(|new| self.checkpoint(new));
        self.with("checkpoint", value)
    }

    fn checkpoint(&mut self, new: &NewCheckpoint) -> Value {
        json!({
            "id": new.id.as_str(),
            "label": new.label.as_deref().map(encode),
            "nodes": names(&new.nodes),
            "workflow": encode(&new.workflow),
            "version": new.workflow_version.as_deref().map(encode),
            "state": self.place(&new.state),
            "streams": names(&new.structured_stream_ids),
        })
    }

    /// Takes the response that is complete, if one is.
    #[must_use]
    pub(crate) fn with_response(mut self, response: Option<&NewResponse>) -> Self {
        let Some(response) = response else { return self };
        let checkpoint = response.checkpoint.as_ref().map(|new| self.checkpoint(new));
        let outcome = self.place(&response.outcome);
        self.is_of_output = true;
        self.with("response", json!({"outcome": outcome, "checkpoint": checkpoint}))
    }

    /// A transition, with an id of its own.
    pub(crate) fn transition(self, operation: &'static str) -> Result<Request, StoreError> {
        let id = transition_id()
            .ok_or_else(|| StoreError::new(StoreErrorKind::Backend, operation, "the system gives no random bytes"))?;
        Ok(Request { operation, transition: Some(id), ..self.reading(operation) })
    }

    /// A call that changes nothing.
    pub(crate) fn reading(self, operation: &'static str) -> Request {
        let Self { body, payloads, is_of_output } = self;
        Request { operation, transition: None, body: body.into(), payloads, is_of_output }
    }
}

/// An id that sorts by time, so that the index of kept replies grows at its end: a version 7 UUID (RFC 9562).
fn transition_id() -> Option<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let millis = now & 0xffff_ffff_ffff;
    let random = u128::from_be_bytes(bytes) & !(u128::MAX << 76) & !(0b11 << 62);
    let id = (millis << 80) | random | (0x7 << 76) | (0b10 << 62);
    Some(hex(&id.to_be_bytes()))
}

/// A number as the database holds it.
pub(crate) fn bounded(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Whole milliseconds.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn new_run(run: &NewRun) -> Value {
    let mut value = json!({
        "run_id": run.run_id.as_str(),
        "session_id": run.session_id.as_str(),
        "context": encode_context(&run.context),
        "pairs": pairs(&run.context),
    });
    if let (Some(turn), Some(parts)) = (&run.follows, value.as_object_mut()) {
        let turn = json!({"id": turn.checkpoint_id.as_str(), "turn": bounded(turn.turn_index)});
        parts.insert("follows".to_owned(), turn);
    }
    value
}

/// What the questions of a context are found by, as the database writes an array.
fn pairs(context: &BTreeMap<String, Scalar>) -> String {
    let digests: Vec<_> = context.iter().map(|(key, value)| pair_digest(key, value)).collect();
    format!("{{{}}}", digests.join(","))
}

pub(crate) fn pin(pin: &WorkflowPin) -> Value {
    json!({
        "digest": pin_digest(pin),
        "id": encode(&pin.id),
        "version": encode(&pin.version),
        "fingerprint": encode(&pin.fingerprint),
    })
}

pub(crate) fn driver(driver: Option<&Driver>) -> Value {
    driver.map_or(Value::Null, |driver| json!({"id": encode(&driver.id), "ttl": millis(driver.ttl)}))
}

pub(crate) fn pins(pins: &[WorkflowPin]) -> Value {
    pins.iter().map(pin_digest).collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

pub(crate) fn scope(scope: Option<&Scope>) -> Value {
    scope.map_or(Value::Null, |scope| {
        json!({
            "session_id": scope.session_id.as_ref().map(kortyx_protocol::SessionId::as_str),
            "context": encode_context(&scope.context),
        })
    })
}

pub(crate) fn reissue(reissue: &[Reissue]) -> Value {
    let one = |reissue: &Reissue| {
        json!({
            "from": reissue.from.as_str(),
            "request_id": reissue.request_id.as_str(),
            "token": reissue.token.expose(),
        })
    };
    reissue.iter().map(one).collect()
}

/// A page to read, from the place that a cursor names; `None` when no page gave the cursor.
pub(crate) fn page(query: &InterruptQuery, limit: u32) -> Option<Draft> {
    let (at, key) = match &query.cursor {
        Some(cursor) => read_cursor(cursor)?,
        None => (-1, 0),
    };
    let draft = Draft::new()
        .with("session_id", query.scope.session_id.as_ref().map(kortyx_protocol::SessionId::as_str))
        .with("run_id", query.run_id.as_ref().map(RunId::as_str))
        .with("context", encode_context(&query.scope.context))
        .with("pairs", pairs(&query.scope.context))
        .with("after_response", query.after_response_completed)
        .with("after_at", at)
        .with("after_key", key)
        .with("limit", limit);
    Some(draft)
}

fn read_cursor(cursor: &str) -> Option<(i64, i64)> {
    let (created_at, key) = cursor.split_once('.')?;
    let number = |text: &str| text.parse::<i64>().ok().filter(|number| *number >= 0);
    Some((number(created_at)?, number(key)?))
}

/// A page of runs to read, from the place that a cursor names; `None` when no page gave the cursor.
pub(crate) fn page_of_runs(query: &RunQuery, limit: u32) -> Option<Draft> {
    let before = key_of(RUNS, query.cursor.as_deref())?;
    let statuses: Vec<_> = query.statuses.iter().map(|status| RunStatus::as_str(*status)).collect();
    let draft = Draft::new()
        .with("before", before)
        .with("statuses", statuses)
        .with("session_id", query.session_id.as_ref().map(kortyx_protocol::SessionId::as_str))
        .with("workflow", query.workflow.as_deref().map(encode))
        .with("limit", limit);
    Some(draft)
}

/// The same for sessions.
pub(crate) fn page_of_sessions(query: &SessionQuery, limit: u32) -> Option<Draft> {
    Some(Draft::new().with("before", key_of(SESSIONS, query.cursor.as_deref())?).with("limit", limit))
}

/// The key before which a page is; every key is before the one of a listing's start.
fn key_of(kind: &str, cursor: Option<&str>) -> Option<i64> {
    let Some(cursor) = cursor else { return Some(i64::MAX) };
    cursor.strip_prefix(kind)?.parse().ok().filter(|before| *before >= 0)
}

/// The cursor of a page of sessions with smaller keys.
pub(crate) fn cursor_of_sessions(edge: i64) -> String {
    format!("{SESSIONS}{edge}")
}

/// The cursor of a page of runs with smaller keys.
pub(crate) fn cursor_of_runs(edge: i64) -> String {
    format!("{RUNS}{edge}")
}

fn names(names: &[String]) -> Value {
    names.iter().map(|name| encode(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_a_call_holds_values_that_cannot_end_their_literals() {
        let config = PostgresConfig::parse("postgres://db/app").unwrap();
        let body = json!({"ask": "it's \\ $1 $2 '; --"});
        let payloads = vec![Bytes::from_static(b"\x00'"), Bytes::from_static(b"")];
        let transition = Some("1f".to_owned());
        let request = Request { operation: "open", transition, body, payloads, is_of_output: false };
        let expected = r#"SELECT tag, data, p1, p2, p3 FROM "kortyx".quiet_v1(E'open', E'1f'::text::uuid, true, E'{"ask":"it''s \\\\ $1 $2 ''; --"}'::text::jsonb, ARRAY[E'\\x0027'::bytea,E'\\x'::bytea]::bytea[])"#;
        assert_eq!(request.inline(&config, true).trim(), expected);
    }

    #[test]
    fn ids_of_transitions_are_unique_and_sort_by_time() {
        let first = transition_id().unwrap();
        std::thread::sleep(Duration::from_millis(2));
        let second = transition_id().unwrap();
        assert!(first < second, "{first} {second}");
        assert_eq!((first.len(), first.get(12..13)), (32, Some("7")));
    }
}
