//! Who calls, and what they may see.

use std::{fmt, net::SocketAddr};

use async_trait::async_trait;
use axum::{
    extract::{ConnectInfo, OriginalUri},
    http::{Extensions, HeaderMap, Method, Uri, request::Parts},
};
use kortyx_protocol::{Failure, FailureCode, SessionId};
use kortyx_store::{Scalar, Scope};
use serde_json::{Map, Value};

/// Decides over every request, before its body is read.
///
/// The application implements it: it looks at the request (a cookie, a bearer token, what a middleware left in the extensions) and
/// says who calls and what they may see, or refuses.
///
/// ```
/// use kortyx_http::{Authoriser, Caller, Grant, Refusal, async_trait};
///
/// struct Tenants;
///
/// #[async_trait]
/// impl Authoriser for Tenants {
///     async fn authorise(&self, caller: Caller<'_>) -> Result<Grant, Refusal> {
///         match caller.header("authorization") {
///             Some("Bearer secret-of-ann") => Ok(Grant::new().tenant("tenant", "acme").actor("ann")),
///             _ => Err(Refusal::unauthenticated("Bearer")),
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait Authoriser: Send + Sync + 'static {
    /// What this caller may see, or why nothing.
    async fn authorise(&self, caller: Caller<'_>) -> Result<Grant, Refusal>;
}

/// A request, as far as it is known before its body.
#[derive(Clone, Copy)]
pub struct Caller<'a>(&'a Parts);

impl<'a> Caller<'a> {
    pub(crate) fn of(parts: &'a Parts) -> Self {
        Self(parts)
    }

    /// The method.
    pub fn method(self) -> &'a Method {
        &self.0.method
    }

    /// The address as it was asked for, also where a nested router sees only a part of it.
    pub fn uri(self) -> &'a Uri {
        self.0.extensions.get::<OriginalUri>().map_or(&self.0.uri, |original| &original.0)
    }

    /// Every header.
    pub fn headers(self) -> &'a HeaderMap {
        &self.0.headers
    }

    /// The value of a header that is there exactly once and is text.
    pub fn header(self, name: &str) -> Option<&'a str> {
        let mut values = self.0.headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => value.to_str().ok(),
            _ => None,
        }
    }

    /// What middleware and server have attached to the request.
    pub fn extensions(self) -> &'a Extensions {
        &self.0.extensions
    }

    /// Who is at the other end of the connection: a client, or a proxy. Known behind [`Server`](crate::Server) and where axum
    /// serves with connect info.
    pub fn peer(self) -> Option<SocketAddr> {
        self.0.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0)
    }
}

impl fmt::Debug for Caller<'_> {
    /// Headers hold secrets, so they are not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("method", self.method()).field("peer", &self.peer()).finish_non_exhaustive()
    }
}

/// What a caller may see, and who they are.
///
/// Give every caller of an application the same keys: what a caller is not restricted by, their own request may set.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Grant {
    /// Whose things the caller may see. Its context values are added to every run that the caller begins. Where it restricts
    /// nothing the caller may chat, execute and resume, and is refused everywhere else.
    pub scope: Scope,
    /// Who the caller is, kept with every answer that they give.
    pub actor: Option<String>,
    /// What else is added to the context of every run that the caller begins.
    pub context: Map<String, Value>,
}

impl Grant {
    /// A caller who may see nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only this session. A request that names another is refused, one that names none is in it.
    #[must_use]
    pub fn session(mut self, session_id: SessionId) -> Self {
        self.scope.session_id = Some(session_id);
        self
    }

    /// Only runs whose context has this text, and every run that the caller begins has it.
    #[must_use]
    pub fn tenant(mut self, key: impl Into<String>, value: impl AsRef<str>) -> Self {
        self.scope.context.insert(key.into(), Scalar::Text(value.as_ref().into()));
        self
    }

    /// Who the caller is.
    #[must_use]
    pub fn actor(mut self, actor: impl Into<String>) -> Self {
        self.actor = Some(actor.into());
        self
    }

    /// Adds this to the context of every run that the caller begins, without restricting what they see.
    #[must_use]
    pub fn context(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.context.insert(key.into(), value.into());
        self
    }

    /// The context of a run: what the client sent, and what the application says, which wins.
    pub(crate) fn run_context(&self, client: Option<Map<String, Value>>) -> Map<String, Value> {
        let mut context = client.unwrap_or_default();
        context.extend(self.context.clone());
        let scope = self.scope.context.iter().map(|(key, value)| (key.clone(), of_scalar(value)));
        context.extend(scope);
        context
    }

    /// The session of a request: the caller's own. One that differs from it is unknown to them.
    pub(crate) fn session_of(&self, asked: Option<SessionId>) -> Result<Option<SessionId>, Failure> {
        match (&self.scope.session_id, asked) {
            (Some(own), Some(asked)) if *own != asked => Err(unknown("session")),
            (Some(own), _) => Ok(Some(own.clone())),
            (None, asked) => Ok(asked),
        }
    }

    /// The scope, which must restrict something.
    pub(crate) fn required_scope(&self) -> Result<&Scope, Failure> {
        if self.scope.is_empty() {
            let message = "the application must say whose things the caller may see: a session, or context values";
            return Err(Failure::new(FailureCode::ScopeRequired, message));
        }
        Ok(&self.scope)
    }
}

/// There is nothing like that, or not for this caller.
pub(crate) fn unknown(what: &str) -> Failure {
    Failure::new(FailureCode::NotFound, format!("there is no such {what}, or not for this caller"))
}

fn of_scalar(value: &Scalar) -> Value {
    match value {
        Scalar::Bool(value) => (*value).into(),
        Scalar::Int(value) => (*value).into(),
        Scalar::Text(value) => value.as_ref().into(),
    }
}

/// Why a caller may see nothing.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub(crate) failure: Failure,
    /// What the `www-authenticate` header says.
    pub(crate) challenge: Option<String>,
}

impl Refusal {
    /// Nobody knows who calls: 401, with this challenge, `Bearer` for example.
    pub fn unauthenticated(challenge: impl Into<String>) -> Self {
        let message = "say who you are: the request has no valid credentials";
        Self { failure: refused(401, message), challenge: Some(challenge.into()) }
    }

    /// The caller is known and may not: 403, with a message for them.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self { failure: refused(403, message), challenge: None }
    }

    /// It cannot be decided now: 503. What is wrong belongs into the log.
    pub fn unavailable() -> Self {
        let message = "it cannot be decided now who you are; try again";
        Self { failure: refused(503, message).with_retryable(Some(true)), challenge: None }
    }
}

fn refused(status: u16, message: impl Into<String>) -> Failure {
    Failure::new(FailureCode::InvalidRequest, message).with_status(status)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_application_says_wins_over_the_clients_context() {
        let grant = Grant::new().tenant("tenant", "acme").context("plan", "pro");
        let client = json!({"tenant": "other", "plan": "free", "page": 7}).as_object().cloned();
        let context = grant.run_context(client);
        assert_eq!(Value::Object(context), json!({"tenant": "acme", "plan": "pro", "page": 7}));
    }

    #[test]
    fn a_session_of_the_scope_is_the_only_one() {
        let [own, other] = ["s1", "s2"].map(|id| SessionId::new(id).ok());
        let grant = Grant { scope: Scope { session_id: own.clone(), ..Scope::default() }, ..Grant::new() };
        assert_eq!(grant.session_of(None).ok().flatten(), own);
        assert_eq!(grant.session_of(own.clone()).ok().flatten(), own);
        assert_eq!(grant.session_of(other.clone()).unwrap_err().code, FailureCode::NotFound);
        assert_eq!(Grant::new().session_of(other.clone()).ok().flatten(), other);
    }

    #[test]
    fn a_scope_that_restricts_nothing_is_none() {
        assert_eq!(Grant::new().actor("ann").required_scope().unwrap_err().code, FailureCode::ScopeRequired);
        assert!(Grant::new().tenant("tenant", "acme").required_scope().is_ok());
    }

    #[test]
    fn a_header_that_is_there_twice_is_not_there() {
        let request = axum::http::Request::builder().header("a", "1").header("b", "1").header("b", "2").body(());
        let (parts, ()) = request.map(axum::http::Request::into_parts).unwrap();
        let caller = Caller::of(&parts);
        assert_eq!((caller.header("a"), caller.header("b"), caller.header("c")), (Some("1"), None, None));
    }
}
