//! The pages, beside the routes of `kortyx-http`.

use axum::{
    Router,
    body::Body,
    http::{HeaderName, HeaderValue, header},
    response::Response,
    routing::get,
};
use kortyx_http::Http;

use crate::{
    assets::{ASSETS, Asset},
    options::OPTIONS,
};

/// Headers of everything that is served here. Pages load nothing from elsewhere, hold no script of their own, and cannot make markup
/// of data.
const HEADERS: [(HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-cache"),
];

/// Everything that the program serves.
pub(crate) fn router(http: &Http) -> Router {
    ASSETS
        .iter()
        .chain(OPTIONS)
        .fold(http.router(), |router, asset| router.route(asset.path, get(move || async { reply(asset) })))
}

fn reply(asset: &Asset) -> Response {
    let mut response = Response::new(Body::from(asset.text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
