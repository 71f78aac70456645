//! About how much memory a fact takes.

use kortyx_orchestrator::{Content, Fact};

/// A fact without content: ids, names and what they are kept in.
const BARE: usize = 512;

/// About so many bytes.
pub(super) fn weight(fact: &Fact) -> usize {
    BARE.saturating_add(match fact {
        Fact::RunStarted { input: content, .. }
        | Fact::ChildStarted { input: content, .. }
        | Fact::ModelStarted { input: content, .. }
        | Fact::ToolStarted { input: content, .. }
        | Fact::InterruptResolved { answer: content, .. }
        | Fact::RunFinished { output: content, .. }
        | Fact::NodeLeft { output: content, .. }
        | Fact::StepEnded { output: content, .. }
        | Fact::ChildEnded { output: content, .. }
        | Fact::ModelEnded { output: content, .. }
        | Fact::ToolEnded { output: content, .. } => of_content(content.as_ref()),
        Fact::WorkflowTransitioned { condition, .. } => condition.as_ref().map_or(0, String::len),
        Fact::InterruptCreated { content: Some(content), .. } => {
            let options = content.options.iter().map(|option| {
                let description = option.description.as_ref().map_or(0, String::len);
                option.id.len().saturating_add(option.label.len()).saturating_add(description).saturating_add(72)
            });
            let request = content.request.as_ref().map_or(0, |request| request.get().len());
            let question = content.question.as_ref().map_or(0, String::len);
            options.fold(request.saturating_add(question), usize::saturating_add)
        }
        _ => 0,
    })
}

fn of_content(content: Option<&Content>) -> usize {
    content.map_or(0, |content| content.json().get().len())
}
