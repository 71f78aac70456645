//! The screen: a spinner while the workflow works, prompts when it asks, a table of what is open.

use std::{
    error::Error,
    io::{self, Write as _},
    sync::LazyLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use indicatif::ProgressBar;
use inquire::{InquireError, MultiSelect, Select, Text};
use kortyx::{
    Interrupt,
    protocol::{InterruptInput, InterruptKind, Issue, ResumeResponse, Timestamp},
};
use serde_json::{Map, Value};

static SPINNER: LazyLock<ProgressBar> = LazyLock::new(ProgressBar::new_spinner);

/// Shows a spinner while a future runs.
pub(crate) async fn working<T>(message: &'static str, work: impl Future<Output = T>) -> T {
    SPINNER.set_message(message);
    SPINNER.enable_steady_tick(Duration::from_millis(80));
    let done = work.await;
    SPINNER.disable_steady_tick();
    SPINNER.finish_and_clear();
    done
}

/// Prints a line, whatever the spinner is doing.
pub(crate) fn announce(text: &str) -> io::Result<()> {
    SPINNER.suspend(|| writeln!(io::stdout(), "✉  {text}"))
}

/// Asks the person at the keyboard. `None`: they left (Ctrl-C, Esc, or no terminal).
pub(crate) fn prompt(input: &InterruptInput) -> Result<Option<ResumeResponse>, Box<dyn Error>> {
    let text = input.question.as_deref().unwrap_or("Your answer?");
    let (above, question) = text.rsplit_once('\n').unwrap_or(("", text));
    println!("\n{}", above.trim_end());
    let answer = match input.kind {
        InterruptKind::Choice => Select::new(question, labels(input)).prompt().map(|label| select(input, &[label])),
        InterruptKind::MultiChoice => {
            MultiSelect::new(question, labels(input)).prompt().map(|labels| select(input, &labels))
        }
        InterruptKind::Text => Text::new(question).prompt().map(ResumeResponse::text),
        _ => form(input).map(ResumeResponse::value),
    };
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(InquireError::OperationCanceled | InquireError::OperationInterrupted | InquireError::NotTTY) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What is wrong with an answer, and where if it has parts.
pub(crate) fn explain(issue: &Issue) -> String {
    let part = issue.path.trim_start_matches('/');
    if part.parse::<usize>().is_ok() || part.is_empty() {
        issue.message.clone()
    } else {
        format!("{part}: {}", issue.message)
    }
}

/// Reads an answer from the command line: an option id, ids with commas between, text, or JSON for a contract.
pub(crate) fn parse(input: &InterruptInput, value: &str) -> Result<ResumeResponse, Box<dyn Error>> {
    Ok(match input.kind {
        InterruptKind::Choice => ResumeResponse::select([value]),
        InterruptKind::MultiChoice => ResumeResponse::select(value.split(',').map(str::trim)),
        InterruptKind::Text => ResumeResponse::text(value),
        _ => {
            let value: Value = kortyx::protocol::json::from_str(value)
                .map_err(|error| format!("this question takes JSON, for example {}: {error}", sample(input)))?;
            ResumeResponse::value(value)
        }
    })
}

/// Prints the open questions.
pub(crate) fn list(open: &[Interrupt]) {
    if open.is_empty() {
        println!("No question is open.");
    }
    let now = now();
    for question in open {
        let input = &question.input;
        let text = input.question.as_deref().or(input.contract.as_deref()).unwrap_or_default();
        let (age, left) = (span(now.since(question.created_at)), span(question.expires_at.since(now)));
        println!("{}  asked {age} ago, expires in {left}", question.id);
        println!("    {}/{}: {}", question.workflow, question.node, text.lines().last().unwrap_or_default());
        println!("    answer with: {}\n", hint(input));
    }
}

fn labels(input: &InterruptInput) -> Vec<String> {
    input.options.iter().map(|option| option.label.clone()).collect()
}

fn select(input: &InterruptInput, labels: &[String]) -> ResumeResponse {
    let chosen = input.options.iter().filter(|option| labels.iter().any(|label| **label == *option.label));
    ResumeResponse::select(chosen.map(|option| option.id.as_str()))
}

/// Shows a contract's request and asks for each property of its response schema.
fn form(input: &InterruptInput) -> Result<Value, InquireError> {
    for (name, value) in input.request.as_ref().and_then(Value::as_object).into_iter().flatten() {
        println!("{name}: {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    let schema = input.response_schema.clone().unwrap_or_default();
    let mut answer = Map::new();
    for (name, property) in properties(&schema) {
        let label = property.get("description").and_then(Value::as_str).unwrap_or(name);
        let options = choices(&schema, property);
        let value = if options.is_empty() {
            Text::new(&format!("{label}:")).prompt()?
        } else {
            Select::new(&format!("{label}:"), options).prompt()?
        };
        answer.insert(name.clone(), Value::String(value));
    }
    Ok(Value::Object(answer))
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// The values of an enumeration, in place or behind a reference.
fn choices(schema: &Value, property: &Value) -> Vec<String> {
    let reference = property.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
    let target = reference.and_then(|path| schema.pointer(path)).unwrap_or(property);
    let values = target.get("enum").and_then(Value::as_array).into_iter().flatten();
    values.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn hint(input: &InterruptInput) -> String {
    let ids: Vec<&str> = input.options.iter().map(|option| option.id.as_str()).collect();
    match input.kind {
        InterruptKind::Choice => ids.join(" | "),
        InterruptKind::MultiChoice => format!("{} (several with commas between)", ids.join(", ")),
        InterruptKind::Text => "a text".into(),
        _ => sample(input),
    }
}

fn sample(input: &InterruptInput) -> String {
    let schema = input.response_schema.clone().unwrap_or_default();
    let example = properties(&schema).map(|(name, property)| {
        let options = choices(&schema, property);
        let value = if options.is_empty() { "…".to_owned() } else { options.join("|") };
        (name.clone(), Value::String(value))
    });
    Value::Object(example.collect()).to_string()
}

fn now() -> Timestamp {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
}

fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86400 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86400),
    }
}
