//! What the server's runs do.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use kortyx::{
    AgentBuilder, AskExt as _, NodeContext, NodeError, NodeOutput, NodeResult, Text, Workflow,
    runtime::workflow::DefinitionError,
};
use kortyx_load::{MANY, PIECE_BYTES, PIECES, ROUNDS};
use std::time::Duration;
use tokio::sync::watch;

/// What lies outside of the runs.
#[derive(Debug, Clone)]
pub(crate) struct Outside {
    /// How many effects happened.
    effects: Arc<AtomicU64>,
    /// Whether runs that are held may go on.
    gate: watch::Sender<bool>,
}

impl Outside {
    pub(crate) fn new() -> Self {
        Self { effects: Arc::default(), gate: watch::Sender::new(false) }
    }

    pub(crate) fn effects(&self) -> u64 {
        self.effects.load(Ordering::SeqCst)
    }

    pub(crate) fn release(&self) {
        self.gate.send_replace(true);
    }

    /// Changes the world outside, and tells which change it was: no two are the same.
    fn effect(&self) -> u64 {
        self.effects.fetch_add(1, Ordering::SeqCst) + 1
    }
}

pub(crate) fn register(agent: AgentBuilder, outside: &Outside) -> Result<AgentBuilder, DefinitionError> {
    let workflows = [
        one("talk", over(outside, talk))?,
        one("hold", over(outside, hold))?,
        one("wait", wait)?,
        one("megabytes", megabytes)?,
    ];
    Ok(workflows.iter().fold(agent, AgentBuilder::workflow).default_workflow("talk"))
}

fn one<F>(id: &str, node: impl Fn(NodeContext) -> F + Send + Sync + 'static) -> Result<Workflow, DefinitionError>
where
    F: Future<Output = NodeResult> + Send + 'static,
{
    Workflow::builder(id).node("node", node).build()
}

fn over<F>(
    outside: &Outside,
    node: impl Fn(NodeContext, Outside) -> F + Send + Sync + 'static,
) -> impl Fn(NodeContext) -> F + Send + Sync + 'static {
    let outside = outside.clone();
    move |ctx| node(ctx, outside.clone())
}

/// Has an effect, says a lot, asks, says the answer; and again.
async fn talk(ctx: NodeContext, outside: Outside) -> NodeResult {
    let mut answers = Vec::new();
    for round in 0..ROUNDS {
        let act = || {
            let outside = outside.clone();
            async move { Ok::<_, NodeError>(outside.effect()) }
        };
        let effect: u64 = ctx.step("effect", act).await?;
        ctx.text(format!("[{round}:{effect}]")).await;
        for piece in 0..PIECES {
            ctx.text(format!("{round}.{piece} ")).await;
        }
        let ask = Text::new("What is next?").expires_in(Duration::from_hours(1));
        let answer = ctx.interrupt("round", ask).await?;
        ctx.text(format!("<{answer}>")).await;
        answers.push(answer);
    }
    Ok(NodeOutput::new().data("answers", &answers))
}

/// Says something, and the rest once it may go on.
async fn hold(ctx: NodeContext, outside: Outside) -> NodeResult {
    ctx.text("held").await;
    // The sender lives as long as the server.
    let _ = outside.gate.subscribe().wait_for(|is_open| *is_open).await;
    ctx.text("released").await;
    Ok(NodeOutput::new())
}

/// Says something, asks, and says what was answered.
async fn wait(ctx: NodeContext) -> NodeResult {
    ctx.text("waiting").await;
    let answer = ctx.interrupt("go", Text::new("Shall it go on?").expires_in(Duration::from_hours(1))).await?;
    ctx.text(answer).await;
    Ok(NodeOutput::new())
}

/// Says megabytes.
async fn megabytes(ctx: NodeContext) -> NodeResult {
    for piece in 0..MANY {
        let mut text = format!("{piece};");
        text.extend(std::iter::repeat_n('x', PIECE_BYTES - text.len()));
        ctx.text(text).await;
    }
    Ok(NodeOutput::new())
}
