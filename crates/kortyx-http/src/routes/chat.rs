//! Chat turns.

use std::sync::Arc;

use axum::{
    extract::Request,
    response::{IntoResponse as _, Response},
};
use kortyx_orchestrator::ChatOptions;
use kortyx_protocol::{BufferedResponse, ChatRequest, StreamChunk};

use crate::{
    Grant, Http, buffered,
    endpoint::{Admitted, Endpoint, Methods},
    openapi::{Operation, Types},
    problem::Problem,
    reply, sse,
};

pub(crate) const METHODS: Methods = &[Endpoint::post(|http, request| Box::pin(post(http, request)), describe)];

fn describe(types: &mut Types) -> Operation {
    Operation::new("chat", "Plays a chat turn")
        .taking(&types.of::<ChatRequest>())
        .answering("The turn: one object, or a stream that ends with `data: [DONE]`", &types.of::<BufferedResponse>())
        .streaming(&types.of::<StreamChunk>())
        .failing(&[404, 409, 429])
}

async fn post(http: Arc<Http>, request: Request) -> Result<Response, Problem> {
    let Admitted { grant, body } = http.admit_with_body(request).await?;
    let request = ChatRequest::from_slice(&body, &http.limits.request)?;
    drop(body);
    let (is_streamed, messages) = (request.stream, request.messages);
    let mut options = options(&grant, request.context);
    options.session_id = grant.session_of(request.session_id)?;
    options.workflow_id = request.workflow_id;
    options.client_turn_id = request.client_turn_id;
    let place = http.streams.enter(options.session_id.as_ref(), http.limits.streams_per_session)?;
    let turn = http.agent.begin_chat(messages, options).await?;
    let run_id = turn.run_id().cloned();
    if is_streamed {
        let response = sse::response(turn, http.limits.keep_alive, http.closing.clone(), place);
        return Ok(reply::of_run(response, run_id.as_ref()));
    }
    let response = match buffered::whole(turn, http.limits.buffered_bytes).await {
        Ok(whole) => reply::ok(&whole),
        Err(problem) => problem.into_response(),
    };
    Ok(reply::of_run(response, run_id.as_ref()))
}

fn options(grant: &Grant, context: Option<serde_json::Map<String, serde_json::Value>>) -> ChatOptions {
    let mut options = ChatOptions::new().within(grant.scope.clone());
    options.context = grant.run_context(context);
    options.actor.clone_from(&grant.actor);
    options
}
