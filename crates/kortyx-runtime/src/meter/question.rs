//! The question whether a run may use more than its limit.

use std::{collections::BTreeMap, sync::Arc};

use kortyx_contracts::{AskExt as _, Choice};
use kortyx_protocol::{Failure, FailureCode, StreamChunk};
use serde_json::json;

use super::Reached;
use crate::{
    NodeContext, NodeOutput, NodeResult,
    event::{Event, StateWrites},
    shared::Core,
};

/// The author's id of the question.
const ID: &str = "limit-reached";
const GO_ON: &str = "continue";

/// Says that a limit is reached, and asks a person whether to go on.
pub(crate) async fn ask_to_exceed(ctx: NodeContext, reached: Arc<Reached>) -> NodeResult {
    let Reached { counter, allowed, used, .. } = &*reached;
    let limit = format!("max_{counter}");
    let chunk = StreamChunk::LimitReached {
        run_id: ctx.run_id().clone(),
        limit: limit.as_str().into(),
        maximum: *allowed,
        consumed: *used,
    };
    ctx.emit(chunk).await;
    let what = counter.replace('_', " ");
    let question = format!("The run has used {used} {what} of {allowed} that it may. Let it go on?");
    let ask = Choice::new(question).option(GO_ON, "Go on").option("stop", "Stop");
    let meta = json!({ "limit": limit, "maximum": allowed, "consumed": used });
    let answer = ctx.interrupt(ID, ask.meta(meta)).await?;
    Ok(NodeOutput::new().condition(answer))
}

/// Takes the answer in: a fresh allowance for all who wait, or the end of the run.
pub(crate) fn answered(core: &mut Core, id: u32, reached: &Reached, output: &NodeOutput) {
    let (data, state) = (BTreeMap::new(), StateWrites::default());
    core.emit(Event::Completed { activation: id, data, state, closed: None });
    let Reached { counter, allowed, fresh, .. } = reached;
    let used = core.state.meters.used(counter);
    if output.condition.as_deref() == Some(GO_ON) {
        let allowed = used.max(*allowed).saturating_add(*fresh);
        core.emit(Event::Granted { counter: counter.clone(), allowed });
        core.wake_held();
        return;
    }
    let message = format!("the run was stopped at its limit `max_{counter}` of {allowed}, of which it had used {used}");
    let details = json!({ "limit": format!("max_{counter}"), "maximum": allowed, "consumed": used });
    let failure = Failure::new(FailureCode::LimitReached, message).with_details(details);
    core.emit(Event::Stopped { failure: Box::new(failure) });
}
