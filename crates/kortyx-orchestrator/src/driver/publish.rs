//! What goes between the engine and storage: questions out, answers in.

use std::time::Duration;

use bytes::Bytes;
use kortyx_contracts::Question;
use kortyx_protocol::{JsonError, RequestId, ResumeResponse, ResumeToken, json};
use kortyx_runtime::{DeliveredAnswer, OpenQuestion, workflow::DefinitionPin};
use kortyx_store::{AnswerRecord, AskKey, NewInterrupt, Placement, StoreError, StoreErrorKind, WorkflowPin};

use crate::host::random;

const OPERATION: &str = "publish";

/// Questions with fresh ids and secrets: as storage takes them, and as they are.
pub(super) type Minted = (Vec<NewInterrupt>, Vec<(RequestId, Question)>);

/// Mints for questions of a session that lives at this place, if its store says so.
pub(super) fn minted(
    questions: &[OpenQuestion],
    ttl: Duration,
    placement: Option<Placement>,
    after_response_completed: bool,
) -> Result<Minted, StoreError> {
    let mut minted = (Vec::with_capacity(questions.len()), Vec::with_capacity(questions.len()));
    for open in questions {
        let (new, question) = mint(open, ttl, placement)?;
        let new = NewInterrupt { after_response_completed, ..new };
        minted.1.push((new.request_id.clone(), question));
        minted.0.push(new);
    }
    Ok(minted)
}

fn mint(
    open: &OpenQuestion,
    ttl: Duration,
    placement: Option<Placement>,
) -> Result<(NewInterrupt, Question), StoreError> {
    let (request_id, token) = minted_request(placement)
        .map_err(|error| StoreError::new(StoreErrorKind::Backend, OPERATION, "no random bytes").with_source(error))?;
    let question = open.question.clone().with_id(open.id());
    let default = question.default_response().map(json::canonical).transpose().map_err(|error| malformed(&error))?;
    let new = NewInterrupt {
        request_id,
        token,
        ask: AskKey(open.ask.clone()),
        workflow: open.workflow.clone(),
        node: open.node.clone(),
        question: question.to_vec().map_err(|error| malformed(&error))?.into(),
        expires_in: question.expires_in().unwrap_or(ttl),
        default: default.map(Bytes::from),
        optional_cancel: question.optional_cancel(),
        after_response_completed: false,
    };
    Ok((new, question))
}

/// A fresh id with its secret.
pub(crate) fn minted_request(placement: Option<Placement>) -> Result<(RequestId, ResumeToken), getrandom::Error> {
    let bytes: [u8; 48] = random()?;
    let (mut request, mut secret) = ([0; 16], [0; 32]);
    let (first, second) = bytes.split_at(request.len());
    request.copy_from_slice(first);
    secret.copy_from_slice(second);
    let request = placement.map_or(request, |placement| placement.mark(request));
    Ok((RequestId::from_random(request), ResumeToken::mint(request, secret)))
}

fn malformed(error: &JsonError) -> StoreError {
    StoreError::new(StoreErrorKind::InvalidRequest, OPERATION, format!("the question is not JSON: {error}"))
}

/// Answers as the engine takes them.
pub(crate) fn delivered(answers: &[AnswerRecord]) -> Result<Vec<DeliveredAnswer>, StoreError> {
    answers.iter().map(deliver).collect()
}

fn deliver(answer: &AnswerRecord) -> Result<DeliveredAnswer, StoreError> {
    let response: ResumeResponse = json::from_slice(&answer.answer).map_err(|error| {
        let message = format!("the answer to {} does not read: {error}", answer.request_id);
        StoreError::new(StoreErrorKind::Corrupt, "deliver", message)
    })?;
    Ok(DeliveredAnswer { seq: answer.seq, ask: answer.ask.0.clone(), response })
}

/// A definition's pin as storage keeps it.
pub(crate) fn pin(pin: &DefinitionPin) -> WorkflowPin {
    WorkflowPin { id: pin.id.clone(), version: pin.version.clone(), fingerprint: pin.fingerprint.clone() }
}
