//! A receiver of events on this machine. It refuses what does not fit its schema to the letter, and misbehaves where it is told to.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
};

use jsonschema::Validator;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// The key that it wants.
pub(crate) const KEY: &str = "the-key-of-the-receiver";

/// What it does with one batch.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Behave {
    /// Answers this status.
    Status(u16),
    /// Asks to wait for so many seconds.
    Busy(u32),
    /// Reads and never answers.
    Hang,
    /// Closes the connection without an answer, having taken the batch.
    Reset,
    /// Takes all but the first event.
    Part,
}

pub(crate) struct Receiver {
    pub(crate) url: String,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
pub(crate) struct Seen {
    script: VecDeque<Behave>,
    ids: HashSet<String>,
    /// Requests for events, whatever became of them.
    pub(crate) batches: usize,
    /// The events that it took, each once.
    pub(crate) events: Vec<Value>,
    pub(crate) revisions: Vec<Value>,
    /// What does not fit.
    pub(crate) faults: Vec<String>,
    /// Everything that was sent, but for the key.
    pub(crate) bytes: String,
}

struct Schemas {
    events: Validator,
    revision: Validator,
}

impl Receiver {
    pub(crate) async fn start(script: impl IntoIterator<Item = Behave>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Seen { script: script.into_iter().collect(), ..Seen::default() }));
        let schemas = Arc::new(Schemas {
            events: schema(include_str!("../schema/events.json")),
            revision: schema(include_str!("../schema/revision.json")),
        });
        let shared = seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, shared.clone(), schemas.clone()));
            }
        });
        Self { url, seen }
    }

    /// What it has seen. Fails the test when anything of it did not fit.
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        let seen = self.seen.lock().unwrap();
        assert!(seen.faults.is_empty(), "{:#?}", seen.faults);
        seen
    }
}

impl Seen {
    pub(crate) fn types(&self) -> Vec<&str> {
        self.events.iter().map(|event| event["type"].as_str().unwrap()).collect()
    }
}

fn schema(text: &str) -> Validator {
    let schema = serde_json::from_str(text).unwrap();
    jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
}

async fn serve(mut stream: TcpStream, seen: Arc<Mutex<Seen>>, schemas: Arc<Schemas>) {
    while let Some((head, body)) = request(&mut stream).await {
        let answer = take(&head, &body, &mut seen.lock().unwrap(), &schemas);
        match answer {
            Ok((status, headers, body)) => {
                let length = body.len();
                let answer = format!("HTTP/1.1 {status} Whatever\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            Err(Behave::Hang) => std::future::pending().await,
            Err(_) => return,
        }
    }
}

/// The head and the body of a request.
async fn request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            if body.len() >= length.parse().unwrap() {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
        let mut more = [0; 8192];
        match stream.read(&mut more).await {
            Ok(read) if read > 0 => bytes.extend_from_slice(&more[..read]),
            _ => return None,
        }
    }
}

/// Status, more headers and body of the answer; or what it does instead.
fn take(head: &str, body: &str, seen: &mut Seen, schemas: &Schemas) -> Result<(u16, String, String), Behave> {
    let (key, rest): (Vec<&str>, Vec<&str>) = head.lines().partition(|line| line.starts_with("authorization:"));
    seen.bytes.push_str(&rest.join("\n"));
    seen.bytes.push_str(body);
    if key != [format!("authorization: Bearer {KEY}")] {
        return Ok((401, String::new(), String::new()));
    }
    let path = head.split(' ').nth(1).unwrap_or_default();
    let body: Value = serde_json::from_str(body).unwrap();
    let schema = if path == "/v1/telemetry/events:batch" { &schemas.events } else { &schemas.revision };
    seen.faults
        .extend(schema.iter_errors(&body).map(|fault| format!("{fault} at {} of {body}", fault.instance_path())));
    if path == "/v1/telemetry/workflow-revisions:ensure" {
        seen.revisions.push(body);
        return Ok((200, String::new(), json!({"workflowRevisionId": "revision-1", "created": true}).to_string()));
    }
    seen.batches += 1;
    let events = body["events"].as_array().unwrap();
    let behave = seen.script.pop_front();
    let rejected = match behave {
        Some(Behave::Status(status)) => return Ok((status, String::new(), String::new())),
        Some(Behave::Busy(seconds)) => return Ok((429, format!("retry-after: {seconds}\r\n"), String::new())),
        Some(Behave::Hang) => return Err(Behave::Hang),
        Some(Behave::Part) => events[0]["eventId"].as_str(),
        Some(Behave::Reset) | None => None,
    };
    for event in events {
        let id = event["eventId"].as_str().unwrap();
        if rejected != Some(id) && seen.ids.insert(id.to_owned()) {
            seen.events.push(event.clone());
        }
    }
    if matches!(behave, Some(Behave::Reset)) {
        return Err(Behave::Reset);
    }
    let rejected: Vec<Value> = rejected.iter().map(|id| json!({"eventId": id, "retryable": true})).collect();
    Ok((200, String::new(), json!({"accepted": events.len() - rejected.len(), "rejected": rejected}).to_string()))
}
