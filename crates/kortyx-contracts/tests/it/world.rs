//! What the tests share: short ways to ask, store and answer.

use kortyx_contracts::{Ask, Question};
use kortyx_protocol::{Issue, RequestId, ResumeMeta, ResumeResponse, ResumeToken};
use serde_json::Value;

/// The question as another process reads it.
pub(crate) fn stored(ask: &impl Ask) -> Question {
    let question = ask.question().expect("the question can be asked");
    let read = Question::from_slice(&question.to_vec().expect("it can be stored")).expect("it can be read");
    assert_eq!(read, question, "storing loses nothing");
    read
}

pub(crate) fn select(ids: &[&str]) -> ResumeResponse {
    ResumeResponse::Select { ids: ids.iter().map(|&id| id.to_owned()).collect() }
}

pub(crate) fn text(text: &str) -> ResumeResponse {
    ResumeResponse::Text { text: text.to_owned() }
}

pub(crate) fn value(value: Value) -> ResumeResponse {
    ResumeResponse::Value { value }
}

/// The path and code of each issue.
pub(crate) fn faults(judged: Result<(), Vec<Issue>>) -> Vec<(String, String)> {
    judged.err().unwrap_or_default().into_iter().map(|issue| (issue.path, issue.code)).collect()
}

/// One issue at this path with this code.
pub(crate) fn fault(path: &str, code: &str) -> Vec<(String, String)> {
    vec![(path.to_owned(), code.to_owned())]
}

/// Resume metadata that answers nothing.
pub(crate) fn silent_meta() -> ResumeMeta {
    ResumeMeta {
        token: ResumeToken::parse("token").expect("a token"),
        request_id: RequestId::new("human-1").expect("an id"),
        selected: Vec::new(),
        text: None,
        value: None,
        cancel: false,
    }
}
