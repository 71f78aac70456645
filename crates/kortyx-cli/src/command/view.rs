//! Records as the program shows them: never with a token, with content only where it is asked for.

use std::{collections::BTreeMap, fmt::Write as _};

use kortyx_contracts::Question;
use kortyx_protocol::{InterruptInput, RequestId, RunId, SessionId, Timestamp};
use kortyx_store::{InterruptRecord, InterruptStatus, Scalar};
use serde::Serialize;
use serde_json::Value;

use crate::show::{
    Table,
    paint::{self, bad, bold, clean, dim, plain, relative, status},
};

/// A question.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InterruptView {
    pub(super) id: RequestId,
    pub(super) status: &'static str,
    pub(super) run_id: RunId,
    pub(super) session_id: SessionId,
    pub(super) context: BTreeMap<String, Value>,
    pub(super) workflow: String,
    pub(super) node: String,
    /// The author's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ask_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ask_kind: Option<&'static str>,
    pub(super) created_at: Timestamp,
    pub(super) expires_at: Timestamp,
    pub(super) optional_cancel: bool,
    pub(super) after_response_completed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answered: Option<AnsweredView>,
    /// Why what is stored of the question does not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unreadable: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<ContentView>,
}

/// Who answered, and when.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AnsweredView {
    /// Its place among the run's answers, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) actor: Option<String>,
    /// Nobody answered in time: the question's default counts.
    pub(super) by_default: bool,
}

/// What was asked and what was answered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContentView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) question: Option<InterruptInput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) default: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<Value>,
}

impl InterruptView {
    pub(super) fn of(record: &InterruptRecord, content: bool) -> Self {
        let question = Question::from_slice(&record.question);
        let (asked, unreadable) = match question {
            Ok(question) => (Some(question), None),
            Err(error) => (None, Some(format!("the question does not read: {error}"))),
        };
        Self {
            id: record.request_id.clone(),
            status: record.status.as_str(),
            run_id: record.run_id.clone(),
            session_id: record.session_id.clone(),
            context: context(&record.context),
            workflow: record.workflow.clone(),
            node: record.node.clone(),
            ask_id: asked.as_ref().and_then(|asked| asked.id().map(str::to_owned)),
            ask_kind: asked.as_ref().map(|asked| asked.kind().as_str()),
            created_at: record.created_at,
            expires_at: record.expires_at,
            optional_cancel: record.optional_cancel,
            after_response_completed: record.after_response_completed,
            answered: answered(record),
            unreadable,
            content: content.then(|| ContentView {
                question: asked.map(|asked| asked.input()),
                default: record.default.as_deref().map(json),
                answer: record.answer.as_deref().map(json),
            }),
        }
    }

    /// The question's text, where it is shown.
    pub(super) fn text(&self) -> Option<&str> {
        self.content.as_ref()?.question.as_ref()?.question.as_deref()
    }
}

fn answered(record: &InterruptRecord) -> Option<AnsweredView> {
    let receipt = record.receipt.as_ref();
    let is_closed = record.answer.is_some() || receipt.is_some();
    is_closed.then(|| AnsweredView {
        seq: receipt.map(|receipt| receipt.seq),
        at: receipt.map(|receipt| receipt.at),
        actor: receipt.and_then(|receipt| receipt.actor.clone()),
        by_default: record.status == InterruptStatus::Expired,
    })
}

/// What is stored, as JSON: bytes that are none as their text.
fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}

pub(super) fn context(context: &BTreeMap<String, Scalar>) -> BTreeMap<String, Value> {
    let value = |scalar: &Scalar| match scalar {
        Scalar::Bool(value) => (*value).into(),
        Scalar::Int(value) => (*value).into(),
        Scalar::Text(text) => Value::from(&**text),
    };
    context.iter().map(|(key, scalar)| (key.clone(), value(scalar))).collect()
}

/// `key=value`, side by side.
pub(super) fn pairs(context: &BTreeMap<String, Value>) -> String {
    context
        .iter()
        .map(|(key, value)| format!("{}={}", clean(key), clean(&value.to_string())))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Lines of names and values, the values beneath each other.
#[derive(Default)]
pub(super) struct Lines(String);

impl Lines {
    pub(super) fn add(&mut self, name: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{} {value}", dim(format!("{name:<14}")));
    }

    pub(super) fn maybe(&mut self, name: &str, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// A text of several lines, indented beneath its name.
    pub(super) fn block(&mut self, name: &str, text: &str) {
        let _ = writeln!(self.0, "{}", dim(name.to_owned()));
        for line in text.lines() {
            let _ = writeln!(self.0, "  {}", clean(line));
        }
    }

    pub(super) fn value(&mut self, name: &str, value: &Value) {
        match value {
            Value::String(text) => self.block(name, text),
            value => self.block(name, &serde_json::to_string_pretty(value).unwrap_or_default()),
        }
    }

    pub(super) fn heading(&mut self, text: &str) {
        let _ = writeln!(self.0, "\n{}", bold(text.to_owned()));
    }

    pub(super) fn push(&mut self, text: &str) {
        self.0.push_str(text);
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

/// Questions in a table.
pub(super) fn table(questions: &[InterruptView], now: Timestamp) -> String {
    let has_text = questions.iter().any(|question| question.content.is_some());
    let headings: &[&str] = if has_text {
        &["QUESTION", "STATUS", "RUN", "WHERE", "ASK", "ASKED", "TIME LEFT", "TEXT"]
    } else {
        &["QUESTION", "STATUS", "RUN", "WHERE", "ASK", "ASKED", "TIME LEFT"]
    };
    let mut table = Table::new(headings);
    for question in questions {
        let mut row = vec![
            bold(question.id.as_str().to_owned()),
            status(question.status),
            plain(question.run_id.as_str().to_owned()),
            plain(clean(&format!("{}/{}", question.workflow, question.node)).into_owned()),
            ask(question),
            plain(relative(question.created_at, now)),
            time_left(question, now),
        ];
        if has_text {
            row.push(plain(clean(question.text().unwrap_or_default()).into_owned()));
        }
        table.row(row);
    }
    if table.is_empty() { format!("{}\n", dim("no questions")) } else { table.render() }
}

fn ask(question: &InterruptView) -> paint::Painted<'static> {
    match (&question.ask_id, question.ask_kind) {
        (_, None) => bad("does not read"),
        (id, Some(kind)) => plain(format!("{} ({kind})", clean(id.as_deref().unwrap_or("?")))),
    }
}

fn time_left(question: &InterruptView, now: Timestamp) -> paint::Painted<'static> {
    match question.status {
        "pending" if question.expires_at > now => plain(paint::span(question.expires_at.since(now))),
        "pending" => bad("past"),
        _ => dim("-"),
    }
}
