//! One turn, from its message to `done`.

use std::sync::{Arc, OnceLock};

use kortyx_protocol::{ChatMessage, CheckpointId, DoneData, Failure, RawJson, RunId, SessionId, StreamChunk};
use kortyx_runtime::Start;
use kortyx_store::{InterruptRecord, RunStatus};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::{ChatInput, ChatOptions, Transcript, begun::Begun, plan::Plan};
use crate::{
    Answer, Interrupt, OnDisconnect, OrchestratorError, RefusalReason,
    agent::Inner,
    answer::Next,
    driver::{OpenInterrupt, Stand, State},
    error::chain,
    execute::new_session,
    present,
};

/// A turn under way.
pub(super) struct Turn {
    pub(super) agent: Arc<Inner>,
    pub(super) chunks: mpsc::Sender<StreamChunk>,
    pub(super) options: ChatOptions,
    begun: Begun,
    /// What the client was told, when a hook wants to know.
    pub(super) transcript: Option<Arc<Transcript>>,
    /// The session and the run of a turn that was accepted.
    pub(super) accepted: OnceLock<(SessionId, RunId)>,
}

impl Turn {
    pub(super) fn new(
        agent: Arc<Inner>,
        chunks: mpsc::Sender<StreamChunk>,
        options: ChatOptions,
        begun: Begun,
    ) -> Self {
        let transcript = agent.hooks.hears_finalized().then(Arc::default);
        Self { agent, chunks, options, begun, transcript, accepted: OnceLock::new() }
    }

    pub(super) async fn play(self, messages: Vec<ChatMessage>) {
        let played = self.try_play(messages).await;
        if let Err(error) = played.or_else(|error| self.begun.refuse(error)) {
            let failure = Failure::from(error);
            self.send(StreamChunk::error(failure.clone())).await;
            self.tell_finalized(RunStatus::Running, &Value::Null, Some(failure)).await;
            self.send(StreamChunk::done(None)).await;
        }
    }

    async fn try_play(&self, messages: Vec<ChatMessage>) -> Result<(), OrchestratorError> {
        let wanted = self.options.session_id.as_ref().or(self.options.scope.session_id.as_ref());
        let plan = match messages.last() {
            Some(message) if !self.agent.stopping.is_cancelled() => {
                self.agent.plan(message, wanted, &self.options.scope).await
            }
            Some(_) => Err(OrchestratorError::ShuttingDown),
            None => Err(OrchestratorError::InvalidRequest("there is no message".to_owned())),
        };
        let asked = match &plan {
            Ok(Plan::Answer(record, _) | Plan::Refused(record, _)) => Some(&record.session_id),
            _ => None,
        };
        let session_id = wanted.or(asked).cloned().map_or_else(new_session, Ok)?;
        self.send(StreamChunk::session(session_id.clone())).await;
        let plan = plan?;
        if let Plan::Refused(record, _) = &plan {
            self.begun.tell(&record.run_id);
        }
        match plan {
            Plan::Fresh => self.start(messages, session_id).await,
            Plan::Answer(record, answer) => self.answer(answer, &record.run_id, messages, session_id).await,
            Plan::Refused(record, error)
                if error.is_refused_as(|reason| matches!(reason, RefusalReason::Invalid(_))) =>
            {
                self.send(StreamChunk::error(error.into())).await;
                let open = self.agent.open_interrupts(&record.run_id).await?;
                let of_turn = open.into_iter().filter(|other| is_shown(other, record.after_response_completed));
                self.ask(of_turn.map(Into::into)).await?;
                self.send(StreamChunk::done(None)).await;
                Ok(())
            }
            Plan::Refused(_, error) => Err(error),
        }
    }

    async fn answer(
        &self,
        mut answer: Answer,
        asked: &RunId,
        messages: Vec<ChatMessage>,
        session_id: SessionId,
    ) -> Result<(), OrchestratorError> {
        if let Some(actor) = &self.options.actor {
            answer = answer.by(actor.clone());
        }
        let accepted = match self.agent.accept(vec![answer]).await {
            Err(error) if error.is_refused_as(is_late) => return self.start(messages, session_id).await,
            accepted => {
                self.begun.tell(asked);
                accepted?
            }
        };
        let is_seen = matches!(accepted.next, Next::Drive(_));
        let (is_repeat, is_after) = (matches!(accepted.next, Next::Repeated(_)), accepted.is_after_response);
        if !is_repeat && let Some(message) = messages.last() {
            self.tell_accepted(message, &accepted.session_id, &accepted.run_id, true).await;
        }
        let mut stand = self.agent.follow(accepted, Some(self.sink())).await?;
        if let State::Suspended(open) = &mut stand.state
            && is_repeat
        {
            open.retain(|other| is_shown(&other.record, is_after));
        }
        self.close(stand, is_seen).await
    }

    async fn start(&self, mut messages: Vec<ChatMessage>, session_id: SessionId) -> Result<(), OrchestratorError> {
        let context = self.context();
        let (definition, state, follows) = self.begin_from(&session_id, &context).await?;
        let message = messages.pop().unwrap_or_else(|| ChatMessage::user(""));
        let input = RawJson::of(&ChatInput { input: message.content.clone() })
            .map_err(|error| present::not_json("the message", &error))?;
        let run = self.agent.new_run(Some(session_id.clone()))?;
        let run_id = run.run_id.clone();
        let mut start = Start::new(run, definition, input);
        start.history = messages;
        (start.data, start.workflow_state) = (state.data, state.workflow_state);
        start.tracked = true;
        start.limits = self.options.limits.clone();
        let job = self.agent.begin_with(start, &context, follows, Some(self.sink()))?;
        self.begun.tell(&run_id);
        self.tell_accepted(&message, &session_id, &run_id, false).await;
        let started = self.agent.spawn(job, None);
        let live = started.live.clone();
        let on_disconnect = self.options.on_disconnect.unwrap_or(self.agent.settings.on_disconnect);
        let mut settled = std::pin::pin!(self.agent.settled(started, &run_id, None));
        let stand = tokio::select! {
            stand = &mut settled => stand,
            () = self.chunks.closed(), if on_disconnect == OnDisconnect::Cancel => {
                live.abandon();
                settled.await
            }
        };
        self.close(stand?, true).await
    }

    /// Says where the run stands. `is_seen`: the client has received what the run said.
    async fn close(&self, stand: Stand, is_seen: bool) -> Result<(), OrchestratorError> {
        let Stand { run_id, session_id, workflow, checkpoint, state, .. } = stand;
        let (mut data, mut failure, mut is_asking) = (Value::Object(Map::new()), None, false);
        let status = match state {
            State::Suspended(open) => {
                is_asking = self.ask(open).await?;
                RunStatus::Suspended
            }
            State::Responded(response, open) => {
                let said = if is_seen { response.message } else { response.text };
                if let Some(content) = said {
                    self.send(StreamChunk::Message { content, node: Some(response.node) }).await;
                }
                is_asking = self.ask(open).await?;
                match response.data.to_value() {
                    Ok(value) => data = value,
                    Err(error) => failure = Some(present::undecodable(&workflow, &error)),
                }
                RunStatus::Running
            }
            State::Completed(end) => {
                if let Some(text) = end.text.filter(|_| !is_seen) {
                    self.send(StreamChunk::message(text)).await;
                }
                match end.data.to_value() {
                    Ok(value) => data = value,
                    Err(error) => failure = Some(present::undecodable(&workflow, &error)),
                }
                RunStatus::Completed
            }
            State::Cancelled(reason) => {
                self.send(StreamChunk::Cancelled { reason }).await;
                RunStatus::Cancelled
            }
            State::Failed(error) => {
                failure = Some(error);
                RunStatus::Failed
            }
            State::Expired => {
                failure = Some(present::expired());
                RunStatus::Expired
            }
            State::SetAside(error) => {
                failure = Some(error);
                RunStatus::Parked
            }
            State::Interrupted(error) => return Err(error),
            State::Elsewhere => return Err(OrchestratorError::StillRunning(run_id)),
        };
        if let Some(failure) = &failure {
            self.send(StreamChunk::error(failure.clone())).await;
        } else if matches!(status, RunStatus::Suspended | RunStatus::Completed | RunStatus::Running) {
            self.tell_checkpoint(checkpoint, &session_id, &run_id).await;
        }
        self.tell_finalized(status, &data, failure).await;
        self.send(StreamChunk::done(Some(DoneData {
            run_id,
            status: status.as_str().to_owned(),
            current_workflow: workflow.to_string(),
            awaiting_human_input: is_asking,
            data,
        })))
        .await;
        Ok(())
    }

    /// Tells of the checkpoint that keeps the turn. Of a run that somebody else drove it is the session's newest.
    async fn tell_checkpoint(&self, checkpoint: Option<CheckpointId>, session_id: &SessionId, run_id: &RunId) {
        let found = match &checkpoint {
            Some(id) => self.agent.store.checkpoint(id).await,
            None => self.agent.head_of_run(session_id, run_id).await,
        };
        match found {
            Ok(Some(record)) => {
                let (id, session_id) = (record.checkpoint.id, record.session_id);
                let (turn_index, label) = (record.turn_index, record.checkpoint.label);
                self.send(StreamChunk::Checkpoint { id, session_id, turn_index, label }).await;
            }
            Ok(None) => {}
            // The turn itself is durable.
            Err(error) => tracing::warn!(%run_id, error = chain(&error), "a turn's checkpoint could not be read"),
        }
    }

    /// Puts questions to the client. Whether there were any.
    async fn ask(&self, open: impl IntoIterator<Item = OpenInterrupt>) -> Result<bool, OrchestratorError> {
        let mut is_asking = false;
        for interrupt in open {
            self.send(present::chunk(&interrupt)?.into()).await;
            is_asking = true;
            if let Some(transcript) = &self.transcript {
                transcript.ask(Interrupt::of(interrupt.record)?);
            }
        }
        Ok(is_asking)
    }

    /// A client that went away is told nothing.
    async fn send(&self, chunk: StreamChunk) {
        if let Some(transcript) = &self.transcript {
            transcript.note(&chunk);
        }
        tokio::select! {
            biased;
            _ = self.chunks.send(chunk) => {}
            () = self.agent.killed.cancelled() => {}
        }
    }
}

/// Whether a question belongs to the turn that answers another: what a run asks after its response is not part of it.
fn is_shown(question: &InterruptRecord, is_after_response: bool) -> bool {
    is_after_response || !question.after_response_completed
}

fn is_late(reason: &RefusalReason) -> bool {
    matches!(reason, RefusalReason::Expired | RefusalReason::Unknown)
}
