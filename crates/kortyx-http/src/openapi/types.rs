//! The schemas of the document.

use kortyx_protocol::{Failure, InterruptInput, RequestId, RunId, SessionId, Timestamp};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};

/// Collects the schemas that operations name.
pub(crate) struct Types(SchemaGenerator);

impl Types {
    pub(super) fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Self(settings.into_generator())
    }

    /// What refers to the schema of a type.
    pub(crate) fn of<T: JsonSchema>(&mut self) -> Value {
        self.0.subschema_for::<T>().to_value()
    }

    pub(super) fn into_schemas(mut self) -> Map<String, Value> {
        self.0.take_definitions(true)
    }
}

/// Why a request was refused.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct Error {
    /// What happened and what to do, for people; the failure's message.
    error: String,
    /// What went wrong.
    failure: Failure,
}

/// A question as those see it who look for it.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct Interrupt {
    id: RequestId,
    status: InterruptStatus,
    run_id: RunId,
    session_id: SessionId,
    /// The workflow where it was asked.
    workflow: String,
    /// The node where it was asked.
    node: String,
    created_at: Timestamp,
    /// Its absolute deadline.
    expires_at: Timestamp,
    /// It was asked after the response that its run belongs to was completed.
    after_response_completed: bool,
    input: InterruptInput,
}

/// Where a question stands.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum InterruptStatus {
    Pending,
    Answered,
    Cancelled,
    Expired,
    Superseded,
}

/// A page of open questions, oldest first.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct Interrupts {
    interrupts: Vec<Interrupt>,
    /// The cursor of the next page, when there may be one.
    next_cursor: Option<String>,
}

/// How the process does.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct Health {
    /// `ok`, or what is wrong.
    status: String,
}
