//! One address: which methods it takes, and the same errors for all others.

use std::sync::Arc;

use axum::{
    extract::Request,
    http::{Method, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
    routing::{MethodRouter, any},
};
use futures_util::future::BoxFuture;
use kortyx_protocol::FailureCode;

use crate::{
    Caller, Grant, Http, body,
    openapi::{Operation, Types},
    problem::Problem,
};

/// What answers a request.
pub(crate) type Handler = fn(Arc<Http>, Request) -> BoxFuture<'static, Result<Response, Problem>>;

/// One method of an address: what answers it, and how the document describes that.
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    pub(crate) handler: Handler,
    pub(crate) describe: fn(&mut Types) -> Operation,
}

impl Endpoint {
    pub(crate) const fn get(handler: Handler, describe: fn(&mut Types) -> Operation) -> Self {
        Self { method: Method::GET, handler, describe }
    }

    pub(crate) const fn post(handler: Handler, describe: fn(&mut Types) -> Operation) -> Self {
        Self { method: Method::POST, handler, describe }
    }
}

/// What answers the requests to an address.
pub(crate) type Methods = &'static [Endpoint];

/// A route that can be mounted anywhere.
pub(crate) fn endpoint<S>(http: Arc<Http>, methods: Methods) -> MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    any(move |request: Request| {
        let http = http.clone();
        async move { dispatch(http, methods, request).await.unwrap_or_else(IntoResponse::into_response) }
    })
}

async fn dispatch(http: Arc<Http>, methods: Methods, request: Request) -> Result<Response, Problem> {
    // The server sends no body to HEAD.
    let method = if request.method() == Method::HEAD { Method::GET } else { request.method().clone() };
    if let Some(endpoint) = methods.iter().find(|endpoint| endpoint.method == method) {
        return (endpoint.handler)(http, request).await;
    }
    let allowed = allowed(methods);
    if method == Method::OPTIONS {
        return Ok((StatusCode::NO_CONTENT, [(header::ALLOW, allowed)]).into_response());
    }
    let message = format!("this address takes {allowed}");
    Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, FailureCode::InvalidRequest, message)
        .with_header(header::ALLOW, allowed))
}

fn allowed(methods: Methods) -> String {
    let mut names = vec!["OPTIONS"];
    for Endpoint { method, .. } in methods {
        names.push(method.as_str());
        if *method == Method::GET {
            names.push("HEAD");
        }
    }
    names.join(", ")
}

/// No route has this address.
pub(crate) async fn nowhere() -> Response {
    Problem::new(StatusCode::NOT_FOUND, FailureCode::NotFound, "there is nothing at this address").into_response()
}

/// A request whose caller was let in, with its body.
pub(crate) struct Admitted {
    pub(crate) grant: Grant,
    pub(crate) body: Vec<u8>,
}

impl Http {
    /// Asks the authoriser. Nothing of the body is read before.
    pub(crate) async fn admit(&self, parts: &Parts) -> Result<Grant, Problem> {
        Ok(self.authoriser.authorise(Caller::of(parts)).await?)
    }

    /// Asks the authoriser, then reads the body.
    pub(crate) async fn admit_with_body(&self, request: Request) -> Result<Admitted, Problem> {
        let (parts, body) = request.into_parts();
        let grant = self.admit(&parts).await?;
        let body = body::read(&parts.headers, body, &self.limits).await?;
        Ok(Admitted { grant, body })
    }
}
