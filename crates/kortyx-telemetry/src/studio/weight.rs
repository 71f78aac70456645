//! About how much memory a fact takes, and facts without what is too large to be sent.

use std::borrow::Cow;

use kortyx_orchestrator::{Captures, Content, Fact, QuestionContent};
use kortyx_protocol::InterruptOption;
use kortyx_store::Scalar;

use crate::fan::within::within;

/// A fact without content: ids, names and what they are kept in.
const BARE: usize = 512;

/// About so many bytes.
pub(super) fn weight(fact: &Fact) -> usize {
    let context = fact.about().map_or(0, |about| about.context().iter().map(of_value).fold(0, usize::saturating_add));
    let said = match fact {
        Fact::WorkflowTransitioned { condition, .. } => condition.as_ref().map_or(0, String::len),
        Fact::InterruptCreated { content: Some(asked), .. } => {
            let options = of_options(asked).saturating_add(asked.options.len().saturating_mul(72));
            options.saturating_add(of_request(asked)).saturating_add(of_question(asked))
        }
        fact => content(fact).map_or(0, of_content),
    };
    BARE.saturating_add(context).saturating_add(said)
}

/// The fact without pieces of content larger than this, and how many these were. What is not sent need not wait.
pub(super) fn light(fact: &Fact, most: usize) -> (Cow<'_, Fact>, usize) {
    if content(fact).is_some_and(|content| of_content(content) > most) {
        return (within(fact, Captures::nothing()), 1);
    }
    let Fact::InterruptCreated { content: Some(said), .. } = fact else { return (Cow::Borrowed(fact), 0) };
    let heavy = [of_question(said) > most, of_options(said) > most, of_request(said) > most];
    let omitted = heavy.iter().filter(|is_heavy| **is_heavy).count();
    if omitted == 0 {
        return (Cow::Borrowed(fact), 0);
    }
    let mut fact = fact.clone();
    if let Fact::InterruptCreated { content: Some(said), .. } = &mut fact {
        let [question, options, request] = heavy;
        said.question.take_if(|_| question);
        said.request.take_if(|_| request);
        if options {
            said.options.clear();
        }
    }
    (Cow::Owned(fact), omitted)
}

fn content(fact: &Fact) -> Option<&Content> {
    match fact {
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
        | Fact::ToolEnded { output: content, .. } => content.as_ref(),
        _ => None,
    }
}

fn of_content(content: &Content) -> usize {
    content.json().get().len()
}

fn of_question(said: &QuestionContent) -> usize {
    said.question.as_ref().map_or(0, String::len)
}

fn of_request(said: &QuestionContent) -> usize {
    said.request.as_ref().map_or(0, |request| request.get().len())
}

fn of_options(said: &QuestionContent) -> usize {
    let option = |option: &InterruptOption| {
        let description = option.description.as_ref().map_or(0, String::len);
        option.id.len().saturating_add(option.label.len()).saturating_add(description)
    };
    said.options.iter().map(option).fold(0, usize::saturating_add)
}

fn of_value((key, value): (&String, &Scalar)) -> usize {
    let text = if let Scalar::Text(text) = value { text.len() } else { 0 };
    key.len().saturating_add(text)
}
