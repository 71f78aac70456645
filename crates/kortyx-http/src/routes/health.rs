//! Health: whether the process serves, and whether it can work.

use std::{sync::Arc, time::Duration};

use axum::{
    http::{Method, StatusCode},
    response::Response,
};
use serde_json::json;
use tokio::time::timeout;

use crate::{Http, endpoint::Methods, problem::Problem, reply};

/// How long the store may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) const LIVE: Methods = &[(Method::GET, |_, _| Box::pin(async { Ok(reply::ok(&json!({"status": "ok"}))) }))];
pub(crate) const READY: Methods = &[(Method::GET, |http, _| Box::pin(ready(http)))];

async fn ready(http: Arc<Http>) -> Result<Response, Problem> {
    let status = if http.closing.is_cancelled() {
        "stopping"
    } else if matches!(timeout(PATIENCE, http.agent.store().now()).await, Ok(Ok(_))) {
        return Ok(reply::ok(&json!({"status": "ok"})));
    } else {
        "the store cannot be reached"
    };
    Ok(reply::json(StatusCode::SERVICE_UNAVAILABLE, &json!({"status": status})))
}
