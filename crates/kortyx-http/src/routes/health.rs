//! Health: whether the process serves, and whether it can work.

use std::{sync::Arc, time::Duration};

use axum::{http::StatusCode, response::Response};
use serde_json::json;
use tokio::time::timeout;

use crate::{
    Http,
    endpoint::{Endpoint, Methods},
    openapi::{Health, Operation, Types},
    problem::Problem,
    reply,
};

/// How long the store may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) const LIVE: Methods =
    &[Endpoint::get(|_, _| Box::pin(async { Ok(reply::ok(&json!({"status": "ok"}))) }), describe_live)];
pub(crate) const READY: Methods = &[Endpoint::get(|http, _| Box::pin(ready(http)), describe_ready)];

fn describe_live(types: &mut Types) -> Operation {
    Operation::new("live", "Whether the process serves").open().answering("It does", &types.of::<Health>())
}

fn describe_ready(types: &mut Types) -> Operation {
    let health = types.of::<Health>();
    let operation = Operation::new("ready", "Whether the process can work").open();
    operation.answering("It can", &health).also(503, "It cannot now", &health)
}

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
