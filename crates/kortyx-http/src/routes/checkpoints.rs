//! Checkpoints of a session: listed, read, gone back to, forked.

use std::sync::Arc;

use axum::{extract::Request, response::Response};
use kortyx_protocol::{CheckpointRequest, CheckpointSummary, CheckpointView, Forked, RolledBack};
use serde_json::json;

use crate::{
    Http,
    endpoint::{Admitted, Endpoint, Methods},
    openapi::{Operation, Types},
    problem::Problem,
    reply,
};

pub(crate) const METHODS: Methods = &[Endpoint::post(|http, request| Box::pin(post(http, request)), describe)];

fn describe(types: &mut Types) -> Operation {
    let done = json!({"anyOf": [
        {"type": "array", "items": types.of::<CheckpointSummary>()},
        {"anyOf": [types.of::<CheckpointView>(), {"type": "null"}]},
        types.of::<RolledBack>(),
        types.of::<Forked>(),
    ]});
    let description =
        "By action: the session's checkpoints, a checkpoint or null, what a rollback did, the new session";
    Operation::new("checkpoints", "Lists, reads, goes back to, forks")
        .taking(&types.of::<CheckpointRequest>())
        .answering(description, &done)
        .failing(&[404, 409, 410])
}

async fn post(http: Arc<Http>, request: Request) -> Result<Response, Problem> {
    let Admitted { grant, body } = http.admit_with_body(request).await?;
    let scope = Some(grant.required_scope()?);
    let agent = &http.agent;
    Ok(match CheckpointRequest::from_slice(&body, &http.limits.request)? {
        CheckpointRequest::List { session_id } => reply::ok(&agent.list_checkpoints(&session_id, scope).await?),
        CheckpointRequest::Get { checkpoint_id } => reply::ok(&agent.get_checkpoint(&checkpoint_id, scope).await?),
        CheckpointRequest::Rollback { checkpoint_id } => reply::ok(&agent.rollback_to(&checkpoint_id, scope).await?),
        CheckpointRequest::Fork { checkpoint_id, new_session_id } => {
            // Who has one session may not take the name of another.
            if new_session_id.is_some() {
                grant.session_of(new_session_id.clone())?;
            }
            reply::ok(&agent.fork(&checkpoint_id, new_session_id, scope).await?)
        }
        other => return Err(unsupported(&other)),
    })
}

fn unsupported(request: &CheckpointRequest) -> Problem {
    let message = format!("the action `{}` is not served here", request.action());
    kortyx_protocol::Failure::new(kortyx_protocol::FailureCode::InvalidRequest, message).into()
}
