//! Open questions: found by scope, answered by id.

use std::sync::Arc;

use axum::{
    RequestExt as _,
    extract::{RawPathParams, Request},
    http::Method,
    response::Response,
};
use kortyx_protocol::{AnswerRequest, RequestId};

use crate::{
    Http,
    authorise::unknown,
    endpoint::{Admitted, Methods},
    problem::Problem,
    query, reply,
};

pub(crate) const LIST: Methods = &[(Method::GET, |http, request| Box::pin(list(http, request)))];
pub(crate) const GET: Methods = &[(Method::GET, |http, request| Box::pin(get(http, request)))];
pub(crate) const ANSWER: Methods = &[(Method::POST, |http, request| Box::pin(answer(http, request)))];

async fn list(http: Arc<Http>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let grant = http.admit(&parts).await?;
    let mut asked = query::interrupts(parts.uri.query().unwrap_or_default())?;
    let scope = grant.required_scope()?;
    asked.scope.session_id = grant.session_of(asked.scope.session_id)?;
    for (key, value) in &scope.context {
        if asked.scope.context.insert(key.clone(), value.clone()).is_some_and(|asked| asked != *value) {
            return Ok(reply::ok(&serde_json::json!({"interrupts": []})));
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
