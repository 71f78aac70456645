//! A response that is complete while its run goes on.

use std::{collections::BTreeMap, sync::Arc};

use kortyx_protocol::{CheckpointId, Failure, RawJson, StreamChunk, Usage};
use kortyx_runtime::CompletedResponse;
use kortyx_store::{NewCheckpoint, NewResponse, StoreError, StoreErrorKind};
use serde::{Deserialize, Serialize};

use super::{Live, Stand, State, outcome::corrupt, pin};
use crate::telemetry::Fact;

/// The version of [`Response`] as storage keeps it. One with a higher version is refused.
const VERSION: u32 = 1;

/// What a response ended with, as its run's driver knows it and as storage keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Response {
    v: u32,
    /// The node that completed it.
    pub(crate) node: Arc<str>,
    /// The last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// All that it said, that message included; only for a client that did not read along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    pub(crate) data: RawJson,
    /// The workflow that the run was in.
    pub(crate) workflow: Arc<str>,
    /// Questions may have been open then.
    pub(crate) has_asked: bool,
    /// The checkpoint that keeps the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checkpoint: Option<CheckpointId>,
    /// The highest number of an answer that the run had received then: this is the response to answers up to it.
    answers_seen: u64,
    /// The tokens that the run had used by then, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
}

impl Response {
    /// What storage keeps of a response. That of a newer release is refused, not guessed at.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Failure> {
        #[derive(Deserialize)]
        struct Version {
            v: u32,
        }
        let unreadable = |error: serde_json::Error| corrupt(&format!("a response does not read: {error}"));
        let Version { v } = serde_json::from_slice(bytes).map_err(unreadable)?;
        if v > VERSION {
            return Err(corrupt(&format!("a response was stored by a newer release (version {v})")));
        }
        serde_json::from_slice(bytes).map_err(unreadable)
    }

    /// Whether it is what a caller gets who has waited since the run began (`None`), or since the answer with this number.
    pub(crate) fn is_due(&self, answered: Option<u64>) -> bool {
        answered.is_none_or(|number| number <= self.answers_seen)
    }
}

/// The message that a response ends with.
pub(super) fn last_message(completed: &CompletedResponse) -> Option<StreamChunk> {
    let node = Some(completed.node.clone());
    completed.message.clone().map(|content| StreamChunk::Message { content, node })
}

impl Live {
    /// What storage is to keep of a response that is complete now.
    pub(super) fn responding(
        &self,
        mut completed: CompletedResponse,
        answers_seen: u64,
        is_publishing: bool,
    ) -> Result<(Response, NewResponse), StoreError> {
        let checkpoint = self.kept_turn(&mut completed)?;
        let CompletedResponse { node, message, data, workflow, usage, .. } = completed;
        if let Some(message) = &message {
            self.hear(&StreamChunk::message(message.clone()));
        }
        let response = Response {
            v: VERSION,
            node,
            message,
            text: self.said(),
            data,
            workflow: workflow.id,
            has_asked: is_publishing || self.has_published(),
            checkpoint: checkpoint.as_ref().map(|checkpoint| checkpoint.id.clone()),
            answers_seen,
            usage,
        };
        let outcome = serde_json::to_vec(&response).map_err(|error| {
            StoreError::new(StoreErrorKind::InvalidRequest, "record", "the response does not serialize")
                .with_source(error)
        })?;
        Ok((response, NewResponse { outcome: outcome.into(), checkpoint }))
    }

    /// The checkpoint that the turn of a response leaves behind: the run's data, with that of the response.
    fn kept_turn(&self, completed: &mut CompletedResponse) -> Result<Option<NewCheckpoint>, StoreError> {
        let Some(mut turn) = completed.turn.take() else { return Ok(None) };
        match completed.data.decode::<BTreeMap<String, RawJson>>() {
            Ok(data) => turn.data.extend(data),
            Err(error) => tracing::warn!(run_id = %self.run.run_id, %error, "the data of a response is no object"),
        }
        self.checkpoint(&pin(&completed.workflow), turn).map(Some)
    }

    /// The response is complete, and storage knows: whoever waits is told, and from here on nobody reads.
    pub(super) fn respond(&self, response: Response) {
        if let Some(checkpoint_id) = response.checkpoint.clone() {
            self.tell_fact(|about| Fact::SessionCheckpointed { about, checkpoint_id });
        }
        let usage = response.usage;
        self.tell_fact(|about| Fact::RunResponded { about, usage });
        self.reader.complete(response.clone());
        if let Some(tell) = self.reader.take_waiter() {
            tell(self.stand_at(response));
        }
        self.ended.notify_waiters();
    }

    /// Where the run stood when this driver completed its response, for a caller who has waited since it began or since the
    /// answer with this number.
    pub(crate) fn responded(&self, answered: Option<u64>) -> Option<Stand> {
        let response = self.reader.response().filter(|response| response.is_due(answered));
        response.map(|response| self.stand_at(response))
    }

    fn stand_at(&self, response: Response) -> Stand {
        Stand::at(self.run.run_id.clone(), self.run.session_id.clone(), response)
    }
}

impl Stand {
    /// Where a run stood when its response was complete, without its questions.
    pub(crate) fn at(
        run_id: kortyx_protocol::RunId,
        session_id: kortyx_protocol::SessionId,
        response: Response,
    ) -> Self {
        let (workflow, checkpoint) = (response.workflow.clone(), response.checkpoint.clone());
        let (usage, state) = (response.usage, State::Responded(Box::new(response), Vec::new()));
        Self { run_id, session_id, workflow, checkpoint, usage, state }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_reads_as_it_was_stored() {
        let response = Response {
            v: VERSION,
            node: "take".into(),
            message: Some("Thanks.".to_owned()),
            text: None,
            data: RawJson::parse(r#"{"n":18446744073709551615}"#).unwrap(),
            workflow: "order".into(),
            has_asked: true,
            checkpoint: None,
            answers_seen: 3,
            usage: None,
        };
        let text = serde_json::to_string(&response).unwrap();
        let expected = r#"{"v":1,"node":"take","message":"Thanks.","data":{"n":18446744073709551615},"workflow":"order","hasAsked":true,"answersSeen":3}"#;
        assert_eq!(text, expected);
        let read = Response::read(text.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), expected);
        assert!(read.is_due(None) && read.is_due(Some(3)) && !read.is_due(Some(4)));
    }

    #[test]
    fn a_response_of_a_newer_release_is_refused_whatever_its_form() {
        for text in [r#"{"v":2}"#, r#"{"v":2,"data":[]}"#, "{", "{}"] {
            assert!(Response::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
