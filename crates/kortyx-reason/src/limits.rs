//! What reasoning uses of that which a run shares with its branches and its children.

use kortyx_protocol::Usage;
use kortyx_runtime::{Counter, Draw, INPUT_TOKENS, NodeContext, NodeError, OUTPUT_TOKENS, TOKENS};

/// Passes of models, attempts that [`ModelRetry`](crate::ModelRetry) makes of one not counted. 500 unless somebody says otherwise.
pub const MODEL_PASSES: Counter = Counter::new("model_passes").limit(500);
/// Calls of tools that run; those that are refused or rejected do not. 1,000 unless somebody says otherwise.
pub const TOOL_CALLS: Counter = Counter::new("tool_calls").limit(1_000);

/// What a pass needs: itself, and any token left. What it takes of tokens is known when it is over.
pub(crate) const PASS: [Draw; 4] =
    [Draw::One(MODEL_PASSES), Draw::Measured(TOKENS), Draw::Measured(INPUT_TOKENS), Draw::Measured(OUTPUT_TOKENS)];

/// Says what a pass has used.
pub(crate) fn spend(ctx: &NodeContext, usage: Usage) -> Result<(), NodeError> {
    let Usage { input, output, total } = usage;
    // Some providers say only the parts.
    let total = total.max(input.saturating_add(output));
    for (counter, amount) in [(INPUT_TOKENS, input), (OUTPUT_TOKENS, output), (TOKENS, total)] {
        if amount > 0 {
            ctx.spend(counter, amount)?;
        }
    }
    Ok(())
}
