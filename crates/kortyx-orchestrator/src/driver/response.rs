//! A response that is complete while its run goes on.

use std::sync::Arc;

use kortyx_protocol::{RawJson, StreamChunk};
use kortyx_runtime::CompletedResponse;

use super::{Live, Stand, State, pin};

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
}

impl Live {
    /// The response is complete, and storage knows: whoever waits is told, and from here on nobody reads.
    pub(super) fn respond(&self, completed: CompletedResponse) {
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
        };
        self.reader.complete(response.clone());
        if let Some(tell) = self.reader.take_waiter() {
            tell(self.stand(&pin, State::Responded(Box::new(response), Vec::new())));
        }
        self.ended.notify_waiters();
    }

    /// Where the run stood when this driver completed its response.
    pub(crate) fn responded(&self) -> Option<Stand> {
        let response = self.reader.response()?;
        let (run_id, session_id) = (self.run.run_id.clone(), self.run.session_id.clone());
        let workflow = response.workflow.clone();
        Some(Stand { run_id, session_id, workflow, state: State::Responded(Box::new(response), Vec::new()) })
    }

    /// Whether the response is complete, by this driver or before.
    pub(crate) fn is_response_completed(&self) -> bool {
        self.reader.is_complete()
    }
}
