//! Questions, their answers and how they are found.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use kortyx_protocol::{RequestId, ResumeToken, RunId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

/// Where in its run a question was asked. Opaque to storage; unique among a run's open questions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AskKey(pub String);

impl fmt::Display for AskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A context value: what listing compares, exactly.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A text; `"1"` and `1` are different values.
    Text(Arc<str>),
}

/// Which questions a caller may see: every given part must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// Only this session.
    pub session_id: Option<SessionId>,
    /// Only runs whose context holds all of these.
    pub context: BTreeMap<String, Scalar>,
}

impl Scope {
    /// The scope of one session.
    pub fn session(session_id: SessionId) -> Self {
        Self { session_id: Some(session_id), context: BTreeMap::new() }
    }

    /// Adds a context value that must match.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: Scalar) -> Self {
        self.context.insert(key.into(), value);
        self
    }

    /// Whether it restricts nothing. Stores refuse such a scope.
    pub fn is_empty(&self) -> bool {
        self.session_id.is_none() && self.context.is_empty()
    }

    /// Whether something with this session and context lies inside.
    pub fn contains(&self, session_id: &SessionId, context: &BTreeMap<String, Scalar>) -> bool {
        self.session_id.as_ref().is_none_or(|wanted| wanted == session_id) && self.contains_context(context)
    }

    /// Whether something with this context lies inside, whatever its session.
    pub fn contains_context(&self, context: &BTreeMap<String, Scalar>) -> bool {
        self.context.iter().all(|(key, value)| context.get(key) == Some(value))
    }
}

/// Where a question stands. No status but `Pending` ever changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InterruptStatus {
    /// Open: it can be answered until its deadline.
    Pending,
    /// Closed by an accepted answer.
    Answered,
    /// Closed by a cancellation.
    Cancelled,
    /// Closed by time; its default, if it has one, was delivered.
    Expired,
    /// Withdrawn: its branch ended, its run ended, or its session was rolled back.
    Superseded,
}

impl InterruptStatus {
    /// The stable lower-case name, as stored and as sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Answered => "answered",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Superseded => "superseded",
        }
    }

    /// The status with this name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Pending, Self::Answered, Self::Cancelled, Self::Expired, Self::Superseded]
            .into_iter()
            .find(|status| status.as_str() == name)
    }
}

/// A question to publish.
#[derive(Debug, Clone)]
pub struct NewInterrupt {
    /// Its public id, minted by the caller.
    pub request_id: RequestId,
    /// The secret that answers it, minted by the caller.
    pub token: ResumeToken,
    /// Where it was asked.
    pub ask: AskKey,
    /// The workflow where it was asked (a child's own).
    pub workflow: String,
    /// The node where it was asked.
    pub node: String,
    /// The whole question as JSON: what is shown, and what validates an answer.
    pub question: Bytes,
    /// Its time to live from the moment the transition commits, on the store's clock. Zero expires at once.
    pub expires_in: Duration,
    /// The answer that applies when its time runs out.
    pub default: Option<Bytes>,
    /// A cancellation is an answer that the node sees, rather than the end of the run.
    pub optional_cancel: bool,
    /// It was asked after the response that its run belongs to was completed.
    pub after_response_completed: bool,
}

/// Proof that an answer was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The question.
    pub request_id: RequestId,
    /// Its run.
    pub run_id: RunId,
    /// Its place among the run's answers, from 1.
    pub seq: u64,
    /// When it was accepted, on the store's clock.
    pub at: Timestamp,
    /// Who answered, as the application authenticated them.
    pub actor: Option<String>,
}

/// A stored question.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InterruptRecord {
    /// Its public id.
    pub request_id: RequestId,
    /// The secret that answers it.
    pub token: ResumeToken,
    /// Its run.
    pub run_id: RunId,
    /// Its run's session.
    pub session_id: SessionId,
    /// Its run's context.
    pub context: Arc<BTreeMap<String, Scalar>>,
    /// Where in the run it was asked.
    pub ask: AskKey,
    /// The workflow where it was asked.
    pub workflow: String,
    /// The node where it was asked.
    pub node: String,
    /// The whole question as JSON.
    pub question: Bytes,
    /// When it was published.
    pub created_at: Timestamp,
    /// Its absolute deadline.
    pub expires_at: Timestamp,
    /// Where it stands.
    pub status: InterruptStatus,
    /// The accepted answer, or the default that applied.
    pub answer: Option<Bytes>,
    /// The accepted answer's receipt.
    pub receipt: Option<Receipt>,
    /// The answer that applies when its time runs out.
    pub default: Option<Bytes>,
    /// A cancellation is an answer that the node sees.
    pub optional_cancel: bool,
    /// It was asked after the response was completed.
    pub after_response_completed: bool,
}

impl InterruptRecord {
    /// A record as a question is published. For adapters.
    pub fn new(
        new: NewInterrupt,
        run_id: RunId,
        session_id: SessionId,
        context: Arc<BTreeMap<String, Scalar>>,
        now: Timestamp,
    ) -> Self {
        Self {
            request_id: new.request_id,
            token: new.token,
            run_id,
            session_id,
            context,
            ask: new.ask,
            workflow: new.workflow,
            node: new.node,
            question: new.question,
            created_at: now,
            expires_at: now.saturating_add(new.expires_in),
            status: InterruptStatus::Pending,
            answer: None,
            receipt: None,
            default: new.default,
            optional_cancel: new.optional_cancel,
            after_response_completed: new.after_response_completed,
        }
    }
}

/// An accepted answer on its way to the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerRecord {
    /// Its place among the run's answers, from 1, without gaps; of a rollback's or a fork's run, from where its snapshot
    /// ends.
    pub seq: u64,
    /// The question.
    pub request_id: RequestId,
    /// Where the question was asked.
    pub ask: AskKey,
    /// The answer as canonical JSON of a [`ResumeResponse`](kortyx_protocol::ResumeResponse).
    pub answer: Bytes,
    /// When it was accepted.
    pub at: Timestamp,
    /// Who answered.
    pub actor: Option<String>,
    /// Nobody answered in time: this is the question's default.
    pub by_default: bool,
}

/// A page of open questions to read, oldest first.
#[derive(Debug, Clone, Default)]
pub struct InterruptQuery {
    /// Whose questions; may be empty only when `run_id` is given.
    pub scope: Scope,
    /// Only this run.
    pub run_id: Option<RunId>,
    /// Only questions asked after (or before) their response was completed.
    pub after_response_completed: Option<bool>,
    /// At most this many; stores clamp it to 1..=200.
    pub limit: u32,
    /// Where the page starts, from [`InterruptPage::next`].
    pub cursor: Option<String>,
}

/// A page of open questions.
#[derive(Debug, Clone, Default)]
pub struct InterruptPage {
    /// Pending, unexpired questions, oldest first.
    pub interrupts: Vec<InterruptRecord>,
    /// The cursor of the next page, when there may be one.
    pub next: Option<String>,
}

/// New ids for a question that a rollback or a fork opens again.
#[derive(Debug, Clone)]
pub struct Reissue {
    /// The question as the checkpoint holds it.
    pub from: RequestId,
    /// Its new id.
    pub request_id: RequestId,
    /// Its new secret.
    pub token: ResumeToken,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str) -> SessionId {
        SessionId::new(id).unwrap()
    }

    #[test]
    fn a_scope_contains_what_matches_all_of_it() {
        let context = BTreeMap::from([("n".to_owned(), Scalar::Int(1)), ("t".to_owned(), Scalar::Text("x".into()))]);
        let contains = |scope: Scope| scope.contains(&session("s"), &context);
        assert!(contains(Scope::default()), "a scope without parts restricts nothing");
        assert!(contains(Scope::session(session("s"))));
        assert!(contains(Scope::session(session("s")).with("n", Scalar::Int(1))));
        assert!(!contains(Scope::session(session("t")).with("n", Scalar::Int(1))));
        assert!(!contains(Scope::default().with("n", Scalar::Int(1)).with("m", Scalar::Int(1))));
    }

    #[test]
    fn scalars_of_different_types_are_different() {
        let context = BTreeMap::from([("n".to_owned(), Scalar::Int(1))]);
        for other in [Scalar::Text("1".into()), Scalar::Bool(true), Scalar::Int(2)] {
            assert!(!Scope::default().with("n", other).contains(&session("s"), &context));
        }
    }

    #[test]
    fn only_a_scope_without_any_part_is_empty() {
        assert!(Scope::default().is_empty());
        assert!(!Scope::session(session("s")).is_empty());
        assert!(!Scope::default().with("", Scalar::Bool(false)).is_empty());
    }

    #[test]
    fn a_status_has_one_name_and_a_name_one_status() {
        for name in ["pending", "answered", "cancelled", "expired", "superseded"] {
            assert_eq!(InterruptStatus::parse(name).map(InterruptStatus::as_str), Some(name));
        }
        assert_eq!(InterruptStatus::parse("Pending"), None);
    }

    #[test]
    fn a_published_question_is_pending_until_an_absolute_deadline() {
        let new = NewInterrupt {
            request_id: RequestId::new("human-1").unwrap(),
            token: ResumeToken::parse("secret").unwrap(),
            ask: AskKey("pick#2".to_owned()),
            workflow: "review".to_owned(),
            node: "approve".to_owned(),
            question: Bytes::from_static(b"{}"),
            expires_in: Duration::from_mins(15),
            default: None,
            optional_cancel: false,
            after_response_completed: false,
        };
        let (run, context) = (RunId::new("run-1").unwrap(), Arc::default());
        let record = InterruptRecord::new(new, run, session("s"), context, Timestamp::from_millis(1_000));
        assert_eq!((record.created_at.as_millis(), record.expires_at.as_millis()), (1_000, 901_000));
        assert_eq!((record.status, record.answer, record.receipt), (InterruptStatus::Pending, None, None));
        assert_eq!(record.ask.to_string(), "pick#2");
    }
}
