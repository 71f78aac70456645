//! The question as it is stored with its interrupt.

use std::{sync::Arc, time::Duration};

use kortyx_protocol::{InterruptInput, InterruptKind, JsonError, RawJson, ResumeResponse, json};
use serde::{Deserialize, Serialize};

use crate::option::{QuestionOption, present};

/// A question, with all that it takes to show it and to judge an answer, without the code that asked.
///
/// Made by the asks ([`Choice`](crate::Choice), [`Text`](crate::Text), …) through [`Ask::question`](crate::Ask::question),
/// stored as JSON. Cheap to clone.
///
/// ```
/// use kortyx_contracts::{Ask, Choice, Question};
/// use kortyx_protocol::ResumeResponse;
///
/// let question = Choice::new("Approve this draft?").option("approve", "Approve").question()?.with_id("approval");
/// let stored = question.to_vec()?;
///
/// let question = Question::from_slice(&stored)?; // another process, another week
/// let issues = question.validate(&ResumeResponse::Select { ids: vec!["aprove".into()] }).unwrap_err();
/// assert_eq!(issues[0].message, "`aprove` is not one of the options");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    v: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(with = "shared")]
    ask: Arc<Asked>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_in_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default: Option<ResumeResponse>,
    #[serde(default, skip_serializing_if = "is_false")]
    optional_cancel: bool,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    meta: Option<RawJson>,
}

/// What is asked: all that the kinds of asks fill in. Shared between an ask and its questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Asked {
    pub(crate) kind: InterruptKind,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) picker: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) question: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) options: Vec<QuestionOption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) min: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) min_length: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_length: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) schema_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) schema_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) contract: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub(crate) request: Option<RawJson>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub(crate) response_schema: Option<RawJson>,
}

impl Asked {
    /// Nothing but the kind.
    pub(crate) fn new(kind: InterruptKind) -> Self {
        Self {
            kind,
            picker: false,
            question: None,
            options: Vec::new(),
            min: None,
            max: None,
            min_length: None,
            max_length: None,
            schema_id: None,
            schema_version: None,
            contract: None,
            request: None,
            response_schema: None,
        }
    }
}

impl Question {
    /// The version of the stored format.
    pub const VERSION: u32 = 1;

    pub(crate) fn new(ask: Arc<Asked>) -> Self {
        let v = Self::VERSION;
        Self { v, id: None, ask, expires_in_ms: None, default: None, optional_cancel: false, meta: None }
    }

    /// Reads a stored question. Refuses one that a newer version wrote, and integers that would be rounded.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, JsonError> {
        match json::from_slice::<Self>(bytes) {
            Ok(question) => supported(question.v).map(|()| question),
            Err(mistake) => {
                Err(json::from_slice(bytes).and_then(|Version { v }| supported(v)).err().unwrap_or(mistake))
            }
        }
    }

    /// The JSON to store.
    pub fn to_vec(&self) -> Result<Vec<u8>, JsonError> {
        json::to_vec(self)
    }

    /// Gives it the author's id: what names the call within its activation.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// What replay compares: the kind, and the contract or schema with its version.
    ///
    /// `choice`, `text`, `choice:@acme.jobs/2`, `custom:release@acme.release/1`. Texts and options are no part of it: they
    /// may differ on replay, and the recorded ones count.
    pub fn identity(&self) -> String {
        let mut identity = self.ask.kind.as_str().to_owned();
        if self.ask.contract.is_some() || self.ask.schema_id.is_some() {
            identity.push(':');
            identity.push_str(self.contract().unwrap_or_default());
        }
        for (mark, part) in [('@', self.schema_id()), ('/', self.schema_version())] {
            if let Some(part) = part {
                identity.push(mark);
                identity.push_str(part);
            }
        }
        identity
    }

    /// What a client may see of it. Option values, the default and the rules of expiry stay on the server.
    pub fn input(&self) -> InterruptInput {
        let ask = &*self.ask;
        let value = |raw: &Option<RawJson>| raw.as_ref().and_then(|raw| raw.to_value().ok());
        let mut input = InterruptInput::new(ask.kind);
        input.question.clone_from(&ask.question);
        input.id.clone_from(&self.id);
        input.options = ask.options.iter().map(QuestionOption::public).collect();
        input.schema_id.clone_from(&ask.schema_id);
        input.schema_version.clone_from(&ask.schema_version);
        input.contract.clone_from(&ask.contract);
        input.request = value(&ask.request);
        input.response_schema = value(&ask.response_schema);
        (input.min, input.max) = (ask.min, ask.max);
        (input.min_length, input.max_length) = (ask.min_length, ask.max_length);
        input.meta = value(&self.meta);
        input
    }

    /// What form of answer it wants.
    pub fn kind(&self) -> InterruptKind {
        self.ask.kind
    }

    /// The author's id.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The question for a person to read.
    pub fn question(&self) -> Option<&str> {
        self.ask.question.as_deref()
    }

    /// The options of a static choice.
    pub fn options(&self) -> &[QuestionOption] {
        &self.ask.options
    }

    /// Whether the client finds the options.
    pub fn is_picker(&self) -> bool {
        self.ask.picker
    }

    /// Whether several ids may be selected.
    pub fn is_multiple(&self) -> bool {
        self.ask.kind == InterruptKind::MultiChoice
    }

    /// The schema that a picker or a contract names.
    pub fn schema_id(&self) -> Option<&str> {
        self.ask.schema_id.as_deref()
    }

    /// That schema's version.
    pub fn schema_version(&self) -> Option<&str> {
        self.ask.schema_version.as_deref()
    }

    /// The contract's name.
    pub fn contract(&self) -> Option<&str> {
        self.ask.contract.as_deref()
    }

    /// The contract's request.
    pub fn request(&self) -> Option<&RawJson> {
        self.ask.request.as_ref()
    }

    /// JSON Schema (2020-12) of the contract's answer.
    pub fn response_schema(&self) -> Option<&RawJson> {
        self.ask.response_schema.as_ref()
    }

    /// How long it may be answered, when the author says so.
    pub fn expires_in(&self) -> Option<Duration> {
        self.expires_in_ms.map(Duration::from_millis)
    }

    /// The answer that counts when time is up without one.
    pub fn default_response(&self) -> Option<&ResumeResponse> {
        self.default.as_ref()
    }

    /// Whether the node sees a cancellation; else a cancellation ends the run.
    pub fn optional_cancel(&self) -> bool {
        self.optional_cancel
    }

    /// What the author adds for clients.
    pub fn meta(&self) -> Option<&RawJson> {
        self.meta.as_ref()
    }

    pub(crate) fn asked(&self) -> &Asked {
        &self.ask
    }

    pub(crate) fn set_expires_in_ms(&mut self, after: u64) {
        self.expires_in_ms = Some(after);
    }

    pub(crate) fn set_default(&mut self, default: ResumeResponse) {
        self.default = Some(default);
    }

    pub(crate) fn set_optional_cancel(&mut self) {
        self.optional_cancel = true;
    }

    pub(crate) fn set_meta(&mut self, meta: RawJson) {
        self.meta = Some(meta);
    }
}

#[derive(Deserialize)]
struct Version {
    v: u32,
}

fn supported(version: u32) -> Result<(), JsonError> {
    if version == Question::VERSION {
        return Ok(());
    }
    let known = Question::VERSION;
    Err(JsonError::new("/v", format!("question format {version} is not known: this version reads format {known}")))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Reads and writes what is behind an `Arc`.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<T: Serialize, S: Serializer>(shared: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error> {
        (**shared).serialize(serializer)
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<T>, D::Error> {
        T::deserialize(deserializer).map(Arc::new)
    }
}
