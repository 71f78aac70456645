//! Whether a question can be asked: the rules that builders keep.

use std::collections::HashSet;

use crate::{
    AskError, ChoiceOption, QuestionOption,
    limits::{
        MAX_OPTION_ID_BYTES, MAX_OPTION_TEXT_BYTES, MAX_OPTIONS, MAX_QUESTION_BYTES, MAX_SCHEMA_NAME_BYTES,
        MAX_TEXT_LENGTH,
    },
    question::Asked,
};
use kortyx_protocol::InterruptKind;

/// Up to this many options, comparing all pairs is cheaper than a set.
const FEW: usize = 16;

/// Refuses what no person could answer and what is over a limit; names what is wrong.
pub(crate) fn check(ask: &Asked) -> Result<(), AskError> {
    question(ask)?;
    named("schema id", ask.schema_id.as_deref())?;
    named("schema version", ask.schema_version.as_deref())?;
    if ask.picker {
        let most = ask.min.max(ask.max).unwrap_or_default();
        within("bound of the picker", most as usize, MAX_OPTIONS, "ids")?;
    } else if matches!(ask.kind, InterruptKind::Choice | InterruptKind::MultiChoice) {
        options(&ask.options)?;
        bound_within("min", ask.min, ask.options.len())?;
        bound_within("max", ask.max, ask.options.len())?;
    }
    bounds(("min", ask.min), ("max", ask.max))?;
    bounds(("min_length", ask.min_length), ("max_length", ask.max_length))?;
    let longest = ask.max_length.max(ask.min_length).unwrap_or_default();
    within("length bound", longest as usize, MAX_TEXT_LENGTH as usize, "characters")
}

/// Refuses something that is bigger than its limit.
pub(crate) fn within(part: &'static str, size: usize, limit: usize, unit: &'static str) -> Result<(), AskError> {
    if size <= limit { Ok(()) } else { Err(AskError::OverLimit { part, size, limit, unit }) }
}

/// Adds an option; keeps what is wrong with it.
pub(crate) fn add(ask: &mut Asked, option: ChoiceOption) -> Result<(), AskError> {
    let (option, mistake) = option.into_parts();
    ask.options.push(option);
    mistake.map_or(Ok(()), |source| Err(AskError::Json { part: "option value", source }))
}

fn question(ask: &Asked) -> Result<(), AskError> {
    match &ask.question {
        Some(question) if is_blank(question) => Err(AskError::EmptyQuestion),
        Some(question) => within("question", question.len(), MAX_QUESTION_BYTES, "bytes"),
        None => Ok(()),
    }
}

fn named(part: &'static str, name: Option<&str>) -> Result<(), AskError> {
    match name {
        Some(name) if is_blank(name) => Err(AskError::EmptyPart { part }),
        Some(name) => within(part, name.len(), MAX_SCHEMA_NAME_BYTES, "bytes"),
        None => Ok(()),
    }
}

fn options(options: &[QuestionOption]) -> Result<(), AskError> {
    if options.is_empty() {
        return Err(AskError::NoOptions);
    }
    within("list of options", options.len(), MAX_OPTIONS, "entries")?;
    for (index, option) in options.iter().enumerate() {
        if is_blank(option.id()) {
            return Err(AskError::EmptyOptionId { index });
        }
        within("option id", option.id().len(), MAX_OPTION_ID_BYTES, "bytes")?;
        within("option label", option.label().len(), MAX_OPTION_TEXT_BYTES, "bytes")?;
        within("option description", option.description().map_or(0, str::len), MAX_OPTION_TEXT_BYTES, "bytes")?;
    }
    match first_duplicate(options.iter().map(QuestionOption::id)) {
        Some((_, id)) => Err(AskError::DuplicateOptionId { id: id.to_owned() }),
        None => Ok(()),
    }
}

/// The first text that was there before, with its place. Does not allocate for a few.
pub(crate) fn first_duplicate<'a>(texts: impl ExactSizeIterator<Item = &'a str> + Clone) -> Option<(usize, &'a str)> {
    if texts.len() <= FEW {
        let all = texts.clone();
        return texts.enumerate().find(|&(index, text)| all.clone().take(index).any(|other| other == text));
    }
    let mut seen = HashSet::with_capacity(texts.len());
    texts.enumerate().find(|&(_, text)| !seen.insert(text))
}

fn bound_within(bound: &'static str, value: Option<u32>, limit: usize) -> Result<(), AskError> {
    match value {
        Some(value) if value as usize > limit => Err(AskError::BoundOverOptions { bound, value, limit }),
        _ => Ok(()),
    }
}

fn bounds(lower: (&'static str, Option<u32>), upper: (&'static str, Option<u32>)) -> Result<(), AskError> {
    let Some(max) = upper.1 else { return Ok(()) };
    if max == 0 {
        return Err(AskError::ZeroBound { bound: upper.0 });
    }
    match lower.1 {
        Some(min) if min > max => Err(AskError::Bounds { lower: lower.0, min, upper: upper.0, max }),
        _ => Ok(()),
    }
}

pub(crate) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
