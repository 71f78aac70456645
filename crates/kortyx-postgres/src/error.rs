//! What went wrong, and whether trying again may help.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use kortyx_store::{StoreError, StoreErrorKind};

/// What of the driver's error is told: never values, statements or addresses.
#[derive(Debug, Clone)]
pub(crate) struct Cause(pub(crate) String);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Cause {}

/// What became of a call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It changed nothing, and would fail again.
    Refused,
    /// It changed nothing; the next attempt may succeed.
    Undone,
    /// The connection broke: it may have changed something. The next attempt finds out.
    Unknown,
}

/// A failed call.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) kind: StoreErrorKind,
    pub(crate) message: String,
    pub(crate) effect: Effect,
    cause: Option<Arc<Cause>>,
}

impl Failure {
    pub(crate) fn new(kind: StoreErrorKind, effect: Effect, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), effect, cause: None }
    }

    #[must_use]
    pub(crate) fn with_cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(Arc::new(Cause(cause.into())));
        self
    }

    pub(crate) fn closed() -> Self {
        Self::new(StoreErrorKind::Closed, Effect::Refused, "the store was closed")
    }

    pub(crate) fn is_unavailable(&self) -> bool {
        self.kind == StoreErrorKind::Unavailable
    }

    /// Trying again has taken too long.
    #[must_use]
    pub(crate) fn given_up(mut self, tried_for: Duration) -> Self {
        self.message = format!("{}, also after {tried_for:?} of trying again", self.message);
        self
    }

    /// An attempt may have taken effect, and none could find out.
    #[must_use]
    pub(crate) fn left_unknown(mut self) -> Self {
        self.message.push_str("; whether it took effect is unknown");
        self
    }

    pub(crate) fn told(&self, operation: &'static str) -> StoreError {
        let error = StoreError::new(self.kind, operation, self.message.clone());
        match &self.cause {
            Some(cause) => error.with_source(Arc::clone(cause)),
            None => error,
        }
    }
}

/// Error codes: <https://www.postgresql.org/docs/current/errcodes-appendix.html>. Class KX is ours.
pub(crate) fn classify(state: &str, message: &str) -> Failure {
    use StoreErrorKind::{
        Abandoned, AlreadyExists, Backend, Corrupt, InvalidRequest, LeaseLost, Schema, TooLarge, Unavailable,
    };
    let refused = |kind, told: &str| Failure::new(kind, Effect::Refused, told);
    let failure = match state {
        "KX001" => return refused(LeaseLost, message),
        "KX002" => return refused(AlreadyExists, message),
        "KX003" => return refused(InvalidRequest, message),
        "KX004" => return refused(Corrupt, message),
        "KX005" => return refused(Abandoned, message),
        "40001" | "40P01" => Failure::new(Unavailable, Effect::Undone, "the transaction lost against another"),
        "23505" => refused(AlreadyExists, "an id is taken"),
        "42883" | "42P01" | "3F000" => refused(Schema, "the tables or functions are missing: call setup first"),
        "42703" | "42804" => refused(Schema, "a table is not as it was made: the schema was edited"),
        "42501" | "28000" | "28P01" | "3D000" => refused(Unavailable, "the server does not let this user in"),
        "25006" => Failure::new(Unavailable, Effect::Undone, "the server takes no writes: it is a standby"),
        "57014" => refused(Unavailable, "the server took longer than the statement timeout"),
        "53300" => Failure::new(Unavailable, Effect::Undone, "the server has no connection to spare"),
        "53100" => refused(Unavailable, "the server's disk is full"),
        "53200" => refused(Unavailable, "the server is out of memory"),
        "54000" => refused(TooLarge, "a value is larger than the database takes"),
        "57P03" => Failure::new(Unavailable, Effect::Undone, "the server is starting or stopping"),
        // The end of a server process, or of its pooler's connection to it.
        "57P01" | "57P02" | "57P05" => Failure::new(Unavailable, Effect::Unknown, "the server ended the connection"),
        _ if state.starts_with("08") => Failure::new(Unavailable, Effect::Unknown, "the connection broke"),
        _ if state.starts_with("XX") => refused(Corrupt, "the database is damaged"),
        _ => refused(Backend, "the database refused a statement"),
    };
    failure.with_cause(format!("{state}: {message}"))
}
