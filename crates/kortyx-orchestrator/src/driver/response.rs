//! A response that is complete while its run goes on.

use std::{collections::BTreeMap, sync::Arc};

use kortyx_protocol::{CheckpointId, RawJson, StreamChunk};
use kortyx_runtime::CompletedResponse;

use super::{Live, Stand, State, pin};
use crate::{error::chain, telemetry::Fact};

/// What a response ended with.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    /// The node that completed it.
    pub(crate) node: Arc<str>,
    /// The last message.
    pub(crate) message: Option<String>,
    /// All that it said, that message included; only for a client that did not read along.
    pub(crate) text: Option<String>,
    pub(crate) data: RawJson,
    /// The workflow that the run was in.
    pub(crate) workflow: Arc<str>,
    /// Questions may have been open then.
    pub(crate) has_asked: bool,
    /// The checkpoint that keeps the turn.
    checkpoint: Option<CheckpointId>,
}

/// The message that a response ends with.
pub(super) fn last_message(completed: &CompletedResponse) -> Option<StreamChunk> {
    let node = Some(completed.node.clone());
    completed.message.clone().map(|content| StreamChunk::Message { content, node })
}

impl Live {
    /// The response is complete, and storage knows: the conversation keeps the turn, whoever waits is told, and from here on
    /// nobody reads.
    pub(super) async fn respond(&self, mut completed: CompletedResponse) {
        let checkpoint = self.keep_turn(&mut completed).await;
        let CompletedResponse { node, message, data, workflow, .. } = completed;
        if let Some(message) = &message {
            self.hear(&StreamChunk::message(message.clone()));
        }
        let pin = pin(&workflow);
        let response = Response {
            node,
            message,
            text: self.said(),
            data,
            workflow: pin.id.clone(),
            has_asked: self.has_published(),
            checkpoint,
        };
        self.reader.complete(response.clone());
        if let Some(tell) = self.reader.take_waiter() {
            tell(self.stand_at(response));
        }
        self.ended.notify_waiters();
    }

    /// Where the run stood when this driver completed its response.
    pub(crate) fn responded(&self) -> Option<Stand> {
        self.reader.response().map(|response| self.stand_at(response))
    }

    fn stand_at(&self, response: Response) -> Stand {
        let (run_id, session_id) = (self.run.run_id.clone(), self.run.session_id.clone());
        let (workflow, checkpoint) = (response.workflow.clone(), response.checkpoint.clone());
        Stand { run_id, session_id, workflow, checkpoint, state: State::Responded(Box::new(response), Vec::new()) }
    }

    /// Appends the checkpoint that the turn of a completed response leaves behind: the run's data, with that of the response.
    /// What storage refuses here is lost to the conversation, not to the run.
    async fn keep_turn(&self, completed: &mut CompletedResponse) -> Option<CheckpointId> {
        let mut turn = completed.turn.take()?;
        match completed.data.decode::<BTreeMap<String, RawJson>>() {
            Ok(data) => turn.data.extend(data),
            Err(error) => tracing::warn!(run_id = %self.run.run_id, %error, "the data of a response is no object"),
        }
        let session_id = self.run.session_id.clone();
        let kept = match self.checkpoint(&pin(&completed.workflow), turn) {
            Ok(checkpoint) => self.agent.store.append_checkpoint(&session_id, checkpoint).await,
            Err(error) => Err(error),
        };
        match kept {
            Ok(record) => {
                let (checkpoint_id, run_id) = (record.checkpoint.id, self.run.run_id.clone());
                let told = checkpoint_id.clone();
                let fact = || Fact::SessionCheckpointed { session_id, checkpoint_id: told, run_id };
                self.agent.telemetry.record(fact);
                Some(checkpoint_id)
            }
            Err(error) => {
                let (run_id, error) = (&self.run.run_id, chain(&error));
                tracing::error!(%run_id, error, "the checkpoint of a completed response was not stored");
                None
            }
        }
    }

    /// Whether the response is complete, by this driver or before.
    pub(crate) fn is_response_completed(&self) -> bool {
        self.reader.is_complete()
    }
}
