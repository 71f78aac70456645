//! What must hold of a run and its questions, at any moment.

use std::collections::{BTreeMap, BTreeSet};

use kortyx_contracts::Question;
use kortyx_protocol::{ResumeResponse, Timestamp};
use kortyx_runtime::inspect::{self, CallStanding};
use kortyx_store::{InterruptRecord, InterruptStatus, RunHistory, RunStatus};

use super::Findings;
use crate::{command::trace::state, show::paint::span};

/// Checks one run as it was at one moment.
pub(super) fn check(history: &RunHistory, now: Timestamp, opaque: bool, findings: &mut Findings) {
    status(history, now, findings);
    asks(history, findings);
    for question in &history.questions {
        self::question(history, question, findings);
        if !opaque {
            content(question, findings);
        }
    }
    match state(history).filter(|_| !opaque) {
        Some(Ok(state)) => self::snapshot(history, &state, findings),
        Some(Err(why)) => findings.broken(&history.run.run_id, "snapshot-reads", why),
        None => {}
    }
}

fn is_open(question: &InterruptRecord) -> bool {
    question.status == InterruptStatus::Pending
}

/// The run's status against its lease, its payload and its questions.
fn status(history: &RunHistory, now: Timestamp, findings: &mut Findings) {
    let (run, id) = (&history.run, &history.run.run_id);
    let name = run.status.as_str();
    let is_driven = run.lease_until.is_some_and(|until| until > now);
    if run.status != RunStatus::Running && run.lease_until.is_some() {
        findings.broken(id, "lease-of-a-running-run", format!("it is {name} and has a lease"));
    }
    let is_ended = run.status.is_terminal();
    if is_ended && history.questions.iter().any(is_open) {
        findings.broken(id, "ended-without-open-questions", format!("it is {name} and a question of it is open"));
    }
    if is_ended && history.snapshot.is_some() {
        findings.notice(id, "ended-without-state", format!("it is {name} and keeps its state"));
    }
    if !is_ended && history.snapshot.is_none() {
        findings.broken(id, "state-until-the-end", format!("it is {name} and has no snapshot"));
    }
    if matches!(run.status, RunStatus::Completed | RunStatus::Failed) && run.outcome.is_none() {
        findings.broken(id, "outcome-of-an-ended-run", format!("it is {name} and has no outcome"));
    }
    match run.status {
        RunStatus::Suspended => waits(history, now, findings),
        RunStatus::Running if !is_driven => {
            let since = span(now.since(run.lease_until.unwrap_or(run.updated_at)));
            findings.notice(id, "running-runs-are-driven", format!("nobody has driven it for {since}"));
        }
        RunStatus::Parked => {
            let since = span(now.since(run.updated_at));
            findings.notice(id, "runs-fit-their-code", format!("it has been set aside for {since}"));
        }
        _ => {}
    }
}

/// A run that waits does so for somebody.
fn waits(history: &RunHistory, now: Timestamp, findings: &mut Findings) {
    if history.questions.iter().any(is_open) {
        return;
    }
    let id = &history.run.run_id;
    let is_overdue = |question: &&InterruptRecord| question.status == InterruptStatus::Expired;
    match history.questions.iter().filter(is_overdue).map(|question| question.expires_at).max() {
        Some(at) => {
            let detail = format!("its last question ran out {} ago, and no worker has closed it", span(now.since(at)));
            findings.notice(id, "overdue-questions-are-closed", detail);
        }
        None => findings.broken(id, "waits-for-somebody", "it is suspended and no question of it is open"),
    }
}

/// Open questions have keys of their own, and answers numbers of their own.
fn asks(history: &RunHistory, findings: &mut Findings) {
    let id = &history.run.run_id;
    let mut keys = BTreeSet::new();
    for question in history.questions.iter().filter(|question| is_open(question)) {
        if !keys.insert(&question.ask) {
            findings.broken(id, "open-asks-are-unique", format!("two open questions have the key {}", question.ask));
        }
    }
    let mut numbers = BTreeMap::new();
    for (question, receipt) in history.questions.iter().filter_map(|one| Some((one, one.receipt.as_ref()?))) {
        // A cancellation that ended the run is no answer to deliver, and has no number.
        if receipt.seq == 0 || question.status == InterruptStatus::Cancelled {
            continue;
        }
        if receipt.seq > history.run.answers {
            let detail = format!("answer {} of {}", receipt.seq, history.run.answers);
            findings.broken(&question.request_id, "answers-are-counted", detail);
        }
        if let Some(other) = numbers.insert(receipt.seq, &question.request_id) {
            findings.broken(
                &question.request_id,
                "answers-are-numbered",
                format!("{other} has number {} too", receipt.seq),
            );
        }
    }
}

/// A question against its run, and its status against its answer.
fn question(history: &RunHistory, question: &InterruptRecord, findings: &mut Findings) {
    let (id, run) = (&question.request_id, &history.run);
    let is_of_the_run = question.run_id == run.run_id && question.session_id == run.session_id;
    if !is_of_the_run || *question.context != run.context {
        findings.broken(id, "questions-are-where-their-run-is", "its run, session or context is not its run's");
    }
    let receipt = question.receipt.as_ref();
    if question.status == InterruptStatus::Answered && (question.answer.is_none() || receipt.is_none()) {
        findings.broken(id, "answers-are-kept", "it is answered, and the answer or its receipt is missing");
    }
    if is_open(question) && (question.answer.is_some() || receipt.is_some()) {
        findings.broken(id, "open-until-answered", "it is open and has an answer");
    }
    if receipt.is_some_and(|receipt| receipt.request_id != *id || receipt.run_id != run.run_id) {
        findings.broken(id, "receipts-are-of-their-question", "its receipt names another question or run");
    }
    if receipt.is_some_and(|receipt| receipt.at < question.created_at) {
        findings.broken(id, "asked-before-answered", "it was answered before it was asked");
    }
}

/// What is asked and answered reads, and fits together.
fn content(question: &InterruptRecord, findings: &mut Findings) {
    let id = &question.request_id;
    let asked = match Question::from_slice(&question.question) {
        Ok(asked) => asked,
        Err(error) => return findings.broken(id, "questions-read", error.to_string()),
    };
    let Some(answer) = &question.answer else { return };
    match serde_json::from_slice::<ResumeResponse>(answer) {
        Err(error) => findings.broken(id, "answers-read", error.to_string()),
        Ok(ResumeResponse::Cancel) => {}
        Ok(response) => {
            if let Err(issues) = asked.validate(&response) {
                let first = issues.first().map(|issue| issue.message.clone()).unwrap_or_default();
                findings.broken(id, "answers-fit-their-question", first);
            }
        }
    }
}

/// The run's own state against what storage knows of it.
fn snapshot(history: &RunHistory, state: &inspect::RunView, findings: &mut Findings) {
    let (run, id) = (&history.run, &history.run.run_id);
    if let Some(unread) = &state.unread {
        findings.broken(id, "entries-read", format!("entry {}: {}", unread.entry, unread.reason));
        return;
    }
    if state.answers_seen > run.answers {
        let detail = format!("its state holds answer {} of {}", state.answers_seen, run.answers);
        findings.broken(id, "answers-are-counted", detail);
    }
    // While it is driven, its state is ahead of what is stored.
    if run.status != RunStatus::Suspended {
        return;
    }
    let is_bound = state.frames.first().is_some_and(|frame| {
        let (pin, bound) = (&frame.workflow, &run.workflow);
        pin.id == bound.id && pin.version == bound.version && pin.fingerprint == bound.fingerprint
    });
    if !is_bound {
        findings.broken(id, "bound-to-one-definition", "its state is bound to another definition than the run");
    }
    let calls = state.activations.iter().flat_map(|activation| &activation.calls);
    let open = calls.filter(|call| call.standing == CallStanding::Open);
    let waited: BTreeSet<&str> = open.filter_map(|call| call.ask.as_deref()).collect();
    for question in history.questions.iter().filter(|question| is_open(question)) {
        if !waited.contains(question.ask.0.as_str()) {
            findings.broken(&question.request_id, "open-questions-are-waited-for", "its run does not wait for it");
        }
    }
    for ask in waited {
        if !history.questions.iter().any(|question| question.ask.0 == ask) {
            findings.broken(id, "waited-for-questions-are-stored", format!("it waits for {ask}, which is not stored"));
        }
    }
}
