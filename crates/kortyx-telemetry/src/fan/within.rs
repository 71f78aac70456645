//! A fact as far as a sink asks for it.

use std::borrow::Cow;

use kortyx_orchestrator::{Captures, Fact};

/// The fact without the content that is not asked for.
pub(crate) fn within(fact: &Fact, captures: Captures) -> Cow<'_, Fact> {
    let (input, output, actor) = content(fact);
    if (captures.input || !input) && (captures.output || !output) && (captures.actor || !actor) {
        return Cow::Borrowed(fact);
    }
    let mut fact = fact.clone();
    if !captures.input {
        drop_input(&mut fact);
    }
    if !captures.output {
        drop_output(&mut fact);
    }
    if let Fact::InterruptResolved { actor, .. } = &mut fact
        && !captures.actor
    {
        *actor = None;
    }
    Cow::Owned(fact)
}

/// Whether there is input, output, an actor in it.
fn content(fact: &Fact) -> (bool, bool, bool) {
    match fact {
        Fact::InterruptResolved { answer, actor, .. } => (answer.is_some(), false, actor.is_some()),
        Fact::RunStarted { input, .. }
        | Fact::ChildStarted { input, .. }
        | Fact::ModelStarted { input, .. }
        | Fact::ToolStarted { input, .. } => (input.is_some(), false, false),
        Fact::InterruptCreated { content, .. } => (false, content.is_some(), false),
        Fact::RunFinished { output, .. }
        | Fact::NodeLeft { output, .. }
        | Fact::StepEnded { output, .. }
        | Fact::ChildEnded { output, .. }
        | Fact::ModelEnded { output, .. }
        | Fact::ToolEnded { output, .. } => (false, output.is_some(), false),
        _ => (false, false, false),
    }
}

fn drop_input(fact: &mut Fact) {
    match fact {
        Fact::InterruptResolved { answer: input, .. }
        | Fact::RunStarted { input, .. }
        | Fact::ChildStarted { input, .. }
        | Fact::ModelStarted { input, .. }
        | Fact::ToolStarted { input, .. } => *input = None,
        _ => {}
    }
}

fn drop_output(fact: &mut Fact) {
    match fact {
        Fact::InterruptCreated { content, .. } => *content = None,
        Fact::RunFinished { output, .. }
        | Fact::NodeLeft { output, .. }
        | Fact::StepEnded { output, .. }
        | Fact::ChildEnded { output, .. }
        | Fact::ModelEnded { output, .. }
        | Fact::ToolEnded { output, .. } => *output = None,
        _ => {}
    }
}

/// Whether only sinks that watch nodes are told it.
pub(super) fn is_watched(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::NodeEntered { .. }
            | Fact::NodeLeft { .. }
            | Fact::WorkflowTransitioned { .. }
            | Fact::WorkflowHandedOff { .. }
            | Fact::RunDiverged { .. }
            | Fact::StepStarted { .. }
            | Fact::StepEnded { .. }
            | Fact::ChildStarted { .. }
            | Fact::ChildEnded { .. }
            | Fact::ModelStarted { .. }
            | Fact::ModelEnded { .. }
            | Fact::ToolStarted { .. }
            | Fact::ToolEnded { .. }
    )
}
