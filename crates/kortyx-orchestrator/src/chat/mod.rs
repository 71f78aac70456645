//! Chat turns: a message starts a run or answers a question, and what comes of it is a stream of chunks.

mod begun;
mod conversation;
mod plan;
mod stream;
mod telling;
mod transcript;
mod turn;

use kortyx_protocol::{ChatMessage, SessionId};
use kortyx_runtime::{Allowances, Counter};
use kortyx_store::Scope;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument as _;

pub use self::stream::ChatStream;
pub(crate) use self::transcript::Transcript;
use self::{begun::Begun, turn::Turn};
use crate::{Agent, OnDisconnect, OrchestratorError};

/// How a chat turn is played.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ChatOptions {
    /// The conversation; without it, that of the question that the message answers, or else a new one.
    pub session_id: Option<SessionId>,
    /// The workflow of a fresh turn; without it, the one in force in the conversation, or else the agent's default one.
    pub workflow_id: Option<String>,
    /// What the application attaches to a fresh turn's run: nodes read it, and top-level booleans, integers and texts in it can
    /// be listed by.
    pub context: Map<String, Value>,
    /// Who writes, as the application authenticated them; kept with an accepted answer.
    pub actor: Option<String>,
    /// The client's name for the turn, for the application's hooks.
    pub client_turn_id: Option<String>,
    /// What becomes of a fresh turn whose client goes away; without it, what the agent says.
    pub on_disconnect: Option<OnDisconnect>,
    /// Whose questions the message may answer, and in whose conversations it may begin. A question that lies outside its context
    /// values is unknown, and so is a session outside of it; the values are part of a fresh turn's context. An empty scope
    /// restricts nothing: the question's token proves the right to answer.
    pub scope: Scope,
    /// How much a fresh turn's run may use, with its branches and its children, before it asks whether to go on. Where nothing is said,
    /// its workflow counts, then the agent.
    pub limits: Allowances,
}

impl ChatOptions {
    /// A new conversation with the agent's default workflow.
    pub fn new() -> Self {
        Self::default()
    }

    /// Plays the turn in this conversation.
    #[must_use]
    pub fn session(mut self, session_id: SessionId) -> Self {
        self.session_id = Some(session_id);
        self
    }

    /// Starts fresh turns with this workflow.
    #[must_use]
    pub fn workflow(mut self, id: impl Into<String>) -> Self {
        self.workflow_id = Some(id.into());
        self
    }

    /// Adds a value to the context of a fresh turn.
    #[must_use]
    pub fn context(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.context.insert(key.into(), value.into());
        self
    }

    /// Names who writes.
    #[must_use]
    pub fn actor(mut self, actor: impl Into<String>) -> Self {
        self.actor = Some(actor.into());
        self
    }

    /// Names the turn, as its client does.
    #[must_use]
    pub fn client_turn_id(mut self, id: impl Into<String>) -> Self {
        self.client_turn_id = Some(id.into());
        self
    }

    /// Says what becomes of a fresh turn whose client goes away.
    #[must_use]
    pub fn on_disconnect(mut self, policy: OnDisconnect) -> Self {
        self.on_disconnect = Some(policy);
        self
    }

    /// Limits how much a fresh turn's run may use of this before it asks whether to go on.
    #[must_use]
    pub fn limit(mut self, counter: Counter, most: u64) -> Self {
        self.limits = self.limits.limit(counter, most);
        self
    }

    /// Lets a fresh turn's run use any amount of this.
    #[must_use]
    pub fn unlimited(mut self, counter: Counter) -> Self {
        self.limits = self.limits.unlimited(counter);
        self
    }

    /// Answers only questions whose context lies in this scope, and begins only in sessions of it; others are unknown.
    #[must_use]
    pub fn within(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }
}

/// The input that a fresh turn gives its workflow: `{"input": "what the last message says"}`.
///
/// Earlier messages are the run's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatInput {
    /// The content of the last message.
    pub input: String,
}

impl Agent {
    /// Plays one turn of a conversation: the last message is the turn, the others are history.
    ///
    /// With resume metadata the message answers a question and its run goes on; without, or with metadata that is malformed,
    /// unknown or too late, it starts a run of its workflow, which takes over the conversation's data and workflow state. The
    /// stream is `session`, the turn's chunks, one `interrupt` for every question that is open then, the `checkpoint` that keeps
    /// the turn, and `done`; a failure is `error`, then `done`.
    ///
    /// The turn is the agent's: it is held back while nobody reads, and what a client that goes away leaves behind is up to
    /// [`on_disconnect`](crate::AgentBuilder::on_disconnect). Must be called for an agent whose runtime is running.
    pub fn stream_chat(&self, messages: Vec<ChatMessage>, options: ChatOptions) -> ChatStream {
        self.play(messages, options, Begun::unheard())
    }

    /// As [`stream_chat`](Self::stream_chat), but a fresh turn that is refused before it begins is an error instead of a stream.
    /// What a message that answers a question leads to is always in the stream.
    ///
    /// # Errors
    /// Nothing ran: `UNKNOWN_WORKFLOW`, `NOT_FOUND` for a session outside of the scope, `CONFLICT` beside an open question of an
    /// agent that refuses that, `INVALID_REQUEST`, `PERSISTENCE_ERROR`, or the agent is shutting down.
    pub async fn begin_chat(
        &self,
        messages: Vec<ChatMessage>,
        options: ChatOptions,
    ) -> Result<ChatStream, OrchestratorError> {
        let (begun, reply) = oneshot::channel();
        let stream = self.play(messages, options, Begun::heard_by(begun));
        match reply.await {
            Ok(begun) => begun.map(|run_id| stream.of(run_id)),
            // The turn ended without a word: its runtime went down, or it panicked.
            Err(_) => Err(OrchestratorError::ShuttingDown),
        }
    }

    fn play(&self, messages: Vec<ChatMessage>, options: ChatOptions, begun: Begun) -> ChatStream {
        let (chunks, receiver) = mpsc::channel(self.0.settings.chat_buffer);
        let turn = Turn::new(self.0.clone(), chunks, options, begun);
        self.0.tasks.spawn_on(turn.play(messages).in_current_span(), &self.0.runtime);
        ChatStream::new(receiver)
    }
}
