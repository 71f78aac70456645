//! Workflows that several cases are played with.

use std::sync::Arc;

use kortyx::{NodeError, NodeOutput, Text, Workflow};
use kortyx_tests::{Counter, approve_or_decline, one_node, with};
use tokio::{join, sync::Semaphore};

/// Asks whether to act, and acts, counted, when it may.
pub(crate) fn acting(acts: &Counter) -> Workflow {
    one_node(
        "acting",
        with(acts.clone(), |ctx, acts| async move {
            let decision = ctx.interrupt("gate", approve_or_decline("Act?")).await?;
            if decision.as_str() == "approve" {
                ctx.step("act", || async { Ok::<_, NodeError>(acts.hit()) }).await?;
            }
            ctx.message(format!("It was {decision}.")).await;
            Ok(NodeOutput::new().data("decision", &decision))
        }),
    )
}

/// Asks two things at once.
pub(crate) fn pair() -> Workflow {
    one_node("pair", |ctx| async move {
        let (a, b) = join!(ctx.interrupt("a", Text::new("A?")), ctx.interrupt("b", Text::new("B?")));
        Ok(NodeOutput::new().data("a", &a?).data("b", &b?))
    })
}

/// Says a text and ends.
pub(crate) fn saying() -> Workflow {
    one_node("saying", |ctx| async move {
        ctx.message("Hello.").await;
        Ok(NodeOutput::new().data("said", &true))
    })
}

/// Asks, then acts for as long as the test likes.
pub(crate) fn slow(gate: &Arc<Semaphore>, acts: &Counter) -> Workflow {
    one_node(
        "slow",
        with((gate.clone(), acts.clone()), |ctx, (gate, acts)| async move {
            let name = ctx.interrupt("ask", Text::new("Well?")).await?;
            let act = || async {
                acts.hit();
                gate.acquire().await.map(drop)
            };
            ctx.step("act", act).await?;
            ctx.message("Done.").await;
            Ok(NodeOutput::new().data("name", &name))
        }),
    )
}

/// Says that it works, and works until it is let go.
pub(crate) fn working(gate: &Arc<Semaphore>) -> Workflow {
    one_node(
        "working",
        with(gate.clone(), |ctx, gate| async move {
            ctx.message("One moment.").await;
            ctx.step("work", || async { gate.acquire().await.map(drop) }).await?;
            let name = ctx.interrupt("ask", Text::new("Well?")).await?;
            Ok(NodeOutput::new().data("name", &name))
        }),
    )
}
