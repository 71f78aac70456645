//! What the application is told of a turn, for a transcript of its own.

use kortyx_protocol::{ChatMessage, Failure, RunId, SessionId};
use kortyx_store::RunStatus;
use serde_json::Value;

use super::turn::Turn;
use crate::{ResponseFinalized, TurnAccepted, driver::Sink};

impl Turn {
    /// Where what the run says goes.
    pub(super) fn sink(&self) -> Sink {
        Sink { chunks: self.chunks.clone(), transcript: self.transcript.clone() }
    }

    /// Tells the application that the turn was accepted.
    pub(super) async fn tell_accepted(
        &self,
        message: &ChatMessage,
        session_id: &SessionId,
        run_id: &RunId,
        is_answer: bool,
    ) {
        let _ = self.accepted.set((session_id.clone(), run_id.clone()));
        if !self.agent.hooks.hears_accepted() {
            return;
        }
        let accepted = TurnAccepted {
            session_id: session_id.clone(),
            run_id: run_id.clone(),
            client_turn_id: self.options.client_turn_id.clone(),
            actor: self.options.actor.clone(),
            message: without_token(message),
            is_answer,
        };
        self.agent.tell_accepted(accepted).await;
    }

    /// Tells the application what the response to an accepted turn said.
    pub(super) async fn tell_finalized(&self, status: RunStatus, data: &Value, failure: Option<Failure>) {
        let (Some(transcript), Some((session_id, run_id))) = (&self.transcript, self.accepted.get()) else { return };
        let said = transcript.take();
        let finalized = ResponseFinalized {
            session_id: session_id.clone(),
            run_id: run_id.clone(),
            client_turn_id: self.options.client_turn_id.clone(),
            text: said.text,
            structured: said.structured.into_vec(),
            is_truncated: said.is_truncated,
            interrupts: said.interrupts,
            status,
            data: data.clone(),
            failure,
        };
        self.agent.tell_finalized(finalized).await;
    }
}

fn without_token(message: &ChatMessage) -> ChatMessage {
    let mut message = message.clone();
    let resume = message.metadata.as_mut().and_then(|metadata| metadata.get_mut("resume"));
    if let Some(Value::Object(resume)) = resume {
        resume.remove("token");
    }
    message
}
