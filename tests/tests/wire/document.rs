//! Whether what crosses the wire is what the served document says.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, OnceLock},
};

use hyper::{
    HeaderMap,
    header::{CONTENT_TYPE, HeaderValue},
};
use jsonschema::Validator;
use kortyx_tests::site::{Request, Response, Site, send};
use serde_json::{Value, json};
use tokio::runtime::Builder;

/// Statuses of requests that were not read, or cannot be.
const UNREAD: [u16; 5] = [400, 401, 403, 413, 415];

/// The document, with the validators that were needed so far.
pub(crate) struct Document {
    document: Value,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

impl Document {
    /// That of all sites, asked of the first.
    pub(crate) async fn of(address: SocketAddr) -> &'static Self {
        static DOCUMENT: OnceLock<Document> = OnceLock::new();
        if let Some(document) = DOCUMENT.get() {
            return document;
        }
        let request =
            Request { method: "GET", path: "/openapi.json".to_owned(), headers: Vec::new(), body: Vec::new() };
        let response = send(address, &request, &request.path, Vec::new()).await;
        let document = serde_json::from_str(&response.body).unwrap();
        DOCUMENT.get_or_init(|| Self { document, validators: Mutex::default() })
    }

    /// What of an exchange it does not say.
    pub(crate) fn faults(&self, request: &Request, body: &[u8], response: &Response) -> Vec<String> {
        let place = format!("{} {}: {}", request.method, request.path, response.status);
        let faults = match self.operation(request) {
            Some(operation) => self.of_operation(&operation, body, response),
            // No address, or not with this method.
            None if response.body.is_empty() => Vec::new(),
            None => self.invalid("/components/schemas/Error", &response.body),
        };
        faults.into_iter().map(|fault| format!("{place}: not in the document: {fault}")).collect()
    }

    /// The operation that a request asks for, as a pointer.
    fn operation(&self, request: &Request) -> Option<String> {
        let path = request.path.split('?').next()?;
        let is_same = |template: &str| {
            let (mut asked, mut parts) = (path.split('/'), template.split('/'));
            parts.by_ref().all(|part| asked.next().is_some_and(|asked| part.starts_with('{') || part == asked))
                && asked.next().is_none()
        };
        let template = self.document["paths"].as_object()?.keys().find(|template| is_same(template))?;
        let pointer = format!("/paths/{}/{}", template.replace('/', "~1"), request.method.to_lowercase());
        self.document.pointer(&pointer).map(|_| pointer)
    }

    fn of_operation(&self, operation: &str, body: &[u8], response: &Response) -> Vec<String> {
        let mut faults = Vec::new();
        let asked = format!("{operation}/requestBody/content/application~1json/schema");
        if !UNREAD.contains(&response.status) && self.document.pointer(&asked).is_some() && !body.is_empty() {
            faults.extend(self.invalid(&asked, &String::from_utf8_lossy(body)));
        }
        let mut answer = format!("{operation}/responses/{}", response.status);
        if let Some(reference) = self.document.pointer(&answer).and_then(|answer| answer["$ref"].as_str()) {
            answer = reference.trim_start_matches('#').to_owned();
        }
        let kind = response.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let schema = format!("{answer}/content/{}/schema", kind.replace('/', "~1"));
        match response.frames() {
            _ if self.document.pointer(&schema).is_none() => faults.push(format!("{kind} with this status")),
            None => faults.extend(self.invalid(&schema, &response.body)),
            Some(frames) => {
                for frame in frames {
                    let event = json!({"data": frame.data}).to_string();
                    faults.extend(self.invalid(&schema, &event));
                    if frame.data != "[DONE]" {
                        faults.extend(self.invalid("/components/schemas/StreamChunk", frame.data));
                    }
                }
            }
        }
        faults
    }

    /// Why a text is no JSON with this schema of the document.
    fn invalid(&self, pointer: &str, text: &str) -> Vec<String> {
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => return vec![format!("{error} in {text}")],
        };
        let validator = self.validator(pointer);
        validator.iter_errors(&value).map(|fault| format!("{pointer}: {fault} in {text}")).collect()
    }

    fn validator(&self, pointer: &str) -> Arc<Validator> {
        let mut validators = self.validators.lock().unwrap();
        let validator = validators.entry(pointer.to_owned()).or_insert_with(|| {
            let mut schema = self.document.pointer(pointer).unwrap().clone();
            // References in it begin at the document's root.
            schema["components"] = self.document["components"].clone();
            Arc::new(jsonschema::draft202012::new(&schema).unwrap())
        });
        validator.clone()
    }
}

/// Finds fault with exchanges that never were.
pub(crate) fn check_itself() -> Result<(), String> {
    let found = |path: &str, request: &str, status: u16, kind: &'static str, body: &str| {
        let request = Request { method: "POST", path: path.to_owned(), headers: Vec::new(), body: request.into() };
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
        let response = Response { status, headers, body: body.to_owned() };
        async move {
            let (site, _) = Site::standing().await;
            let faults = Document::of(site.address).await.faults(&request, &request.body, &response);
            site.end().await;
            faults.len()
        }
    };
    let (asked, json, stream) = (r#"{"workflow":"text","input":1}"#, "application/json", "text/event-stream");
    let done = r#"{"runId":"run-1","sessionId":"s","status":"completed","data":1}"#;
    let chat = r#"{"messages":[{"role":"user","content":"x"}]}"#;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let faults = runtime.block_on(async {
        [
            found("/execute", asked, 200, json, done).await,
            found("/execute", "{}", 200, json, done).await,
            found("/execute", asked, 200, json, &done.replace("runId", "run")).await,
            found("/execute", asked, 418, json, done).await,
            found("/execute", asked, 200, "text/plain", done).await,
            found("/nowhere", asked, 404, json, done).await,
            found("/chat", chat, 200, stream, "data: {\"type\":\"cancelled\"}\n\ndata: [DONE]\n\n").await,
            found("/chat", chat, 200, stream, "data: {\"type\":\"cancel\"}\n\ndata: [DONE]\n\n").await,
        ]
    });
    match faults.map(|faults| faults > 0) {
        [false, true, true, true, true, true, false, true] => Ok(()),
        found => Err(format!("where faults were found: {found:?}")),
    }
}
