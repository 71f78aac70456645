//! What an application is told of chat turns, so that it can keep a transcript of its own.

use std::{error::Error, fmt::Display, future::Future, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use kortyx_protocol::{ChatMessage, Failure, RunId, SessionId, StructuredData};
use kortyx_store::RunStatus;
use serde_json::Value;
use tokio::time::timeout;

use crate::{Interrupt, agent::Inner, error::chain};

/// How long a hook may take by default.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A chat turn was accepted: its message starts a run, or is an accepted answer to a question.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TurnAccepted {
    /// The conversation.
    pub session_id: SessionId,
    /// The run that the message starts, or goes on with.
    pub run_id: RunId,
    /// The client's name for the turn, as [`ChatOptions`](crate::ChatOptions) gave it.
    pub client_turn_id: Option<String>,
    /// Who wrote, as [`ChatOptions`](crate::ChatOptions) gave it.
    pub actor: Option<String>,
    /// The message, with its metadata but without the token of the question that it answers.
    pub message: ChatMessage,
    /// It answers a question.
    pub is_answer: bool,
}

/// The response to a chat turn is complete: nothing is added to it but `done`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ResponseFinalized {
    /// The conversation.
    pub session_id: SessionId,
    /// The run.
    pub run_id: RunId,
    /// The client's name for the turn.
    pub client_turn_id: Option<String>,
    /// The contents of messages and text deltas, one after another.
    pub text: String,
    /// What the structured streams have become.
    pub structured: Vec<StructuredData>,
    /// The response said more than [4 MB](Self::KEPT), and only its beginning is here.
    pub is_truncated: bool,
    /// The questions that the response put.
    pub interrupts: Vec<Interrupt>,
    /// Where the run stands: `running` after a response that was completed before its run, and after one that was cut short.
    pub status: RunStatus,
    /// The public data that `done` carries.
    pub data: Value,
    /// The error that the response ended with.
    pub failure: Option<Failure>,
}

impl ResponseFinalized {
    /// How much of a response is kept for the hook: text and structured data together, in bytes as sent.
    pub const KEPT: usize = 4 << 20;
}

/// A hook's future: it ends well, or with an error for the log.
type Called = BoxFuture<'static, Result<(), Box<dyn Error + Send + Sync>>>;

/// A hook.
type Hook<E> = Arc<dyn Fn(E) -> Called + Send + Sync>;

/// The application's hooks.
#[derive(Clone)]
pub(crate) struct Hooks {
    accepted: Option<Hook<TurnAccepted>>,
    finalized: Option<Hook<ResponseFinalized>>,
    pub(crate) timeout: Duration,
}

impl Default for Hooks {
    fn default() -> Self {
        Self { accepted: None, finalized: None, timeout: TIMEOUT }
    }
}

impl Hooks {
    pub(crate) fn on_accepted<F, E>(&mut self, hook: impl Fn(TurnAccepted) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>> + 'static,
    {
        self.accepted = Some(of(hook));
    }

    pub(crate) fn on_finalized<F, E>(&mut self, hook: impl Fn(ResponseFinalized) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>> + 'static,
    {
        self.finalized = Some(of(hook));
    }

    pub(crate) fn hears_accepted(&self) -> bool {
        self.accepted.is_some()
    }

    pub(crate) fn hears_finalized(&self) -> bool {
        self.finalized.is_some()
    }
}

fn of<T, F, E>(hook: impl Fn(T) -> F + Send + Sync + 'static) -> Hook<T>
where
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: Into<Box<dyn Error + Send + Sync>> + 'static,
{
    Arc::new(move |event| {
        let called = hook(event);
        Box::pin(async move { called.await.map_err(Into::into) })
    })
}

impl Inner {
    /// Tells that a turn was accepted. At most half of a lease, which nobody renews meanwhile.
    pub(crate) async fn tell_accepted(&self, event: TurnAccepted) {
        let limit = self.hooks.timeout.min(self.settings.lease_ttl / 2);
        let run_id = event.run_id.clone();
        self.call("on_turn_accepted", &run_id, self.hooks.accepted.clone(), event, limit).await;
    }

    /// Tells what a response said.
    pub(crate) async fn tell_finalized(&self, event: ResponseFinalized) {
        let run_id = event.run_id.clone();
        self.call("on_response_finalized", &run_id, self.hooks.finalized.clone(), event, self.hooks.timeout).await;
    }

    /// Calls a hook in a task of its own: whatever it does, the turn goes on.
    async fn call<T: Send + 'static>(
        &self,
        name: &'static str,
        run_id: &RunId,
        hook: Option<Hook<T>>,
        event: T,
        limit: Duration,
    ) {
        let Some(hook) = hook else { return };
        let mut task = self.runtime.spawn(async move { hook(event).await });
        let problem = |problem: &dyn Display| tracing::error!(hook = name, %run_id, "a hook of a turn {problem}");
        tokio::select! {
            ended = timeout(limit, &mut task) => match ended {
                Ok(Ok(Ok(()))) => {}
                Ok(Ok(Err(error))) => problem(&format_args!("failed: {}", chain(&*error))),
                Ok(Err(_)) => problem(&"panicked, or its runtime ended"),
                Err(_) => {
                    task.abort();
                    problem(&format_args!("took longer than {limit:?}; it was stopped, and the turn goes on"));
                }
            },
            () = self.killed.cancelled() => task.abort(),
        }
    }
}
