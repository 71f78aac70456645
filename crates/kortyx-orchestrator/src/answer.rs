//! Taking answers: judged against the stored question, then accepted by the store, then driven.

mod accept;
mod canonical;
mod judge;
mod told;

use std::sync::Arc;

use kortyx_protocol::{ExecutionResult, RequestId, ResumeHandle, ResumeResponse, ResumeToken, RunId, SessionId};
use kortyx_runtime::Workflow;
use kortyx_store::{Receipt, RunStatus, Scope};
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;
use tracing::Instrument as _;

pub(crate) use self::accept::{Accepted, Next};
use crate::{
    Agent, OrchestratorError,
    agent::Inner,
    driver::{Output, Stand, State},
    present,
    telemetry::ResumeReason,
};

/// One answer, with what shows that the caller may give it.
#[derive(Debug, Clone)]
pub struct Answer {
    request_id: RequestId,
    right: Right,
    /// Outside it the question is unknown, whatever the right.
    within: Scope,
    session_id: Option<SessionId>,
    run_id: Option<RunId>,
    response: ResumeResponse,
    actor: Option<String>,
}

/// What shows that a caller may answer a question.
#[derive(Debug, Clone)]
enum Right {
    /// The question's secret.
    Token(ResumeToken),
    /// The application authorised the caller for this scope.
    Scope(Scope),
    /// The secret of any question of the same run.
    Run(ResumeHandle),
}

impl Answer {
    /// An answer of whoever holds the question's handle.
    pub fn with_handle(handle: &ResumeHandle, response: ResumeResponse) -> Self {
        Self {
            request_id: handle.request_id.clone(),
            right: Right::Token(handle.token.clone()),
            within: Scope::default(),
            session_id: Some(handle.session_id.clone()),
            run_id: Some(handle.run_id.clone()),
            response,
            actor: None,
        }
    }

    /// An answer of a caller whom the application authorised for this scope. A question outside is unknown.
    pub fn in_scope(request_id: RequestId, scope: Scope, response: ResumeResponse) -> Self {
        let (right, within) = (Right::Scope(scope), Scope::default());
        Self { request_id, right, within, session_id: None, run_id: None, response, actor: None }
    }

    /// An answer to a question of the handle's run, of whoever holds that handle of any question of the run, open or not. A question
    /// of another run is unknown.
    pub fn of_run(handle: &ResumeHandle, request_id: RequestId, response: ResumeResponse) -> Self {
        if handle.request_id == request_id {
            return Self::with_handle(handle, response);
        }
        let mut answer = Self::with_handle(handle, response);
        (answer.request_id, answer.right) = (request_id, Right::Run(handle.clone()));
        answer
    }

    /// Takes the question for unknown when it lies outside this scope, whatever else the caller shows. An empty scope
    /// restricts nothing.
    #[must_use]
    pub fn within(mut self, scope: Scope) -> Self {
        self.within = scope;
        self
    }

    /// Names who answers, as the application authenticated them.
    #[must_use]
    pub fn by(mut self, actor: impl Into<String>) -> Self {
        self.actor = Some(actor.into());
        self
    }
}

/// Proof that answers are durable, whatever becomes of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Acceptance {
    /// One for each answer, in order; of an answer that was given before, the first one.
    pub receipts: Vec<Receipt>,
    /// Every answer had been accepted before.
    pub is_duplicate: bool,
}

impl Agent {
    /// Answers a question and goes on with its run until it waits again, has ended or has completed its response, as
    /// [`execute`](Self::execute) does.
    ///
    /// Of any number of answers one is accepted. Once it is, it takes effect, whatever happens to this process. Giving the
    /// accepted answer again is no error: the result is the run as it stands. When another process drives the run, this
    /// waits for it, for at most [`wait`](crate::AgentBuilder::wait).
    ///
    /// # Errors
    /// The answer was refused and nothing changed: `INVALID_RESPONSE` with issues (the question stays open), `NOT_FOUND`,
    /// `INTERRUPT_MISMATCH`, `INTERRUPT_ALREADY_RESOLVED`, `INTERRUPT_EXPIRED`, `INTERRUPT_CANCELLED`,
    /// `INTERRUPT_SUPERSEDED`. Or it was accepted and kept, and the run could not go on here and now: `WORKFLOW_CHANGED`,
    /// `REPLAY_DIVERGED`, `PERSISTENCE_ERROR`, [`StillRunning`](OrchestratorError::StillRunning).
    pub async fn resume(
        &self,
        handle: &ResumeHandle,
        response: ResumeResponse,
    ) -> Result<ExecutionResult, OrchestratorError> {
        self.respond(vec![Answer::with_handle(handle, response)]).await
    }

    /// As [`resume`](Self::resume), with the output of the workflow that the run began with.
    pub async fn resume_as<I, O: DeserializeOwned>(
        &self,
        _workflow: &Workflow<I, O>,
        handle: &ResumeHandle,
        response: ResumeResponse,
    ) -> Result<ExecutionResult<O>, OrchestratorError> {
        let stand = self.0.respond(vec![Answer::with_handle(handle, response)]).await?;
        present::result(stand, present::typed)
    }

    /// As [`resume`](Self::resume), with answers to several questions of one run: all are accepted, or none.
    pub async fn resume_batch(
        &self,
        answers: impl IntoIterator<Item = (ResumeHandle, ResumeResponse)>,
    ) -> Result<ExecutionResult, OrchestratorError> {
        self.respond(answers.into_iter().map(|(handle, response)| Answer::with_handle(&handle, response)).collect())
            .await
    }

    /// As [`resume`](Self::resume), for a caller whom the application authorised for a scope, without the question's token.
    pub async fn answer(
        &self,
        request_id: &RequestId,
        scope: Scope,
        response: ResumeResponse,
        actor: Option<String>,
    ) -> Result<ExecutionResult, OrchestratorError> {
        let mut answer = Answer::in_scope(request_id.clone(), scope, response);
        answer.actor = actor;
        self.respond(vec![answer]).await
    }

    /// As [`answer`](Self::answer), with answers to several questions of one run: all are accepted, or none.
    pub async fn answer_batch(
        &self,
        answers: impl IntoIterator<Item = (RequestId, ResumeResponse)>,
        scope: Scope,
        actor: Option<String>,
    ) -> Result<ExecutionResult, OrchestratorError> {
        let answer = |(request_id, response)| {
            let mut answer = Answer::in_scope(request_id, scope.clone(), response);
            answer.actor.clone_from(&actor);
            answer
        };
        self.respond(answers.into_iter().map(answer).collect()).await
    }

    /// Takes answers to questions of one run, all or none, and goes on with the run until it waits again or has ended.
    pub async fn respond(&self, answers: Vec<Answer>) -> Result<ExecutionResult, OrchestratorError> {
        present::result(self.0.respond(answers).await?, present::untyped)
    }

    /// Takes answers to questions of one run, all or none, and returns as soon as they are durable. The run goes on in the
    /// background, here or elsewhere.
    pub async fn submit(&self, answers: Vec<Answer>) -> Result<Acceptance, OrchestratorError> {
        let (done, reply) = oneshot::channel();
        let agent = self.0.clone();
        let task = async move {
            let accepted = agent.accept(answers).await;
            let (acceptance, next) = match accepted {
                Ok(Accepted { receipts, next, .. }) => {
                    let is_duplicate = matches!(next, Next::Repeated(_));
                    (Ok(Acceptance { receipts, is_duplicate }), Some(next))
                }
                Err(error) => (Err(error), None),
            };
            let _ = done.send(acceptance);
            if let Some(Next::Drive(claimed)) = next {
                agent.granted(claimed, ResumeReason::Answered, None).run(drop).await;
            }
        };
        self.0.tasks.spawn_on(task.in_current_span(), &self.0.runtime);
        reply.await.unwrap_or(Err(OrchestratorError::ShuttingDown))
    }
}

/// What the task that accepts answers reports.
enum Reply {
    Refused(OrchestratorError),
    /// It drove the run, which had been given an answer with this number.
    Stands(Stand, Option<u64>),
    /// The run is not driven by it.
    Accepted(Accepted),
}

impl Inner {
    /// Accepts and drives in a task of the agent's: a caller that goes away in between leaves no run behind that nobody drives.
    async fn respond(self: &Arc<Self>, answers: Vec<Answer>) -> Result<Stand, OrchestratorError> {
        let (done, reply) = oneshot::channel();
        let agent = self.clone();
        let work = async move {
            match agent.accept(answers).await {
                Ok(Accepted { receipts, next: Next::Drive(claimed), .. }) => {
                    let answered = last(&receipts);
                    let tell = move |stand| drop(done.send(Reply::Stands(stand, answered)));
                    agent.granted(claimed, ResumeReason::Answered, None).run(tell).await;
                }
                Ok(accepted) => drop(done.send(Reply::Accepted(accepted))),
                Err(error) => drop(done.send(Reply::Refused(error))),
            }
        };
        self.work(Box::pin(work.in_current_span())).await;
        match reply.await {
            Ok(Reply::Stands(stand, answered)) => self.stood(stand, answered).await,
            Ok(Reply::Accepted(accepted)) => self.follow(accepted, None).await,
            Ok(Reply::Refused(error)) => Err(error),
            // The task ended without a word: its runtime went down, or it panicked.
            Err(_) => Err(OrchestratorError::ShuttingDown),
        }
    }

    /// Goes on with what was answered, or waits for whoever does.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        accepted: Accepted,
        output: Output,
    ) -> Result<Stand, OrchestratorError> {
        let Accepted { receipts, run_id, session_id, workflow, next, .. } = accepted;
        let answered = last(&receipts);
        let ended = |state| Stand {
            run_id: run_id.clone(),
            session_id,
            workflow: workflow.into(),
            checkpoint: None,
            usage: None,
            state,
        };
        match next {
            Next::Drive(claimed) => {
                let started = self.spawn(self.granted(claimed, ResumeReason::Answered, output), None);
                self.settled(started, &run_id, answered).await
            }
            Next::Wait => self.wait_for(&run_id, answered).await,
            Next::Foreign(failure) => Err(OrchestratorError::SetAside(failure)),
            Next::Ended(RunStatus::Expired) => Ok(ended(State::Expired)),
            Next::Ended(_) => Ok(ended(State::Cancelled(None))),
            Next::Repeated(run) => match self.stand_of(*run).await? {
                Some(stand) => Ok(stand),
                None => self.wait_for(&run_id, answered).await,
            },
        }
    }
}

/// The number of the last of these answers.
fn last(receipts: &[Receipt]) -> Option<u64> {
    receipts.iter().map(|receipt| receipt.seq).max()
}
