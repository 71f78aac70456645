//! The beginning of a pass: what an activation that has something to do is polled as.

use std::sync::Arc;

use super::slot::{SlotWaker, Work};
use crate::{
    NodeContext, NodeError, NodeOutput, NodeResult, flow, meter, output,
    pass::{PassRef, PassState},
    shared::{Core, Shared},
};

pub(super) fn begin_pass(shared: &Arc<Shared>, core: &mut Core, id: u32, waker: &Arc<SlotWaker>) -> Option<Work> {
    let activation = core.state.activations.get(&id)?;
    let frame = core.state.frame(activation.frame)?;
    let definition = shared.registry.get(&frame.workflow.id, &frame.workflow.version)?;
    let function = definition.node(&activation.node).map(|node| node.function.clone());
    let number = core.next_pass_number();
    let activation = core.state.activations.get(&id)?;
    let (at_limit, reached) = (activation.at_limit, activation.reached.clone());
    let pass = PassRef {
        shared: shared.clone(),
        activation: id,
        frame: activation.frame,
        number,
        workflow: definition.id().clone(),
        node: activation.node.clone(),
    };
    let mut state = PassState::new(number, &activation.journal);
    state.waker = Some(waker.clone().into());
    core.passes.insert(id, Box::new(state));
    let ctx = NodeContext(Arc::new(pass));
    if let Some(reached) = reached {
        return Some(Work::Pass(Box::pin(meter::ask_to_exceed(ctx, reached))));
    }
    Some(Work::Pass(match function {
        _ if at_limit => Box::pin(flow::ask_for_more(ctx)),
        Some(function) => Box::pin(async move {
            let result = function(ctx.clone()).await;
            ctx.0.sent_unawaited().await;
            with_output(&ctx, result?).await
        }),
        None => Box::pin(async move { Err(NodeError::message("the node is not part of the workflow")) }),
    }))
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
