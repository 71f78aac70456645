//! The answer of a contract is its response type.

use kortyx_contracts::InterruptContract;
use kortyx_runtime::{NodeContext, NodeOutput, NodeResult};

const DAYS: InterruptContract<String, u32> =
    InterruptContract::new("days").description("How many days").schema_id("test.days").version("1");

pub async fn node(ctx: NodeContext) -> NodeResult {
    let answer: String = ctx.interrupt("days", DAYS.ask("?".to_owned())).await?;
    Ok(NodeOutput::new().data("answer", &answer))
}

fn main() {}
