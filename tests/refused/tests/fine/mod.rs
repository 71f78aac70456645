//! The API as it is meant: the refused cases differ from this one in one place each.

use kortyx_contracts::{AskExt, Choice, MultiChoice};
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, NodeResult, Workflow};

async fn node(ctx: NodeContext) -> NodeResult {
    let mut list = vec![1];
    list.push(2);
    let list: Vec<u32> = ctx.step("list", || async { Ok::<_, NodeError>(list.clone()) }).await?;
    let choice: String = ctx.interrupt("choice", Choice::new("?").option("a", "A")).await?;
    let many: Vec<String> = ctx.interrupt("many", MultiChoice::new("?").option("a", "A")).await?;
    let maybe: Option<String> = ctx.interrupt("maybe", Choice::new("?").option("a", "A").optional_cancel()).await?;
    ctx.workflow_state("count", 0u32).set(&1)?;
    let child = Workflow::builder("child").input::<u32>().node("node", |_| async { Ok(NodeOutput::new()) }).build()?;
    ctx.call("child", &child, 7).await?;
    Ok(NodeOutput::new().data("all", &(list, choice, many, maybe)))
}

pub(crate) fn build() {
    let workflow = Workflow::builder("flow").node("node", node).build();
    assert!(workflow.is_ok());
}
