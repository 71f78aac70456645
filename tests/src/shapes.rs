//! Workflows, questions and messages that many tests use.

use kortyx::{
    Choice, NodeContext, NodeResult, Workflow,
    protocol::{ChatMessage, InterruptChunk, ResumeMeta, ResumeResponse},
};

/// A node function with something of the test's own, which every activation gets a clone of.
pub fn with<S, F, Fut>(shared: S, node: F) -> impl Fn(NodeContext) -> Fut + Send + Sync + 'static
where
    S: Clone + Send + Sync + 'static,
    F: Fn(NodeContext, S) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = NodeResult> + Send + 'static,
{
    move |ctx| node(ctx, shared.clone())
}

/// A workflow of one node.
pub fn one_node<F, Fut>(id: &str, node: F) -> Workflow
where
    F: Fn(NodeContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = NodeResult> + Send + 'static,
{
    Workflow::builder(id).node("node", node).build().unwrap()
}

/// The gate of many tests.
pub fn approve_or_decline(question: &str) -> Choice {
    Choice::new(question).option("approve", "Approve").option("decline", "Decline")
}

/// The message with which a client answers a question that it saw in a stream.
pub fn resume_message(chunk: &InterruptChunk, response: &ResumeResponse) -> ChatMessage {
    let mut meta = ResumeMeta::new(chunk.resume_token.clone(), chunk.request_id.clone());
    match response {
        ResumeResponse::Text { text } => meta.text = Some(text.clone()),
        ResumeResponse::Select { ids } => meta.selected.clone_from(ids),
        ResumeResponse::Value { value } => meta.value = Some(value.clone()),
        ResumeResponse::Cancel => meta.cancel = true,
    }
    ChatMessage::user("an answer").with_resume(&meta)
}
