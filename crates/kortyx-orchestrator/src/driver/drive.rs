//! The loop of a driver: advance, store, go on with what arrived meanwhile.

use std::{sync::Arc, task::Poll};

use bytes::Bytes;
use kortyx_contracts::Question;
use kortyx_protocol::{CheckpointId, Failure, FailureCode, RequestId, Usage};
use kortyx_runtime::{
    Content, Ending, EngineError, Execution, ExecutionHandle, Outcome, RecordError, Suspension, Turn,
    workflow::DefinitionPin,
};
use kortyx_store::{
    AnswerRecord, AskKey, Finish, Finished, InterruptRecord, NewCheckpoint, RunStatus, StoreError, StoreErrorKind,
    Suspend, Suspended, TerminalStatus, WorkflowPin,
};

use super::{
    Live, OpenInterrupt, Stand, State, Stop, StoredOutcome, delivered,
    keep::keep,
    outcome,
    outcome::End,
    pin,
    span::transition,
    stop::{After, stopped},
};
use crate::{error::of_storage, telemetry::Fact};

/// A run and its execution.
pub(super) struct Drive {
    live: Arc<Live>,
    execution: Execution,
    handle: ExecutionHandle,
    /// The definition that the run is bound to, as far as its driver knows.
    pin: WorkflowPin,
    /// The checkpoint that the turn left behind.
    checkpoint: Option<CheckpointId>,
}

/// What a transition leads to: a stand, or (`None`) to go on with answers that arrived meanwhile.
type Next = Result<Option<State>, Stop>;

impl Drive {
    pub(super) fn new(live: Arc<Live>, execution: Execution, pin: WorkflowPin) -> Self {
        let handle = execution.handle();
        Self { live, execution, handle, pin, checkpoint: None }
    }

    /// The run's handle.
    pub(super) fn handle(&self) -> &ExecutionHandle {
        &self.handle
    }

    /// Drives until the run waits, ends or cannot go on.
    pub(super) async fn run(mut self) -> (Stand, After) {
        loop {
            let next = match self.advance().await {
                Ok(Turn::Suspended(suspension)) => self.suspend(suspension).await,
                Ok(Turn::Finished(ending)) => self.finish(ending).await,
                Err(stop) => Err(stop),
            };
            let next = match next {
                // Nothing of the turn is stored, and nothing will be.
                Err(Stop::Store(error)) if error.kind() == StoreErrorKind::Abandoned => {
                    Ok(Some(State::Failed(of_storage(&error))))
                }
                Err(Stop::Store(error)) if is_hopeless(&error) => self.fail(of_storage(&error)).await,
                next => next,
            };
            match next {
                Ok(Some(state)) => {
                    let mut stand = self.live.stand(&self.pin, state);
                    stand.checkpoint = self.checkpoint;
                    stand.usage = self.handle.usage();
                    return (stand, After::Nothing);
                }
                Ok(None) => {}
                Err(stop) => {
                    let Self { live, execution, pin, .. } = self;
                    drop(execution);
                    return stopped(&live, &pin, stop).await;
                }
            }
        }
    }

    async fn advance(&mut self) -> Result<Turn, Stop> {
        let mut advance = std::pin::pin!(self.execution.advance());
        let turn = match futures_util::poll!(advance.as_mut()) {
            Poll::Ready(turn) => turn,
            // Only a run that does not pause at once needs its lease kept.
            Poll::Pending => tokio::select! {
                biased;
                turn = advance => turn,
                stop = keep(&self.live, &self.handle) => return Err(stop),
            },
        };
        turn.map_err(|error| match error {
            EngineError::Parked(failure) => Stop::Parked(failure),
            EngineError::Storage(error) => Stop::from(store_error(error)),
            error => Stop::Parked(Failure::new(FailureCode::ExecutionFailed, error.to_string())),
        })
    }

    /// Notes the definition that the run is bound to, which a handoff changes.
    fn bind(&mut self, to: &DefinitionPin) {
        self.pin = pin(to);
        self.live.note_binding(&self.pin);
    }

    async fn suspend(&mut self, suspension: Suspension) -> Next {
        let live = self.live.clone();
        self.bind(&suspension.workflow);
        let (publish, asked) = live.minted(&suspension.publish, suspension.response_completed)?;
        let checkpoint = suspension.turn.map(|turn| live.checkpoint(&self.pin, turn)).transpose()?;
        let left = checkpoint.as_ref().map(|checkpoint| checkpoint.id.clone());
        let chunks = live.log.take();
        let request = Suspend {
            run: live.run_ref(),
            workflow: self.pin.clone(),
            snapshot: Bytes::from(suspension.snapshot),
            publish,
            withdraw: suspension.withdraw.into_iter().map(AskKey).collect(),
            chunks: chunks.clone(),
            answers_seen: suspension.answers_seen,
            checkpoint,
        };
        let suspended = transition("suspend", live.agent.store.suspend(request)).await?;
        live.tell();
        match suspended {
            Suspended::Saved(open) => {
                let state = State::Suspended(self.announce(open, asked));
                let open = if let State::Suspended(open) = &state { open.len() } else { 0 };
                let (fence, usage) = (live.fence(), self.handle.usage());
                live.tell_fact(|about| Fact::RunSuspended { about, fence, open, usage });
                self.left_behind(left);
                Ok(Some(state))
            }
            Suspended::Answered(answers) => {
                live.log.put_back(chunks);
                self.deliver(&answers)
            }
            Suspended::Cancelled => Ok(Some(live.ended(State::Cancelled(None), self.handle.usage()).await)),
            Suspended::Expired => Ok(Some(live.ended(State::Expired, self.handle.usage()).await)),
        }
    }

    /// Notes the checkpoint that the turn left behind, and tells of it.
    fn left_behind(&mut self, checkpoint: Option<CheckpointId>) {
        let Some(checkpoint_id) = &checkpoint else { return };
        let checkpoint_id = checkpoint_id.clone();
        self.live.tell_fact(|about| Fact::SessionCheckpointed { about, checkpoint_id });
        self.checkpoint = checkpoint;
    }

    /// Pairs the open questions with those just asked, which need not be read again, and tells of these.
    fn announce(&self, open: Vec<InterruptRecord>, asked: Vec<(RequestId, Question)>) -> Vec<OpenInterrupt> {
        let mut asked = asked;
        let pair = |record: InterruptRecord| {
            let place = asked.iter().position(|(id, _)| *id == record.request_id);
            let question = place.map(|place| asked.swap_remove(place).1);
            if question.is_some() {
                self.live.tell_created(&record, question.as_ref());
            }
            OpenInterrupt { record, question }
        };
        open.into_iter().map(pair).collect()
    }

    fn deliver(&self, answers: &[AnswerRecord]) -> Next {
        let answers = delivered(answers).map_err(|error| Stop::Parked(outcome::corrupt(&error.to_string())))?;
        self.live.note_answers(!answers.is_empty());
        self.handle.deliver(answers);
        Ok(None)
    }

    async fn finish(&mut self, ending: Ending) -> Next {
        self.bind(&ending.workflow);
        let state = match ending.outcome {
            Outcome::Completed(data) => State::Completed(End { data, text: self.live.said() }),
            Outcome::Failed(failure) => State::Failed(failure),
            Outcome::Cancelled => State::Cancelled(None),
        };
        // Nothing came of a turn that failed or was cancelled: the session stays where it was.
        let turn = ending.turn.filter(|_| matches!(state, State::Completed(_)));
        let checkpoint = turn.map(|turn| self.live.checkpoint(&self.pin, turn)).transpose()?;
        let left = checkpoint.as_ref().map(|checkpoint| checkpoint.id.clone());
        match self.live.store_end(&self.pin, (&state, self.handle.usage()), ending.answers_seen, checkpoint).await? {
            Finished::Done => {
                self.left_behind(left);
                Ok(Some(self.live.ended(state, self.handle.usage()).await))
            }
            // It was stopped because its client had gone, but it holds an accepted answer now.
            Finished::Answered(_) if matches!(state, State::Cancelled(_)) && !self.live.is_cancelled() => {
                Err(Stop::HandOver)
            }
            Finished::Answered(answers) => self.deliver(&answers),
        }
    }

    /// Ends a run that cannot be stored otherwise.
    async fn fail(&mut self, failure: Failure) -> Next {
        let state = State::Failed(failure);
        let mut seen = self.handle.answers_seen();
        loop {
            match self.live.store_end(&self.pin, (&state, self.handle.usage()), seen, None).await? {
                Finished::Done => return Ok(Some(self.live.ended(state, self.handle.usage()).await)),
                Finished::Answered(answers) => seen = answers.last().map_or(u64::MAX, |answer| answer.seq),
            }
        }
    }
}

impl Live {
    pub(super) fn stand(&self, pin: &WorkflowPin, state: State) -> Stand {
        let (run_id, session_id) = (self.run.run_id.clone(), self.run.session_id.clone());
        Stand { run_id, session_id, workflow: pin.id.clone(), checkpoint: None, usage: None, state }
    }

    pub(super) async fn store_end(
        &self,
        pin: &WorkflowPin,
        (state, usage): (&State, Option<Usage>),
        answers_seen: u64,
        checkpoint: Option<NewCheckpoint>,
    ) -> Result<Finished, StoreError> {
        let status = match state {
            State::Completed(_) => TerminalStatus::Completed,
            State::Cancelled(_) => TerminalStatus::Cancelled,
            _ => TerminalStatus::Failed,
        };
        let outcome = serde_json::to_vec(&StoredOutcome::of(state, usage)).map_err(|error| {
            StoreError::new(StoreErrorKind::InvalidRequest, "finish", "the outcome does not serialize")
                .with_source(error)
        })?;
        let chunks = self.log.take();
        let request = Finish {
            run: self.run_ref(),
            workflow: pin.clone(),
            status,
            outcome: outcome.into(),
            reason: self.reason(),
            chunks: chunks.clone(),
            answers_seen,
            checkpoint,
        };
        let finished = transition("finish", self.agent.store.finish(request)).await?;
        self.tell();
        if let Finished::Answered(_) = finished {
            self.log.put_back(chunks);
        }
        Ok(finished)
    }

    /// Tells that the run has ended, and completes what is known of it.
    async fn ended(&self, state: State, usage: Option<Usage>) -> State {
        let (status, state) = match state {
            State::Cancelled(None) => {
                let run = self.agent.store.run(&self.run.run_id).await;
                let reason = run.ok().flatten().and_then(|run| run.reason);
                (RunStatus::Cancelled, State::Cancelled(reason))
            }
            State::Expired => (RunStatus::Expired, state),
            State::Failed(_) => (RunStatus::Failed, state),
            state => (RunStatus::Completed, state),
        };
        self.tell_fact(|about| {
            let code = if let State::Failed(failure) = &state { Some(failure.code) } else { None };
            let output = match &state {
                State::Completed(end) if self.agent.telemetry.captures().output => Some(Content::new(end.data.clone())),
                _ => None,
            };
            Fact::RunFinished { about, status, code, usage, output }
        });
        state
    }
}

/// Whether trying again can only fail the same way.
fn is_hopeless(error: &StoreError) -> bool {
    matches!(error.kind(), StoreErrorKind::TooLarge | StoreErrorKind::InvalidRequest)
}

fn store_error(error: RecordError) -> StoreError {
    let message = error.message;
    let Some(source) = error.source else { return StoreError::new(StoreErrorKind::Backend, "record", message) };
    match source.downcast::<StoreError>() {
        Ok(error) => *error,
        Err(source) => StoreError::new(StoreErrorKind::Backend, "record", message).with_source(source),
    }
}
