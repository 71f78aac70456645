//! What the tests of conversations share: turns of a session and what is seen of them.

use kortyx_orchestrator::{Agent, ChatOptions};
use kortyx_protocol::{
    ChatMessage, CheckpointId, DoneData, FailureCode, InterruptChunk, PendingRequest, ResumeMeta, SessionId,
    StreamChunk,
};
use kortyx_runtime::{NodeContext, NodeOutput, NodeResult, Workflow};

use crate::world::{decision, session};

/// What a turn said.
#[derive(Debug)]
pub(crate) struct Said(pub(crate) Vec<StreamChunk>);

impl Said {
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        self.0.iter().map(StreamChunk::kind).collect()
    }

    pub(crate) fn done(&self) -> &DoneData {
        match self.0.last() {
            Some(StreamChunk::Done { data: Some(data) }) => data,
            other => panic!("no end: {other:?}"),
        }
    }

    pub(crate) fn question(&self) -> &InterruptChunk {
        let found = self.0.iter().find_map(|chunk| match chunk {
            StreamChunk::Interrupt(interrupt) => Some(interrupt),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no question in {self:?}"))
    }

    /// The checkpoint that the turn left behind, with its place.
    pub(crate) fn checkpoint(&self) -> (CheckpointId, u64) {
        let found = self.0.iter().find_map(|chunk| match chunk {
            StreamChunk::Checkpoint { id, turn_index, .. } => Some((id.clone(), *turn_index)),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no checkpoint in {self:?}"))
    }

    pub(crate) fn refusal(&self) -> FailureCode {
        let found = self.0.iter().find_map(|chunk| match chunk {
            StreamChunk::Error { failure, .. } => Some(failure.code),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no error in {self:?}"))
    }
}

pub(crate) fn in_session() -> ChatOptions {
    ChatOptions::new().session(session())
}

pub(crate) fn named(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

pub(crate) async fn say(agent: &Agent, text: &str, options: ChatOptions) -> Said {
    Said(agent.stream_chat(vec![ChatMessage::user(text)], options).collect().await)
}

/// Answers a question by an option, in whatever session it was asked.
pub(crate) async fn choose(agent: &Agent, question: &InterruptChunk, id: &str) -> Said {
    let mut meta = ResumeMeta::new(question.resume_token.clone(), question.request_id.clone());
    meta.selected = vec![id.to_owned()];
    Said(agent.stream_chat(vec![ChatMessage::user(id).with_resume(&meta)], ChatOptions::new()).collect().await)
}

/// Answers a question of a checkpoint by an option.
pub(crate) async fn choose_pending(agent: &Agent, question: &PendingRequest, id: &str) -> Said {
    let mut meta = ResumeMeta::new(question.token.clone(), question.request_id.clone());
    meta.selected = vec![id.to_owned()];
    Said(agent.stream_chat(vec![ChatMessage::user(id).with_resume(&meta)], ChatOptions::new()).collect().await)
}

/// Counts its turns in data, workflow state and node state, and keeps the last message.
pub(crate) fn counting() -> Workflow {
    Workflow::builder("counting").node("count", count).build().unwrap()
}

async fn count(ctx: NodeContext) -> NodeResult {
    let said: kortyx_orchestrator::ChatInput = ctx.input()?;
    let (all, own) = (ctx.workflow_state("all", 0u32), ctx.node_state("own", 0u32));
    all.set(&(all.get()? + 1))?;
    own.set(&(own.get()? + 1))?;
    let before: Option<Vec<String>> = ctx.data("said").ok();
    let mut said_so_far = before.unwrap_or_default();
    said_so_far.push(said.input);
    Ok(NodeOutput::new().data("said", &said_so_far).data("all", &(all.get()?)).data("own", &(own.get()?)))
}

/// Asks for a decision and then counts as [`counting`] does.
pub(crate) fn asking() -> Workflow {
    let ask = |ctx: NodeContext| async move {
        ctx.structured("draft", "test.draft").set("text", "Hello").await?;
        let decision = ctx.interrupt("approval", decision()).await?;
        ctx.structured("final", "test.draft").set("text", &decision).await?;
        Ok(NodeOutput::new().data("decision", &decision))
    };
    Workflow::builder("asking").node("ask", ask).node("count", count).edge("ask", "count").build().unwrap()
}
