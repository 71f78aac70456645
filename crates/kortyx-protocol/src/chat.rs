//! Chat requests.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    ChatMessage, Failure, Limits, SessionId, parse_resume_meta,
    request::{check_depth, invalid, read, session_id, too_large, trimmed},
};

/// The longest `clientTurnId`, in characters.
const MAX_CLIENT_TURN_ID: usize = 128;

/// A turn of a conversation: the last message, with the ones before it as history.
///
/// Read it with [`from_slice`](Self::from_slice), which is the only way in that checks everything.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatRequest {
    /// The conversation; the server mints one when it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The workflow, when not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// Whether chunks are streamed as they come; otherwise one JSON object at the end.
    pub stream: bool,
    /// What the client adds for the workflow; what the host sets wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Map<String, Value>>,
    /// The client's id of the turn, at most 128 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_turn_id: Option<String>,
    /// At least one.
    pub messages: Vec<ChatMessage>,
}

/// The request as it is sent.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ChatRequest"))]
#[serde(rename_all = "camelCase")]
struct Wire {
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::schema::OptionalId>"))]
    session_id: Option<String>,
    workflow_id: Option<String>,
    stream: Option<bool>,
    context: Option<Map<String, Value>>,
    #[cfg_attr(feature = "schema", schemars(length(max = 128)))]
    client_turn_id: Option<String>,
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    messages: Vec<ChatMessage>,
}

impl ChatRequest {
    /// A streamed turn of a new conversation.
    pub fn new(messages: impl IntoIterator<Item = ChatMessage>) -> Self {
        Self {
            session_id: None,
            workflow_id: None,
            stream: true,
            context: None,
            client_turn_id: None,
            messages: messages.into_iter().collect(),
        }
    }

    /// Reads a request's body.
    ///
    /// `sessionId`, `workflowId` and `clientTurnId` are trimmed, and empty ones are absent; unknown fields are ignored, except in
    /// messages. Fails with `INVALID_REQUEST` or `PAYLOAD_TOO_LARGE`, naming the place.
    ///
    /// ```
    /// use kortyx_protocol::{ChatRequest, FailureCode, Limits};
    ///
    /// let body = br#"{"sessionId":" s1 ","workflowId":"","messages":[{"role":"user","content":"Hi"}]}"#;
    /// let request = ChatRequest::from_slice(body, &Limits::default())?;
    /// assert_eq!(request.session_id.unwrap().as_str(), "s1");
    /// assert_eq!(request.workflow_id, None);
    /// assert!(request.stream);
    ///
    /// let failure = ChatRequest::from_slice(b"{\"messages\":[]}", &Limits::default()).unwrap_err();
    /// assert_eq!(failure.code, FailureCode::InvalidRequest);
    /// # Ok::<(), kortyx_protocol::Failure>(())
    /// ```
    pub fn from_slice(body: &[u8], limits: &Limits) -> Result<Self, Failure> {
        let wire: Wire = read(body, limits)?;
        let request = Self {
            session_id: session_id(wire.session_id)?,
            workflow_id: trimmed(wire.workflow_id),
            stream: wire.stream.unwrap_or(true),
            context: wire.context,
            client_turn_id: trimmed(wire.client_turn_id),
            messages: wire.messages,
        };
        request.check(limits)?;
        Ok(request)
    }

    fn check(&self, limits: &Limits) -> Result<(), Failure> {
        if self.client_turn_id.as_ref().is_some_and(|id| id.chars().count() > MAX_CLIENT_TURN_ID) {
            return Err(invalid("/clientTurnId", format!("it must have at most {MAX_CLIENT_TURN_ID} characters")));
        }
        if self.messages.is_empty() {
            return Err(invalid("/messages", "there must be at least one message"));
        }
        if self.messages.len() > limits.messages {
            return Err(too_large("/messages", format!("there must be at most {} messages", limits.messages)));
        }
        check_depth(self.context.as_ref(), "/context", limits)?;
        for (index, message) in self.messages.iter().enumerate() {
            check_depth(message.metadata.as_ref(), &format!("/messages/{index}/metadata"), limits)?;
        }
        self.check_answer(limits)
    }

    fn check_answer(&self, limits: &Limits) -> Result<(), Failure> {
        let Some(meta) = self.turn().and_then(parse_resume_meta) else { return Ok(()) };
        let path = |field: &str| format!("/messages/{}/metadata/resume/{field}", self.messages.len() - 1);
        if meta.selected.len() > limits.selected {
            return Err(too_large(path("selected"), format!("at most {} ids may be selected", limits.selected)));
        }
        let bytes = meta.value.map_or(0, |value| value.to_string().len());
        if bytes.max(meta.text.map_or(0, |text| text.len())) > limits.answer_bytes {
            return Err(too_large(path("value"), format!("an answer must have at most {} bytes", limits.answer_bytes)));
        }
        Ok(())
    }

    /// The message that is the turn: the last.
    pub fn turn(&self) -> Option<&ChatMessage> {
        self.messages.last()
    }

    /// The messages before it.
    pub fn history(&self) -> &[ChatMessage] {
        self.messages.split_last().map(|(_turn, history)| history).unwrap_or_default()
    }
}

#[cfg(feature = "schema")]
crate::schema::as_wire!(ChatRequest, Wire);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{FailureCode, RequestId, ResumeMeta, ResumeToken};

    fn read_with(body: &Value, limits: &Limits) -> Result<ChatRequest, Failure> {
        ChatRequest::from_slice(body.to_string().as_bytes(), limits)
    }

    fn refusal(body: &Value, limits: &Limits) -> (FailureCode, String) {
        let failure = read_with(body, limits).unwrap_err();
        (failure.code, failure.issues.unwrap()[0].path.clone())
    }

    fn hello() -> Value {
        json!({"role": "user", "content": "hello"})
    }

    #[test]
    fn a_request_is_read_with_all_that_it_has() {
        let body = json!({
            "sessionId": " s ", "workflowId": " w ", "clientTurnId": " t ", "stream": false, "context": {"tenant": 7},
            "messages": [hello(), {"role": "assistant", "content": "?"}, {"role": "user", "content": "!"}], "future": [1],
        });
        let request = read_with(&body, &Limits::default()).unwrap();
        assert_eq!(request.session_id.as_ref().unwrap().as_str(), "s");
        assert_eq!((request.workflow_id.as_deref(), request.client_turn_id.as_deref()), (Some("w"), Some("t")));
        assert!(!request.stream);
        assert_eq!(request.turn().unwrap().content, "!");
        assert_eq!(request.history().len(), 2);
        let again = ChatRequest::from_slice(&crate::json::to_vec(&request).unwrap(), &Limits::default()).unwrap();
        assert_eq!(again, request);
    }

    #[test]
    fn absent_null_and_blank_are_the_same() {
        let bare = read_with(&json!({"messages": [hello()]}), &Limits::default()).unwrap();
        assert_eq!(bare, ChatRequest::new([ChatMessage::user("hello")]));
        let body =
            json!({"sessionId": " ", "workflowId": null, "clientTurnId": "", "stream": null, "messages": [hello()]});
        assert_eq!(read_with(&body, &Limits::default()).unwrap(), bare);
    }

    #[test]
    fn a_malformed_request_is_refused_with_the_place() {
        for (body, path) in [
            (json!({"messages": []}), "/messages"),
            (json!({}), ""),
            (json!({"messages": [hello()], "context": []}), ""),
            (json!({"messages": [{"role": "user", "content": "x", "extra": 1}]}), ""),
            (json!({"messages": [hello()], "clientTurnId": "é".repeat(129)}), "/clientTurnId"),
            (json!({"messages": [hello()], "sessionId": "a\0"}), "/sessionId"),
            (json!({"messages": [hello()], "sessionId": "x".repeat(10_000)}), "/sessionId"),
        ] {
            assert_eq!(refusal(&body, &Limits::default()), (FailureCode::InvalidRequest, path.to_owned()));
        }
        let big = br#"{"messages":[{"role":"user","content":"x","metadata":{"n":[99999999999999999999]}}]}"#;
        let failure = ChatRequest::from_slice(big, &Limits::default()).unwrap_err();
        assert_eq!(failure.issues.unwrap()[0].path, "/messages/0/metadata/n/0");
    }

    #[test]
    fn what_is_over_a_limit_is_refused_with_the_place() {
        let small = Limits { body_bytes: 600, messages: 2, metadata_depth: 3, selected: 1, answer_bytes: 10, batch: 1 };
        let answer = |fields: &dyn Fn(&mut ResumeMeta)| {
            let mut meta = ResumeMeta::new(ResumeToken::parse("t").unwrap(), RequestId::new("r").unwrap());
            fields(&mut meta);
            json!({"messages": [ChatMessage::user("x").with_resume(&meta)]})
        };
        let turn = "/messages/0/metadata/resume";
        for (body, path) in [
            (json!({"messages": [{"role": "user", "content": "x".repeat(600)}]}), String::new()),
            (json!({"messages": [hello(), hello(), hello()]}), "/messages".to_owned()),
            (json!({"messages": [hello()], "context": {"a": {"b": {"c": {}}}}}), "/context".to_owned()),
            (
                json!({"messages": [hello(), {"role": "user", "content": "", "metadata": {"a": [[[]]]}}]}),
                "/messages/1/metadata".to_owned(),
            ),
            (answer(&|meta| meta.selected = vec!["a".to_owned(), "b".to_owned()]), format!("{turn}/selected")),
            (answer(&|meta| meta.value = Some(json!("123456789"))), format!("{turn}/value")),
            (answer(&|meta| meta.text = Some("12345678901".to_owned())), format!("{turn}/value")),
        ] {
            assert_eq!(refusal(&body, &small), (FailureCode::PayloadTooLarge, path));
        }
        assert!(read_with(&json!({"messages": [hello()], "context": {"a": {"b": {}}}}), &small).is_ok());
    }
}
