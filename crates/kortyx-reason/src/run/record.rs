//! What is recorded of a pass.

use kortyx_protocol::{Usage, json};
use kortyx_runtime::NodeError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{FinishReason, Message, ToolCall, ToolDeclaration};

/// The version of the format.
pub(super) const VERSION: u32 = 1;

/// What a model was given first. Recorded with the first pass, so that the code may give something else by the time of a replay.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Opening {
    pub(super) messages: Vec<Message>,
    pub(super) tools: Vec<ToolDeclaration>,
}

/// A pass: what the model said, and what is to be done about each call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PassRecord {
    pub(super) v: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) opening: Option<Opening>,
    pub(super) text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) calls: Vec<Planned>,
    pub(super) finish: Option<FinishReason>,
    pub(super) usage: Usage,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) provider_metadata: Option<Value>,
    /// The structured stream in which a client was told of the text, which was the final object when the model had written it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stream: Option<String>,
}

/// A call, with what is to be done about it. Decided once, when the model asked for it: later code has no say in it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Planned {
    pub(super) call: ToolCall,
    pub(super) plan: Plan,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub(super) enum Plan {
    /// Run a tool with these arguments, which are final.
    Run { arguments: Value, digest: String, gate: Gate },
    /// Ask a person with this contract.
    Ask { contract: String, request: Value },
    /// Hand this to the caller, and go on.
    Emit(Delivery),
    /// End with this.
    Return(Delivery),
    /// Tell the model that a person has rejected this very call.
    Rejected { arguments: Value },
    /// Tell the model what is wrong with the call.
    Refuse { why: String },
}

/// A value that fits its contract, as it was when the model delivered it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Delivery {
    pub(super) contract: String,
    pub(super) schema_id: String,
    pub(super) schema_version: String,
    /// The structured stream in which a client is told of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stream: Option<String>,
    pub(super) data: Value,
}

/// What is in front of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Gate {
    /// Nothing.
    Open,
    /// A person.
    Ask,
    /// The tool's own judgement of this call, then perhaps a person.
    Decide,
}

/// What binds a decision to a call: SHA-256 of the tool's name and the final arguments in canonical form.
pub(super) fn digest(tool: &str, arguments: &Value) -> Result<String, NodeError> {
    let text = json::canonical(&(tool, arguments))?;
    let hash = Sha256::digest(text.as_bytes());
    Ok(hash.iter().fold(String::with_capacity(64), |mut hex, byte| {
        use std::fmt::Write as _;
        let _ = write!(hex, "{byte:02x}");
        hex
    }))
}

#[cfg(test)]
mod tests {
    use kortyx_protocol::json;

    use super::*;

    /// A pass as it was stored before there were outputs.
    const STORED: &str = r#"{"v":1,"text":"","calls":[{"call":{"id":"call_0_0","tool":"note","arguments":"{}"},"plan":{"do":"run","arguments":{},"digest":"d","gate":"open"}}],"finish":"tool-calls","usage":{"input":1,"output":2,"total":3}}"#;

    #[test]
    fn a_pass_without_outputs_is_stored_as_ever() {
        let record: PassRecord = json::from_str(STORED).unwrap();
        assert_eq!(json::to_string(&record).unwrap(), STORED);
    }

    #[test]
    fn a_pass_with_outputs_reads_back() {
        let delivery =
            r#"{"do":"emit","contract":"card","schemaId":"acme.card","schemaVersion":"1","stream":"s","data":{"a":1}}"#;
        let plan: Plan = json::from_str(delivery).unwrap();
        assert_eq!(json::to_string(&plan).unwrap(), delivery);
        let plan: Plan = json::from_str(&delivery.replace("emit", "return").replace(r#""stream":"s","#, "")).unwrap();
        assert!(matches!(plan, Plan::Return(Delivery { stream: None, .. })));
    }
}
