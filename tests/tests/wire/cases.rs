//! What a case is made of.

use kortyx_tests::site::Request;
use serde_json::{Value, json};

/// A row of a table of the protocol.
pub(crate) struct Case {
    /// Its name, and its file's.
    pub(crate) name: String,
    /// What is sent, one after another.
    pub(crate) steps: Vec<Step>,
}

/// A request, or what happens between two.
pub(crate) enum Step {
    /// Sends this.
    Send(Request),
    /// Sends this, and reads so many frames of a stream that stays open.
    Open(Request, usize),
    /// Reads the rest of that stream.
    Rest,
    /// A worker looks after what is due.
    Worker,
    /// Waits until nobody drives a run any more.
    Settled,
    /// Lets so many minutes go by.
    Minutes(u64),
}

impl Case {
    pub(crate) fn new(name: impl Into<String>, steps: impl IntoIterator<Item = Step>) -> Self {
        Self { name: name.into(), steps: steps.into_iter().collect() }
    }
}

pub(crate) fn send(method: &'static str, path: impl Into<String>, body: impl Into<Vec<u8>>) -> Step {
    Step::Send(Request { method, path: path.into(), headers: Vec::new(), body: body.into() })
}

pub(crate) fn get(path: impl Into<String>) -> Step {
    send("GET", path, Vec::new())
}

pub(crate) fn post(path: impl Into<String>, body: &Value) -> Step {
    // Whatever order a build keeps keys in.
    send("POST", path, kortyx::protocol::json::canonical(body).unwrap())
}

impl Step {
    /// The same with a header.
    pub(crate) fn with(mut self, name: &'static str, value: &'static str) -> Self {
        if let Self::Send(request) | Self::Open(request, _) = &mut self {
            request.headers.push((name, value));
        }
        self
    }

    /// Reads so many frames, and leaves the stream open.
    pub(crate) fn open(self, frames: usize) -> Self {
        match self {
            Self::Send(request) => Self::Open(request, frames),
            other => other,
        }
    }
}

/// A fresh turn of this workflow in the session `s`.
pub(crate) fn turn(workflow: &str) -> Step {
    post("/chat", &turn_body(workflow))
}

pub(crate) fn turn_body(workflow: &str) -> Value {
    json!({"sessionId": "s", "workflowId": workflow, "messages": [{"role": "user", "content": "Hello"}]})
}

/// The answer to the first question, with these fields beside token and id.
pub(crate) fn answer(fields: &Value) -> Step {
    post("/chat", &answer_body(fields))
}

pub(crate) fn answer_body(fields: &Value) -> Value {
    let mut resume = json!({"token": "token-1", "requestId": "human-1"});
    if let (Some(resume), Some(fields)) = (resume.as_object_mut(), fields.as_object()) {
        resume.extend(fields.clone());
    }
    let message = json!({"role": "user", "content": "an answer", "metadata": {"resume": resume}});
    json!({"sessionId": "s", "messages": [message]})
}

/// The same turn, not streamed.
pub(crate) fn buffered(mut body: Value) -> Step {
    if let Some(body) = body.as_object_mut() {
        body.insert("stream".to_owned(), false.into());
    }
    post("/chat", &body)
}
