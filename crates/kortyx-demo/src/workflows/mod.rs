//! The workflows of the demo.

mod assistant;
mod lunch;
mod order;
mod review;

use std::{sync::Arc, time::Duration};

use kortyx_orchestrator::AgentBuilder;
use kortyx_reason::Model;
use kortyx_runtime::{NodeContext, workflow::DefinitionError};

pub(crate) use self::assistant::scripted;

/// Between two words: about as fast as one reads.
const PACE: Duration = Duration::from_millis(30);

/// Registers all of them; the assistant works with this model.
pub(crate) fn register(agent: AgentBuilder, model: Arc<dyn Model>) -> Result<AgentBuilder, DefinitionError> {
    let agent = agent.workflow(&review::workflow()?).workflow(&lunch::workflow()?).workflow(&order::workflow()?);
    Ok(agent.workflow(&assistant::workflow(model)?))
}

/// Says something word by word. Only for nodes that ask nothing: those that do run again with every answer, and would say it
/// silently but as slowly.
async fn say(ctx: &NodeContext, text: &str) {
    for word in text.split_inclusive(' ') {
        ctx.text(word).await;
        tokio::time::sleep(PACE).await;
    }
}
