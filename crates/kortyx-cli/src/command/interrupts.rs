//! Questions: finding them, reading them, answering them.

use std::fmt::Write as _;

use kortyx_orchestrator::Answer;
use kortyx_protocol::{RequestId, ResumeResponse, RunId, Timestamp, json};
use kortyx_store::{InterruptQuery, Receipt, RunQuery, RunStatus, Scope, StoreExt as _};
use serde::Serialize;
use serde_json::Value;

use super::{
    runs::PAGE,
    view::{ContentView, InterruptView, Lines, pairs, table},
};
use crate::{
    arguments::{AnswerArguments, AnswerText, InterruptFilter, Interrupts},
    error::CliError,
    open::Inspected,
    report::{Report, Show},
    show::paint::{bad, bold, clean, dim, good, status, when},
};

pub(super) async fn run(command: &Interrupts, store: &Inspected) -> Result<Report, CliError> {
    match command {
        Interrupts::List(filter) => list(filter, store).await,
        Interrupts::Show { id } => show(id, store).await,
        Interrupts::Answer(AnswerArguments { id, answer, actor }) => {
            answer_with(id, response(answer)?, actor, store).await
        }
        Interrupts::Cancel { id, actor } => answer_with(id, ResumeResponse::Cancel, actor, store).await,
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListView {
    interrupts: Vec<InterruptView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// There are more than are listed, and no cursor to them.
    is_cut: bool,
    #[serde(skip)]
    now: Timestamp,
}

impl Show for ListView {
    fn show(&self) -> String {
        let mut text = table(&self.interrupts, self.now);
        if let Some(next) = &self.next_cursor {
            text.push_str(&more(next));
        }
        if self.is_cut {
            let _ = writeln!(text, "{}", dim("there are more: raise --limit, or say whose"));
        }
        text
    }
}

/// How to see what comes next.
pub(super) fn more(cursor: &str) -> String {
    format!("{}\n", dim(format!("there may be more: --cursor '{}'", clean(cursor))))
}

async fn list(filter: &InterruptFilter, store: &Inspected) -> Result<Report, CliError> {
    let scope = filter.scope.scope();
    match &filter.run {
        Some(run) if filter.all => return all_of(run, filter, store).await,
        None if scope.is_empty() => return of_everybody(filter, store).await,
        _ => {}
    }
    let mut query = InterruptQuery {
        scope,
        run_id: filter.run.clone(),
        after_response_completed: filter.after_response.then_some(true),
        limit: 0,
        cursor: filter.page.cursor.clone(),
    };
    let (mut interrupts, mut left) = (Vec::new(), filter.page.limit);
    while left > 0 {
        query.limit = left.min(PAGE);
        let page = store.store().list_interrupts(query.clone()).await?;
        left = left.saturating_sub(u32::try_from(page.interrupts.len()).unwrap_or(u32::MAX));
        interrupts.extend(page.interrupts.iter().map(|record| InterruptView::of(record, filter.content)));
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    let (next_cursor, now) = (query.cursor, store.now().await?);
    Report::new("interrupts", &ListView { interrupts, next_cursor, is_cut: false, now })
}

/// Every question of a run, whatever its status.
async fn all_of(run: &RunId, filter: &InterruptFilter, store: &Inspected) -> Result<Report, CliError> {
    let history = store.store().history(run).await?.ok_or_else(|| CliError::NotFound(format!("run {run}")))?;
    let limit = usize::try_from(filter.page.limit).unwrap_or(usize::MAX);
    let is_cut = history.questions.len() > limit;
    let questions = history.questions.iter().take(limit);
    let interrupts = questions.map(|record| InterruptView::of(record, filter.content)).collect();
    Report::new("interrupts", &ListView { interrupts, next_cursor: None, is_cut, now: store.now().await? })
}

/// The open questions of every run: a store lists questions by whose they are, so runs are asked one by one.
async fn of_everybody(filter: &InterruptFilter, store: &Inspected) -> Result<Report, CliError> {
    if filter.page.cursor.is_some() {
        return Err(CliError::Usage("--cursor goes with --session, --run or --context".to_owned()));
    }
    let statuses = vec![RunStatus::Suspended, RunStatus::Running, RunStatus::Parked];
    let mut query = RunQuery { statuses, limit: PAGE, ..RunQuery::default() };
    let limit = usize::try_from(filter.page.limit).unwrap_or(usize::MAX);
    let mut open = Vec::new();
    loop {
        let page = store.store().list_runs(query.clone()).await?;
        for run in &page.runs {
            open.extend(store.store().open_questions(&run.run_id).await?);
            open.retain(|question| !filter.after_response || question.after_response_completed);
            if open.len() > limit {
                break;
            }
        }
        query.cursor = page.next;
        if query.cursor.is_none() || open.len() > limit {
            break;
        }
    }
    let is_cut = open.len() > limit;
    open.truncate(limit);
    open.sort_by_key(|question| question.created_at);
    let interrupts = open.iter().map(|record| InterruptView::of(record, filter.content)).collect();
    Report::new("interrupts", &ListView { interrupts, next_cursor: None, is_cut, now: store.now().await? })
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OneView {
    interrupt: InterruptView,
    #[serde(skip)]
    now: Timestamp,
}

async fn show(id: &RequestId, store: &Inspected) -> Result<Report, CliError> {
    let record = store.question(id).await?;
    let view = OneView { interrupt: InterruptView::of(&record, true), now: store.now().await? };
    Report::new("interrupt", &view)
}

impl Show for OneView {
    fn show(&self) -> String {
        let (view, now) = (&self.interrupt, self.now);
        let mut lines = Lines::default();
        lines.add("question", bold(view.id.as_str()));
        lines.add("status", status(view.status));
        lines.add("run", &view.run_id);
        lines.add("session", &view.session_id);
        if !view.context.is_empty() {
            lines.add("context", pairs(&view.context));
        }
        lines.add("where", clean(&format!("{}/{}", view.workflow, view.node)));
        lines.maybe("ask", view.ask_id.as_deref().map(clean));
        lines.maybe("kind", view.ask_kind);
        lines.add("asked", when(view.created_at, now));
        lines.add("deadline", when(view.expires_at, now));
        if view.after_response_completed {
            lines.add("", dim("asked after the response of its run was complete"));
        }
        if view.optional_cancel {
            lines.add("", dim("may be cancelled on its own"));
        }
        if let Some(answered) = &view.answered {
            match answered.at {
                Some(at) => lines.add("closed", when(at, now)),
                None => lines.add("closed", dim("when its time was over")),
            }
            lines.add(
                "by",
                match (&answered.actor, answered.by_default) {
                    (_, true) => dim("nobody: the default counts").to_string(),
                    (Some(actor), _) => good(clean(actor)).to_string(),
                    (None, _) => dim("somebody without a name").to_string(),
                },
            );
            lines.maybe("answer number", answered.seq);
        }
        lines.maybe("", view.unreadable.as_deref().map(|why| bad(clean(why).into_owned())));
        if let Some(content) = &view.content {
            show_content(content, &mut lines);
        }
        lines.into_text()
    }
}

fn show_content(content: &ContentView, lines: &mut Lines) {
    if let Some(input) = &content.question {
        lines.heading("Asked");
        if let Some(text) = &input.question {
            lines.block("text", text);
        }
        for option in &input.options {
            let about =
                option.description.as_deref().map(|about| format!("  {}", dim(clean(about)))).unwrap_or_default();
            lines.add("option", format!("{}  {}{about}", bold(clean(&option.id)), clean(&option.label)));
        }
        for (name, value) in
            [("request", &input.request), ("response schema", &input.response_schema), ("meta", &input.meta)]
        {
            if let Some(value) = value {
                lines.value(name, value);
            }
        }
    }
    if let Some(default) = &content.default {
        lines.value("default", default);
    }
    if let Some(answer) = &content.answer {
        lines.heading("Answered");
        show_answer(answer, lines);
    }
}

fn show_answer(answer: &Value, lines: &mut Lines) {
    match serde_json::from_value(answer.clone()) {
        Ok(ResumeResponse::Text { text }) => lines.block("text", &text),
        Ok(ResumeResponse::Select { ids }) => ids.iter().for_each(|id| lines.add("selected", bold(clean(id)))),
        Ok(ResumeResponse::Value { value }) => lines.value("value", &value),
        Ok(ResumeResponse::Cancel) => lines.add("cancelled", ""),
        Err(_) => lines.value("as stored", answer),
    }
}

/// The answer that the command line spells out.
fn response(answer: &AnswerText) -> Result<ResumeResponse, CliError> {
    if let Some(text) = &answer.text {
        return Ok(ResumeResponse::text(text));
    }
    let Some(value) = &answer.value else { return Ok(ResumeResponse::select(answer.select.iter())) };
    let value: Value =
        json::from_slice(value.as_bytes()).map_err(|error| CliError::Usage(format!("--value is not JSON: {error}")))?;
    Ok(ResumeResponse::value(value))
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AcceptedView {
    id: RequestId,
    run_id: RunId,
    /// Its place among the run's answers, from 1; 0 of a cancellation that ended the run.
    seq: u64,
    at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<String>,
    /// The same answer had been accepted before: the receipt is the first one's.
    is_duplicate: bool,
    run_status: &'static str,
}

impl Show for AcceptedView {
    fn show(&self) -> String {
        let before = if self.is_duplicate { "had been accepted before" } else { "accepted" };
        let by = self.actor.as_deref().map(|actor| format!(" as {}", clean(actor))).unwrap_or_default();
        let next = match self.run_status {
            "running" => "the run goes on as soon as a worker that has its workflow takes it".to_owned(),
            other => format!("the run is {other}"),
        };
        format!("{} {}{by} at {}: {next}\n", self.id, good(before), self.at)
    }
}

/// Has the store decide over an answer, and leaves the run to whoever has its code.
async fn answer_with(
    id: &RequestId,
    response: ResumeResponse,
    actor: &str,
    store: &Inspected,
) -> Result<Report, CliError> {
    let record = store.question(id).await?;
    let answer = Answer::in_scope(id.clone(), Scope::session(record.session_id), response).by(actor);
    let accepted = store.agent().submit(vec![answer]).await?;
    let run = store.run(&record.run_id).await?;
    let Some(Receipt { request_id, run_id, seq, at, actor }) = accepted.receipts.into_iter().next() else {
        return Err(CliError::NotFound(format!("question {id}")));
    };
    let is_duplicate = accepted.is_duplicate;
    Report::new(
        "answer",
        &AcceptedView { id: request_id, run_id, seq, at, actor, is_duplicate, run_status: run.status.as_str() },
    )
}
