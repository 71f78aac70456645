//! One operation: a method of an address.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

/// The statuses of refusals, wherever they come from.
const FAILURES: [u16; 15] = [400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 422, 429, 431, 500, 503];

/// What every caller of a route behind the authoriser may get.
const OF_CALLERS: [u16; 4] = [401, 403, 500, 503];

/// What everybody who sends a body may get.
const OF_BODIES: [u16; 4] = [400, 408, 413, 415];

pub(crate) struct Operation {
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
    /// What callers of a route behind the authoriser may do.
    pub(crate) fn new(id: &'static str, summary: &'static str) -> Self {
        Self {
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

    /// Takes this JSON.
    pub(crate) fn taking(mut self, schema: &Value) -> Self {
        self.body = Some(json!({"required": true, "content": {"application/json": {"schema": schema}}}));
        self.failing(&OF_BODIES)
    }

    /// May take a form with these fields.
    pub(crate) fn taking_form(mut self, schema: &Value) -> Self {
        let content = json!({"application/x-www-form-urlencoded": {"schema": schema}});
        self.body = Some(json!({"content": content}));
        self
    }

    /// The authoriser is not asked.
    pub(crate) fn open(mut self) -> Self {
        self.failures.clear();
        self
    }

    /// What it answers.
    pub(crate) fn described(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }

    /// Answers with this JSON.
    pub(crate) fn answering(mut self, description: &'static str, schema: &Value) -> Self {
        self = self.described(description);
        self.content.insert("application/json".to_owned(), json!({"schema": schema}));
        self
    }

    /// Or with a stream of events that hold these.
    pub(crate) fn streaming(mut self, chunk: &Value) -> Self {
        let chunk = json!({"type": "string", "contentMediaType": "application/json", "contentSchema": chunk});
        let data =
            json!({"description": "A chunk; in the last event, `[DONE]`.", "anyOf": [{"const": "[DONE]"}, chunk]});
        let event = json!({
            "type": "object",
            "description": "Each event of the stream.",
            "required": ["data"],
            "properties": {"data": data, "id": {"type": "string", "description": "The chunk's number, on routes of runs."}},
        });
        self.content.insert("text/event-stream".to_owned(), json!({"schema": event}));
        self
    }

    /// Answers with a page, whatever becomes of the request.
    pub(crate) fn showing(mut self, description: &'static str, statuses: &[(u16, &str)]) -> Self {
        let content = json!({"text/html; charset=utf-8": {"schema": {"type": "string"}}});
        for (status, description) in statuses {
            self.others.insert(status.to_string(), json!({"description": description, "content": content}));
        }
        self = self.open().described(description);
        self.content.extend(content.as_object().cloned().unwrap_or_default());
        self
    }

    /// Or with another status.
    pub(crate) fn also(mut self, status: u16, description: &str, schema: &Value) -> Self {
        let content = json!({"application/json": {"schema": schema}});
        self.others.insert(status.to_string(), json!({"description": description, "content": content}));
        self
    }

    pub(crate) fn failing(mut self, statuses: &[u16]) -> Self {
        self.failures.extend(statuses);
        self
    }

    /// About what the address names.
    pub(crate) fn named(mut self, description: &str) -> Self {
        self.parameters.push(json!({
            "name": "id",
            "in": "path",
            "required": true,
            "description": description,
            "schema": {"type": "string"},
        }));
        self
    }

    /// With parameters, each with its description and schema.
    pub(crate) fn with<const N: usize>(mut self, place: &str, parameters: [(&str, &str, Value); N]) -> Self {
        for (name, description, schema) in parameters {
            self.parameters.push(json!({"name": name, "in": place, "description": description, "schema": schema}));
        }
        self
    }

    pub(crate) fn describe(self) -> Value {
        let mut responses = self.others;
        responses.insert("200".to_owned(), json!({"description": self.description, "content": self.content}));
        for status in self.failures {
            let reference = json!({"$ref": format!("#/components/responses/{status}")});
            responses.entry(status.to_string()).or_insert(reference);
        }
        let mut described = json!({"operationId": self.id, "summary": self.summary, "responses": responses});
        if let Some(described) = described.as_object_mut() {
            if let Some(body) = self.body {
                described.insert("requestBody".to_owned(), body);
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
