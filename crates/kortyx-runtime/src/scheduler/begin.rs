//! The beginning of a pass: what an activation that has something to do is polled as.

use std::sync::Arc;

use super::slot::{SlotWaker, Work};
use crate::{
    NodeContext, NodeError, NodeOutput, NodeResult, Visit, flow,
    meter::{self, Reached},
    output,
    pass::{PassRef, PassState},
    shared::{Core, Shared},
    workflow::NodeFn,
};

/// A pass that has begun, and what is told of it.
pub(super) struct Begun {
    pub(super) work: Work,
    pub(super) pass: Arc<PassRef>,
    pub(super) visit: u32,
    pub(super) attempt: u32,
    /// It is no visit: the engine asks whether the run may go on.
    pub(super) is_own: bool,
}

pub(super) fn begin_pass(shared: &Arc<Shared>, core: &mut Core, id: u32, waker: &Arc<SlotWaker>) -> Option<Begun> {
    let activation = core.state.activations.get(&id)?;
    let frame = core.state.frame(activation.frame)?;
    let definition = shared.registry.get(&frame.workflow.id, &frame.workflow.version)?;
    let function = definition.node(&activation.node).map(|node| node.function.clone());
    let number = core.next_pass_number();
    let activation = core.state.activations.get(&id)?;
    let (at_limit, reached) = (activation.at_limit, activation.reached.clone());
    let is_own = at_limit || reached.is_some();
    let is_told = core.is_observed() && !is_own;
    let told =
        if is_told { Some(Arc::new(Visit::of(id, activation, core.state.frame(activation.frame)?))) } else { None };
    let (visit, attempt) = (activation.visit, activation.failures.saturating_add(1));
    let pass = PassRef {
        shared: shared.clone(),
        activation: id,
        frame: activation.frame,
        number,
        workflow: definition.id().clone(),
        node: activation.node.clone(),
        visit: told,
    };
    let mut state = PassState::new(number, &activation.journal);
    state.waker = Some(waker.clone().into());
    core.passes.insert(id, Box::new(state));
    let pass = Arc::new(pass);
    let work = work(NodeContext(pass.clone()), function, at_limit, reached);
    Some(Begun { work, pass, visit, attempt, is_own })
}

fn work(ctx: NodeContext, function: Option<NodeFn>, at_limit: bool, reached: Option<Arc<Reached>>) -> Work {
    if let Some(reached) = reached {
        return Work::Pass(Box::pin(meter::ask_to_exceed(ctx, reached)));
    }
    Work::Pass(match function {
        _ if at_limit => Box::pin(flow::ask_for_more(ctx)),
        Some(function) => Box::pin(async move {
            let result = function(ctx.clone()).await;
            ctx.0.sent_unawaited().await;
            with_output(&ctx, result?).await
        }),
        None => Box::pin(async move { Err(NodeError::message("the node is not part of the workflow")) }),
    })
}

/// Sends what the output shows to the client, as part of the activation.
async fn with_output(ctx: &NodeContext, output: NodeOutput) -> NodeResult {
    if let Some(error) = output.error {
        return Err(output::unwritable(ctx, "the output", &error).into());
    }
    if let Some(message) = &output.ui {
        ctx.message(message.clone()).await;
    }
    if let Some(handoff) = &output.handoff {
        flow::announce_handoff(ctx, handoff).await?;
    }
    Ok(output)
}
