//! Requests to execute a workflow and to answer its questions.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use crate::{
    Failure, Limits, RawJson, RequestId, ResumeHandle, ResumeResponse, SessionId,
    request::{check_depth, invalid, read, session_id, too_large, trimmed},
};

/// A request to execute a workflow. Read it with [`from_slice`](Self::from_slice).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecuteRequest {
    /// The workflow.
    pub workflow: String,
    /// Its version; the latest when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The workflow's input.
    pub input: RawJson,
    /// The session; minted when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// What the client adds for the workflow; what the host sets wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ExecuteRequest"))]
#[serde(rename_all = "camelCase")]
struct ExecuteWire {
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"\S")))]
    workflow: String,
    version: Option<String>,
    input: RawJson,
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::schema::OptionalId>"))]
    session_id: Option<String>,
    context: Option<Map<String, Value>>,
}

impl ExecuteRequest {
    /// A request without version, session and context.
    pub fn new(workflow: impl Into<String>, input: RawJson) -> Self {
        Self { workflow: workflow.into(), version: None, input, session_id: None, context: None }
    }

    /// Reads a request's body. Fails with `INVALID_REQUEST` or `PAYLOAD_TOO_LARGE`, naming the place.
    ///
    /// ```
    /// use kortyx_protocol::{ExecuteRequest, Limits};
    ///
    /// let request = ExecuteRequest::from_slice(br#"{"workflow":"review","input":{"pages":3}}"#, &Limits::default())?;
    /// assert_eq!(request.input.get(), r#"{"pages":3}"#);
    /// # Ok::<(), kortyx_protocol::Failure>(())
    /// ```
    pub fn from_slice(body: &[u8], limits: &Limits) -> Result<Self, Failure> {
        let wire: ExecuteWire = read(body, limits)?;
        check_depth(wire.context.as_ref(), "/context", limits)?;
        Ok(Self {
            workflow: trimmed(Some(wire.workflow)).ok_or_else(|| invalid("/workflow", "it must not be blank"))?,
            version: trimmed(wire.version),
            input: wire.input,
            session_id: session_id(wire.session_id)?,
            context: wire.context,
        })
    }
}

/// A request to answer one question, or several of one run. Read it with [`from_slice`](Self::from_slice).
#[derive(Debug, Clone)]
pub struct ResumeRequest {
    /// The workflow, when the client names it: then it must be the question's.
    pub workflow: Option<String>,
    /// The question and the right to answer it; of a batch, any question of the run.
    pub resume: ResumeHandle,
    /// What is answered.
    pub answers: ResumeAnswers,
}

/// One answer or several.
#[derive(Debug, Clone, PartialEq)]
pub enum ResumeAnswers {
    /// The answer to the handle's question.
    One(ResumeResponse),
    /// Answers to questions of the handle's run, all or none; at least one, no question twice.
    Batch(Vec<BatchAnswer>),
}

/// One answer of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BatchAnswer {
    /// The question.
    pub request_id: RequestId,
    /// The answer.
    pub response: ResumeResponse,
}

#[derive(Deserialize)]
struct ResumeWire {
    workflow: Option<String>,
    resume: ResumeHandle,
    response: Option<ResumeResponse>,
    responses: Option<Vec<BatchAnswer>>,
}

impl ResumeRequest {
    /// The answer to one question.
    pub fn one(resume: ResumeHandle, response: ResumeResponse) -> Self {
        Self { workflow: None, resume, answers: ResumeAnswers::One(response) }
    }

    /// Reads a request's body. Fails with `INVALID_REQUEST` or `PAYLOAD_TOO_LARGE`, naming the place.
    ///
    /// Exactly one of `response` and `responses` must be there; a batch must hold at least one answer and no question twice.
    pub fn from_slice(body: &[u8], limits: &Limits) -> Result<Self, Failure> {
        let wire: ResumeWire = read(body, limits)?;
        let answers = match (wire.response, wire.responses) {
            (Some(response), None) => {
                check_answer(&response, "/response", limits)?;
                ResumeAnswers::One(response)
            }
            (None, Some(batch)) => {
                check_batch(&batch, limits)?;
                ResumeAnswers::Batch(batch)
            }
            (Some(_), Some(_)) => return Err(invalid("/responses", "send either response or responses, not both")),
            (None, None) => return Err(invalid("/response", "send response, or responses for several questions")),
        };
        Ok(Self { workflow: trimmed(wire.workflow), resume: wire.resume, answers })
    }
}

fn check_batch(batch: &[BatchAnswer], limits: &Limits) -> Result<(), Failure> {
    if batch.is_empty() {
        return Err(invalid("/responses", "there must be at least one answer"));
    }
    if batch.len() > limits.batch {
        return Err(too_large("/responses", format!("there must be at most {} answers", limits.batch)));
    }
    let mut seen = BTreeSet::new();
    for (index, answer) in batch.iter().enumerate() {
        if !seen.insert(&answer.request_id) {
            return Err(invalid(format!("/responses/{index}/requestId"), "it is answered twice"));
        }
        check_answer(&answer.response, &format!("/responses/{index}/response"), limits)?;
    }
    Ok(())
}

pub(crate) fn check_answer(response: &ResumeResponse, path: &str, limits: &Limits) -> Result<(), Failure> {
    let bytes = match response {
        ResumeResponse::Text { text } => text.len(),
        ResumeResponse::Value { value } => value.to_string().len(),
        ResumeResponse::Select { ids } if ids.len() > limits.selected => {
            return Err(too_large(format!("{path}/ids"), format!("at most {} ids may be selected", limits.selected)));
        }
        ResumeResponse::Select { ids } => ids.iter().map(String::len).sum(),
        ResumeResponse::Cancel => 0,
    };
    if bytes > limits.answer_bytes {
        return Err(too_large(path, format!("an answer must have at most {} bytes", limits.answer_bytes)));
    }
    Ok(())
}

impl Serialize for ResumeRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(workflow) = &self.workflow {
            map.serialize_entry("workflow", workflow)?;
        }
        map.serialize_entry("resume", &self.resume)?;
        match &self.answers {
            ResumeAnswers::One(response) => map.serialize_entry("response", response)?,
            ResumeAnswers::Batch(batch) => map.serialize_entry("responses", batch)?,
        }
        map.end()
    }
}

#[cfg(feature = "schema")]
crate::schema::as_wire!(ExecuteRequest, ExecuteWire);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{FailureCode, RunId, json as exact};

    fn handle() -> Value {
        json!({"token": "t", "requestId": "human-1", "sessionId": "s", "runId": "run-1"})
    }

    fn resume(fields: &Value, limits: &Limits) -> Result<ResumeRequest, Failure> {
        let mut body = json!({"resume": handle()});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        ResumeRequest::from_slice(body.to_string().as_bytes(), limits)
    }

    fn place(failure: Failure) -> (FailureCode, String) {
        (failure.code, failure.issues.unwrap()[0].path.clone())
    }

    #[test]
    fn an_execution_is_read_with_its_input_verbatim() {
        let body = br#"{"workflow":" review ","version":"","input":{"b":1.50,"a":18446744073709551615},"sessionId":"s","context":{"t":1},"x":0}"#;
        let request = ExecuteRequest::from_slice(body, &Limits::default()).unwrap();
        assert_eq!((request.workflow.as_str(), request.version.as_deref()), ("review", None));
        assert_eq!(request.input.get(), r#"{"b":1.50,"a":18446744073709551615}"#);
        let again = ExecuteRequest::from_slice(&exact::to_vec(&request).unwrap(), &Limits::default()).unwrap();
        assert_eq!(again, request);
    }

    #[test]
    fn a_malformed_execution_is_refused_with_the_place() {
        for (body, path) in [
            (r#"{"workflow":" ","input":1}"#, "/workflow"),
            (r#"{"workflow":"w"}"#, ""),
            (r#"{"input":1}"#, ""),
            (r#"{"workflow":"w","input":[18446744073709551616]}"#, "/input/0"),
            (r#"{"workflow":"w","input":1,"sessionId":"a\u0000"}"#, "/sessionId"),
            ("not json", ""),
        ] {
            let failure = ExecuteRequest::from_slice(body.as_bytes(), &Limits::default()).unwrap_err();
            assert_eq!(place(failure), (FailureCode::InvalidRequest, path.to_owned()), "{body}");
        }
        let shallow = Limits { metadata_depth: 1, ..Limits::default() };
        let failure = ExecuteRequest::from_slice(br#"{"workflow":"w","input":1,"context":{"a":[]}}"#, &shallow);
        assert_eq!(place(failure.unwrap_err()), (FailureCode::PayloadTooLarge, "/context".to_owned()));
    }

    #[test]
    fn one_answer_and_a_batch_are_read() {
        let one = resume(&json!({"response": {"type": "cancel"}, "workflow": "w"}), &Limits::default()).unwrap();
        assert_eq!(one.answers, ResumeAnswers::One(ResumeResponse::Cancel));
        assert_eq!(one.resume.run_id, RunId::new("run-1").unwrap());
        let answer = |id: &str| json!({"requestId": id, "response": {"type": "text", "text": "x"}});
        let batch = resume(&json!({"responses": [answer("a"), answer("b")]}), &Limits::default()).unwrap();
        assert!(matches!(&batch.answers, ResumeAnswers::Batch(answers) if answers.len() == 2));
        for request in [one, batch] {
            let again = ResumeRequest::from_slice(&exact::to_vec(&request).unwrap(), &Limits::default()).unwrap();
            assert_eq!(again.answers, request.answers);
            assert_eq!(again.workflow, request.workflow);
        }
    }

    #[test]
    fn a_malformed_answer_is_refused_with_the_place() {
        let text = json!({"type": "text", "text": "12345678901"});
        let answer = |id: &str, response: &Value| json!({"requestId": id, "response": response});
        let small = Limits { answer_bytes: 10, selected: 1, batch: 2, ..Limits::default() };
        let cancel = json!({"type": "cancel"});
        for (fields, code, path) in [
            (json!({}), FailureCode::InvalidRequest, "/response"),
            (
                json!({"response": cancel, "responses": [answer("a", &cancel)]}),
                FailureCode::InvalidRequest,
                "/responses",
            ),
            (json!({"responses": []}), FailureCode::InvalidRequest, "/responses"),
            (
                json!({"responses": [answer("a", &cancel), answer("a", &cancel)]}),
                FailureCode::InvalidRequest,
                "/responses/1/requestId",
            ),
            (json!({"response": "yes"}), FailureCode::InvalidRequest, ""),
            (json!({"response": text}), FailureCode::PayloadTooLarge, "/response"),
            (json!({"responses": [answer("a", &text)]}), FailureCode::PayloadTooLarge, "/responses/0/response"),
            (json!({"response": {"type": "select", "ids": ["a", "b"]}}), FailureCode::PayloadTooLarge, "/response/ids"),
            (
                json!({"responses": [answer("a", &cancel), answer("b", &cancel), answer("c", &cancel)]}),
                FailureCode::PayloadTooLarge,
                "/responses",
            ),
        ] {
            assert_eq!(place(resume(&fields, &small).unwrap_err()), (code, path.to_owned()), "{fields}");
        }
    }
}
