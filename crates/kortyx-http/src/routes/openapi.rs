//! The description of the routes.

use std::sync::Arc;

use axum::{extract::Request, response::Response};
use serde_json::json;

use crate::{
    Http,
    endpoint::{Endpoint, Methods},
    openapi::{self, Operation, Types},
    problem::Problem,
    reply,
};

pub(crate) const METHODS: Methods = &[Endpoint::get(|http, request| Box::pin(get(http, request)), describe)];

fn describe(_: &mut Types) -> Operation {
    Operation::new("openapi", "This document").answering("The document", &json!({"type": "object"}))
}

async fn get(http: Arc<Http>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    http.admit(&parts).await?;
    Ok(reply::ok(&openapi::document(&http.routes())))
}
