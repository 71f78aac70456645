//! Executions.

use std::sync::Arc;

use axum::{extract::Request, response::Response};
use kortyx_orchestrator::ExecuteOptions;
use kortyx_protocol::{ExecuteRequest, ExecutionResult};

use crate::{
    Http,
    endpoint::{Admitted, Endpoint, Methods},
    openapi::{Operation, Types},
    problem::Problem,
    reply,
};

pub(crate) const METHODS: Methods = &[Endpoint::post(|http, request| Box::pin(post(http, request)), describe)];

fn describe(types: &mut Types) -> Operation {
    Operation::new("execute", "Runs a workflow until it waits or has ended")
        .taking(&types.of::<ExecuteRequest>())
        .answering("How the run stands", &types.of::<ExecutionResult>())
        .failing(&[404, 409, 422])
}

async fn post(http: Arc<Http>, request: Request) -> Result<Response, Problem> {
    let Admitted { grant, body } = http.admit_with_body(request).await?;
    let request = ExecuteRequest::from_slice(&body, &http.limits.request)?;
    let mut options = ExecuteOptions::new();
    options.session_id = grant.session_of(request.session_id)?;
    options.context = grant.run_context(request.context);
    let version = request.version.as_deref();
    let result = http.agent.execute_by_id(&request.workflow, version, request.input, options).await?;
    Ok(reply::ok(&result))
}
