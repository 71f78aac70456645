//! Open questions: found by scope, answered by id.

use std::sync::Arc;

use axum::{
    RequestExt as _,
    extract::{RawPathParams, Request},
    response::Response,
};
use kortyx_protocol::{AnswerRequest, ExecutionResult, RequestId, RunId, SessionId};
use serde_json::json;

use crate::{
    Http,
    authorise::unknown,
    endpoint::{Admitted, Endpoint, Methods},
    openapi::{Interrupt, Interrupts, Operation, Types},
    problem::Problem,
    query, reply,
};

pub(crate) const LIST: Methods = &[Endpoint::get(|http, request| Box::pin(list(http, request)), describe_list)];
pub(crate) const GET: Methods = &[Endpoint::get(|http, request| Box::pin(get(http, request)), describe_one)];
pub(crate) const ANSWER: Methods = &[Endpoint::post(|http, request| Box::pin(answer(http, request)), describe_answer)];

fn describe_list(types: &mut Types) -> Operation {
    let parameters = [
        ("sessionId", "Only this session.", types.of::<SessionId>()),
        ("runId", "Only this run.", types.of::<RunId>()),
        (
            "afterResponseCompleted",
            "Only questions asked after, or before, their response was completed.",
            json!({"type": "boolean"}),
        ),
        ("limit", "How many at most.", json!({"type": "integer", "minimum": 1, "maximum": 200, "default": 50})),
        (
            "cursor",
            "Where the page starts: `nextCursor` of the page before.",
            json!({"type": "string", "minLength": 1}),
        ),
    ];
    Operation::new("listInterrupts", "Open questions of the caller's scope, oldest first")
        .with("query", parameters)
        .answering("A page of them", &types.of::<Interrupts>())
        .failing(&[400, 404])
}

fn describe_one(types: &mut Types) -> Operation {
    Operation::new("getInterrupt", "A question, whatever became of it")
        .named("The id of a question.")
        .answering("The question", &types.of::<Interrupt>())
        .failing(&[404])
}

fn describe_answer(types: &mut Types) -> Operation {
    Operation::new("answerInterrupt", "Answers a question")
        .named("The id of a question.")
        .taking(&types.of::<AnswerRequest>())
        .answering("How the run stands", &types.of::<ExecutionResult>())
        .failing(&[404, 409, 410, 422])
}

async fn list(http: Arc<Http>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let grant = http.admit(&parts).await?;
    let mut asked = query::interrupts(parts.uri.query().unwrap_or_default())?;
    let scope = grant.required_scope()?;
    asked.scope.session_id = grant.session_of(asked.scope.session_id)?;
    for (key, value) in &scope.context {
        if asked.scope.context.insert(key.clone(), value.clone()).is_some_and(|asked| asked != *value) {
            return Ok(reply::ok(&json!({"interrupts": []})));
        }
    }
    Ok(reply::ok(&http.agent.list_interrupts(asked).await?))
}

async fn get(http: Arc<Http>, mut request: Request) -> Result<Response, Problem> {
    let id = id(&mut request).await;
    let (parts, _) = request.into_parts();
    let grant = http.admit(&parts).await?;
    let scope = grant.required_scope()?;
    let found = http.agent.get_interrupt(&id?, scope).await?;
    Ok(reply::ok(&found.ok_or_else(|| unknown("question"))?))
}

async fn answer(http: Arc<Http>, mut request: Request) -> Result<Response, Problem> {
    let id = id(&mut request).await;
    let Admitted { grant, body } = http.admit_with_body(request).await?;
    let scope = grant.required_scope()?.clone();
    let AnswerRequest { response } = AnswerRequest::from_slice(&body, &http.limits.request)?;
    Ok(reply::ok(&http.agent.answer(&id?, scope, response, grant.actor).await?))
}

/// The question that the address names.
async fn id(request: &mut Request) -> Result<RequestId, Problem> {
    named(request).await.and_then(|id| RequestId::new(id).ok()).ok_or_else(|| unknown("question").into())
}

/// What the address names.
pub(super) async fn named(request: &mut Request) -> Option<String> {
    let params = request.extract_parts::<RawPathParams>().await.ok()?;
    params.iter().find(|(name, _)| *name == "id").map(|(_, value)| value.to_owned())
}
