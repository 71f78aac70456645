//! The description of the routes.

use std::sync::Arc;

use axum::{extract::Request, http::Method, response::Response};

use crate::{Http, endpoint::Methods, openapi, problem::Problem, reply};

pub(crate) const METHODS: Methods = &[(Method::GET, |http, request| Box::pin(get(http, request)))];

async fn get(http: Arc<Http>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    http.admit(&parts).await?;
    Ok(reply::ok(&openapi::document(&http.paths)))
}
