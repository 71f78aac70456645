//! One operation: a method of an address.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

/// The statuses of refusals, wherever they come from.
const FAILURES: [u16; 15] = [400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 422, 429, 431, 500, 503];

/// What every caller of a route behind the authoriser may get.
const OF_CALLERS: [u16; 4] = [401, 403, 500, 503];

/// What everybody who sends a body may get.
const OF_BODIES: [u16; 4] = [400, 408, 413, 415];

pub(super) struct Operation {
    pub(super) method: &'static str,
    id: &'static str,
    summary: &'static str,
    body: Option<Value>,
    parameters: Vec<Value>,
    content: Map<String, Value>,
    description: &'static str,
    others: Map<String, Value>,
    failures: Vec<u16>,
}

impl Operation {
    pub(super) fn get(id: &'static str, summary: &'static str) -> Self {
        Self {
            method: "get",
            id,
            summary,
            body: None,
            parameters: Vec::new(),
            content: Map::new(),
            description: "",
            others: Map::new(),
            failures: OF_CALLERS.into(),
        }
    }

    pub(super) fn post(id: &'static str, summary: &'static str, body: Value) -> Self {
        let mut operation = Self::get(id, summary);
        (operation.method, operation.body) = ("post", Some(body));
        operation.failing(&OF_BODIES)
    }

    /// The authoriser is not asked.
    pub(super) fn open(mut self) -> Self {
        self.failures.clear();
        self
    }

    /// What it answers.
    pub(super) fn described(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }

    /// Answers with this JSON.
    pub(super) fn answering(mut self, description: &'static str, schema: &Value) -> Self {
        self = self.described(description);
        self.content.insert("application/json".to_owned(), json!({"schema": schema}));
        self
    }

    /// Or with a stream of these.
    pub(super) fn streaming(mut self, chunk: &Value) -> Self {
        let schema = json!({"type": "string", "contentMediaType": "text/event-stream", "contentSchema": chunk});
        self.content.insert("text/event-stream".to_owned(), json!({"schema": schema}));
        self
    }

    /// Or with another status.
    pub(super) fn also(mut self, status: u16, description: &str, schema: &Value) -> Self {
        let content = json!({"application/json": {"schema": schema}});
        self.others.insert(status.to_string(), json!({"description": description, "content": content}));
        self
    }

    pub(super) fn failing(mut self, statuses: &[u16]) -> Self {
        self.failures.extend(statuses);
        self
    }

    /// About the question that the address names.
    pub(super) fn of_one(self) -> Self {
        self.named("The id of a question.")
    }

    /// About the run that the address names, from a place on.
    pub(super) fn of_one_run(mut self) -> Self {
        let number = json!({"type": "integer", "minimum": 0, "default": 0});
        for (name, place) in [("after", "query"), ("Last-Event-ID", "header")] {
            let description = "The number of the last chunk that the client has; the header counts.";
            self.parameters.push(json!({"name": name, "in": place, "description": description, "schema": number}));
        }
        self.named("The id of a run.")
    }

    fn named(mut self, description: &str) -> Self {
        self.parameters.push(json!({
            "name": "id",
            "in": "path",
            "required": true,
            "description": description,
            "schema": {"type": "string"},
        }));
        self
    }

    /// A listing of questions.
    pub(super) fn filtered(mut self) -> Self {
        let text = json!({"type": "string", "minLength": 1, "maxLength": 512});
        for (name, description, schema) in [
            ("sessionId", "Only this session.", text.clone()),
            ("runId", "Only this run.", text),
            (
                "afterResponseCompleted",
                "Only questions asked after, or before, their response was completed.",
                json!({"type": "boolean"}),
            ),
            ("limit", "How many at most.", json!({"type": "integer", "minimum": 1, "maximum": 200, "default": 50})),
            ("cursor", "Where the page starts: `nextCursor` of the page before.", json!({"type": "string"})),
        ] {
            self.parameters.push(json!({"name": name, "in": "query", "description": description, "schema": schema}));
        }
        self
    }

    pub(super) fn describe(self) -> Value {
        let mut responses = self.others;
        responses.insert("200".to_owned(), json!({"description": self.description, "content": self.content}));
        for status in self.failures {
            let reference = json!({"$ref": format!("#/components/responses/{status}")});
            responses.entry(status.to_string()).or_insert(reference);
        }
        let mut described = json!({"operationId": self.id, "summary": self.summary, "responses": responses});
        if let Some(described) = described.as_object_mut() {
            if let Some(body) = self.body {
                let content = json!({"application/json": {"schema": body}});
                described.insert("requestBody".to_owned(), json!({"required": true, "content": content}));
            }
            if !self.parameters.is_empty() {
                described.insert("parameters".to_owned(), self.parameters.into());
            }
        }
        described
    }
}

/// The responses of refused requests.
pub(super) fn failures(schema: &Value) -> Map<String, Value> {
    let describe = |status: u16| {
        let reason =
            StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Refused");
        let content = json!({"application/json": {"schema": schema}});
        (status.to_string(), json!({"description": reason, "content": content}))
    };
    FAILURES.into_iter().map(describe).collect()
}
