//! What a checkpoint keeps of a session: the form in which storage holds it.

use std::collections::BTreeMap;

use kortyx_protocol::{Failure, RawJson};
use kortyx_store::{CheckpointRecord, Scalar, Scope};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{OrchestratorError, driver::corrupt, execute::scalars};

/// The version of [`SessionState`]. A state with a higher one is refused.
const VERSION: u32 = 1;

/// A session's state after a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionState {
    v: u32,
    /// The workflow's public data.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) data: BTreeMap<String, RawJson>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) workflow_state: BTreeMap<String, RawJson>,
    /// The values of the turn's run that a scope is compared with. They are kept here because runs go before sessions do.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    context: Map<String, Value>,
}

impl SessionState {
    pub(crate) fn new(
        data: BTreeMap<String, RawJson>,
        workflow_state: BTreeMap<String, RawJson>,
        context: &BTreeMap<String, Scalar>,
    ) -> Self {
        let context = context.iter().map(|(key, scalar)| (key.clone(), value(scalar))).collect();
        Self { v: VERSION, data, workflow_state, context }
    }

    /// The state that a checkpoint holds. That of a newer release is refused, not guessed at.
    pub(crate) fn of(record: &CheckpointRecord) -> Result<Self, OrchestratorError> {
        Self::read(&record.checkpoint.state).map_err(OrchestratorError::Corrupt)
    }

    fn read(bytes: &[u8]) -> Result<Self, Failure> {
        #[derive(Deserialize)]
        struct Version {
            v: u32,
        }
        let unreadable =
            |error: serde_json::Error| corrupt(&format!("the state of a checkpoint does not read: {error}"));
        let Version { v } = serde_json::from_slice(bytes).map_err(unreadable)?;
        if v > VERSION {
            return Err(corrupt(&format!("a checkpoint was stored by a newer release (version {v})")));
        }
        serde_json::from_slice(bytes).map_err(unreadable)
    }

    /// Whether the session of this state's checkpoint lies in a scope.
    fn is_in(&self, record: &CheckpointRecord, scope: &Scope) -> bool {
        scope.contains(&record.session_id, &scalars(&self.context))
    }
}

/// Whether a checkpoint lies in a scope; everything lies in none.
pub(crate) fn is_in(record: &CheckpointRecord, scope: Option<&Scope>) -> Result<bool, OrchestratorError> {
    let Some(scope) = scope else { return Ok(true) };
    // Of another session nothing need be read.
    let is_session = scope.session_id.as_ref().is_none_or(|wanted| *wanted == record.session_id);
    Ok(is_session && (scope.context.is_empty() || SessionState::of(record)?.is_in(record, scope)))
}

pub(crate) fn value(scalar: &Scalar) -> Value {
    match scalar {
        Scalar::Bool(value) => (*value).into(),
        Scalar::Int(value) => (*value).into(),
        Scalar::Text(text) => Value::from(&**text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_reads_as_it_was_stored() {
        let raw = |text: &str| RawJson::parse(text).unwrap();
        let state = SessionState::new(
            BTreeMap::from([("draft".to_owned(), raw("18446744073709551615"))]),
            BTreeMap::from([("count".to_owned(), raw("1.50"))]),
            &BTreeMap::from([("n".to_owned(), Scalar::Int(-1)), ("t".to_owned(), Scalar::Text("a".into()))]),
        );
        let bytes = serde_json::to_vec(&state).unwrap();
        let text = r#"{"v":1,"data":{"draft":18446744073709551615},"workflowState":{"count":1.50},"context":{"n":-1,"t":"a"}}"#;
        assert_eq!(str::from_utf8(&bytes).unwrap(), text);
        assert_eq!(SessionState::read(&bytes).unwrap(), state);
        let empty = SessionState::new(BTreeMap::new(), BTreeMap::new(), &BTreeMap::new());
        assert_eq!(serde_json::to_string(&empty).unwrap(), r#"{"v":1}"#);
        assert_eq!(SessionState::read(br#"{"v":1}"#).unwrap(), empty);
    }

    #[test]
    fn a_state_of_a_newer_release_is_refused_whatever_its_form() {
        for text in [r#"{"v":2}"#, r#"{"v":2,"data":[]}"#] {
            let failure = SessionState::read(text.as_bytes()).unwrap_err();
            assert_eq!(failure.code, kortyx_protocol::FailureCode::PersistenceError);
        }
        assert!(SessionState::read(b"{").is_err() && SessionState::read(b"{}").is_err());
    }
}
