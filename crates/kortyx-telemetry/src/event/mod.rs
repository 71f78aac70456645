//! Events as Kortyx Studio takes them in. The receiver refuses unknown keys, so nothing is sent that is not here.

mod payload;
mod question;
mod span;

use std::{collections::BTreeMap, sync::Arc};

use kortyx_protocol::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::Value;

pub use self::{
    payload::{
        Payload, RunCancelled, SessionCheckpointed, SessionForked, SessionRolledBack, TransitionKind,
        WorkflowTransitioned,
    },
    question::{InterruptCancelled, InterruptCreated, InterruptExpired, InterruptResolved},
    span::{
        GenerationCompleted, SpanEnded, SpanFailed, SpanKind, SpanStarted, TokenUsage, ToolCompleted, ToolFailed,
        ToolStarted,
    },
};

/// The version of the form.
pub const SCHEMA_VERSION: u32 = 1;

/// Something that happened, as it is sent.
///
/// ```
/// use kortyx_protocol::{Timestamp, json};
/// use kortyx_telemetry::event::{Event, EventContext, EventCorrelation, Payload, Service, SessionCheckpointed};
///
/// let event = Event {
///     event_id: "e-1".to_owned(),
///     occurred_at: Timestamp::from_millis(0),
///     environment: "production".into(),
///     service: Service { name: "desk".into(), deployment_ref: None },
///     correlation: EventCorrelation::of("run-1", "review"),
///     context: EventContext::default(),
///     payload: Payload::SessionCheckpointed(SessionCheckpointed { checkpoint_id: "c-1".to_owned() }),
/// };
/// assert!(json::to_string(&event)?.contains(r#""type":"session.checkpointed","payload":{"checkpointId":"c-1"}"#));
/// # Ok::<(), kortyx_protocol::JsonError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Unique. An event that is sent again has the same, so a receiver can tell.
    pub event_id: String,
    /// When it was told, on the clock of the process.
    pub occurred_at: Timestamp,
    /// The environment, as configured.
    pub environment: Arc<str>,
    /// The service, as configured.
    pub service: Service,
    /// What it is about.
    pub correlation: EventCorrelation,
    /// For whom. Left out when empty.
    pub context: EventContext,
    /// What happened; decides the event's type.
    pub payload: Payload,
}

/// What sends events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// Its name.
    pub name: Arc<str>,
    /// Which deployment of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment_ref: Option<Arc<str>>,
}

/// What an event is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventCorrelation {
    /// The run.
    pub run_id: String,
    /// The run's workflow; of a question whose run was not read, the workflow that asks.
    pub workflow_id: String,
    /// The trace, 32 lower-case hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The span, 16 lower-case hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_id: Option<String>,
    /// The span above it, 16 lower-case hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<String>,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What the receiver called the revision of the workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_revision_id: Option<Arc<str>>,
    /// The hash of the workflow's topology, 64 lower-case hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_hash: Option<Arc<str>>,
    /// The node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
}

impl EventCorrelation {
    /// About a run of a workflow.
    pub fn of(run_id: impl Into<String>, workflow_id: impl Into<String>) -> Self {
        Self { run_id: run_id.into(), workflow_id: workflow_id.into(), ..Self::default() }
    }
}

/// For whom something happened. Only what the application chose to send.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventContext {
    /// The user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// The tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Arc<str>>,
    /// More: booleans, integers and texts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Value>,
}

impl EventContext {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// An event with its version and its type.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Form<'a> {
    schema_version: u32,
    event_id: &'a str,
    occurred_at: Timestamp,
    environment: &'a str,
    service: &'a Service,
    correlation: &'a EventCorrelation,
    #[serde(skip_serializing_if = "EventContext::is_empty")]
    context: &'a EventContext,
    #[serde(rename = "type")]
    event_type: &'static str,
    payload: &'a Payload,
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = Form {
            schema_version: SCHEMA_VERSION,
            event_id: &self.event_id,
            occurred_at: self.occurred_at,
            environment: &self.environment,
            service: &self.service,
            correlation: &self.correlation,
            context: &self.context,
            event_type: self.payload.event_type(),
            payload: &self.payload,
        };
        form.serialize(serializer)
    }
}
