//! What a run said, from any place on, and says.

use std::sync::Arc;

use axum::{extract::Request, http::request::Parts, response::Response};
use kortyx_protocol::{Failure, FailureCode, Issue, RunId, StreamChunk};
use serde_json::json;

use super::interrupts::named;
use crate::{
    Http,
    authorise::unknown,
    endpoint::{Endpoint, Methods},
    openapi::{Operation, Types},
    problem::Problem,
    sse,
};

pub(crate) const STREAM: Methods = &[Endpoint::get(|http, request| Box::pin(stream(http, request)), describe)];

fn describe(types: &mut Types) -> Operation {
    let about = "The number of the last chunk that the client has; the header counts.";
    let number = json!({"type": "integer", "minimum": 0, "maximum": u64::MAX, "default": 0});
    Operation::new("followRun", "What a run said above a number, and says, until it has ended")
        .with("query", [("after", about, number.clone())])
        .with("header", [("Last-Event-ID", about, json!({"anyOf": [number, {"const": ""}]}))])
        .named("The id of a run.")
        .described("Chunks with their numbers as `id:` lines, and how the run stands; ends with `data: [DONE]`")
        .streaming(&types.of::<StreamChunk>())
        .failing(&[400, 404, 429])
}

/// Where a client that lost its connection says how far it came.
const LAST_EVENT_ID: &str = "last-event-id";

async fn stream(http: Arc<Http>, mut request: Request) -> Result<Response, Problem> {
    let id = named(&mut request).await.and_then(|id| RunId::new(id).ok());
    let (parts, _) = request.into_parts();
    let grant = http.admit(&parts).await?;
    let scope = grant.required_scope()?;
    let after = after(&parts)?;
    let id = id.ok_or_else(|| unknown("run"))?;
    let run = http.agent.follow(&id, scope, after).await?;
    let place = http.streams.enter(Some(run.session_id()), http.limits.streams_per_session)?;
    Ok(sse::response(run, http.limits.keep_alive, http.closing.clone(), place))
}

/// The number of the last chunk that the client has: what it says when it connects again counts, else what its address says.
fn after(parts: &Parts) -> Result<u64, Failure> {
    let query = parts.uri.query().unwrap_or_default();
    let asked = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "after");
    let asked = asked.map(|(_, value)| number("after", &value)).transpose()?;
    let last = parts.headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty());
    let last = last.map(|value| number("Last-Event-ID", value.to_str().unwrap_or_default())).transpose()?;
    Ok(last.or(asked).unwrap_or_default())
}

fn number(name: &str, text: &str) -> Result<u64, Failure> {
    text.parse().map_err(|_| {
        let why = "it is the number of a chunk, or 0";
        let message = format!("the request is malformed at {name}: {why}");
        Failure::new(FailureCode::InvalidRequest, message).with_issues([Issue::new(format!("/{name}"), "invalid", why)])
    })
}
