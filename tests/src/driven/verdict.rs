//! What must be true of a run that has ended: its effects, its questions, and that its output holds what was answered.

use std::collections::{BTreeMap, BTreeSet};

use kortyx::{
    contracts::Question,
    protocol::{ResumeResponse, json},
    store::InterruptRecord,
};
use kortyx_testkit::EndedRun;
use serde_json::Value;

use super::flow::{BACKGROUND_EFFECTS, EFFECTS, QUESTIONS};

/// The answers to each question, by its author's id, in the order of acceptance.
type Answers = BTreeMap<String, Vec<String>>;

/// A rich run.
pub(super) fn rich(run: &EndedRun) -> Result<(), String> {
    let wanted: BTreeSet<String> = EFFECTS.iter().map(ToString::to_string).collect();
    equal("effects", &run.effects, &wanted)?;
    let mut ids = run.questions.iter().map(author_id).collect::<Result<Vec<_>, _>>()?;
    ids.sort_unstable();
    let mut wanted = QUESTIONS.to_vec();
    wanted.sort_unstable();
    equal("questions", &ids, &wanted.into_iter().map(str::to_owned).collect())?;
    let fields = [("round", "rounds"), ("left", "left"), ("right", "right"), ("approve", "child")];
    let output: Answers = fields.map(|(id, field)| (id.to_owned(), texts(run.data.get(field)))).into();
    equal("answers", &output, &answers(&run.questions)?)
}

/// A run that asks one question after the other.
pub(super) fn asking(run: &EndedRun) -> Result<(), String> {
    let wanted: BTreeSet<String> = (0..run.questions.len()).map(|round| format!("act-{round}")).collect();
    equal("effects", &run.effects, &wanted)?;
    let output = Answers::from([("ask".to_owned(), texts(run.data.get("answers")))]);
    equal("answers", &output, &answers(&run.questions)?)
}

/// A run that works on after its response: its question is marked as asked then.
pub(super) fn background(run: &EndedRun) -> Result<(), String> {
    equal("effects", &run.effects, &BACKGROUND_EFFECTS.iter().map(ToString::to_string).collect())?;
    let after: Vec<bool> = run.questions.iter().map(|question| question.after_response_completed).collect();
    equal("questions after the response", &after, &vec![true])?;
    let output = Answers::from([("stock".to_owned(), texts(run.data.get("stock")))]);
    equal("answers", &output, &answers(&run.questions)?)
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, wanted: &T) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: found {found:?} instead of {wanted:?}")) }
}

fn author_id(question: &InterruptRecord) -> Result<String, String> {
    let question = Question::from_slice(&question.question).map_err(|error| error.to_string())?;
    question.input().id.ok_or_else(|| "a question has no id".to_owned())
}

fn answers(questions: &[InterruptRecord]) -> Result<Answers, String> {
    let mut answers = Answers::new();
    for question in questions {
        let answer = question.answer.as_ref().ok_or("a question has no answer")?;
        let text = match json::from_slice(answer).map_err(|error| error.to_string())? {
            ResumeResponse::Text { text } => text,
            ResumeResponse::Value { value } => texts(value.get("answer")).concat(),
            other => return Err(format!("an answer is {other:?}")),
        };
        answers.entry(author_id(question)?).or_default().push(text);
    }
    Ok(answers)
}

/// What a field of an output holds: a text, or several.
fn texts(value: Option<&Value>) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match value {
        Some(Value::Array(values)) => values.iter().map(text).collect(),
        Some(value) => vec![text(value)],
        None => Vec::new(),
    }
}
