//! The workflows of the demo.

mod lunch;
mod order;
mod review;

use std::time::Duration;

use kortyx_orchestrator::AgentBuilder;
use kortyx_runtime::{NodeContext, workflow::DefinitionError};

/// Between two words: about as fast as one reads.
const PACE: Duration = Duration::from_millis(30);

/// Registers all of them.
pub(crate) fn register(agent: AgentBuilder) -> Result<AgentBuilder, DefinitionError> {
    Ok(agent.workflow(&review::workflow()?).workflow(&lunch::workflow()?).workflow(&order::workflow()?))
}

/// Says something word by word. Only for nodes that ask nothing: those that do run again with every answer, and would say it
/// silently but as slowly.
async fn say(ctx: &NodeContext, text: &str) {
    for word in text.split_inclusive(' ') {
        ctx.text(word).await;
        tokio::time::sleep(PACE).await;
    }
}
