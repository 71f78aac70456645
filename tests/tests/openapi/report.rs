//! What a run of schemathesis means.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::session::Session;

/// The least operations that the document has.
const OPERATIONS: u64 = 12;

type Verdict = (String, Result<(), String>);

/// A verdict on each operation in each phase, on whether each was reached, and on the whole.
pub(crate) fn verdicts(session: &Session) -> Vec<Verdict> {
    let report = &session.report;
    let (requests, operations) = (&report["test_cases"]["generated"], &report["operations"]["tested"]);
    println!("openapi: {requests} requests to {operations} operations");
    let mut verdicts = phases(session);
    verdicts.extend(report["valid_rates"].as_object().into_iter().flatten().map(reached));
    let is_whole = operations.as_u64() >= Some(OPERATIONS) && report["operations"]["total"] == *operations;
    let whole = if is_whole { Ok(()) } else { Err(format!("not every operation was tested: {operations}")) };
    verdicts.push(("every_operation_is_tested".to_owned(), whole));
    let ended = if session.ended.success() { Ok(()) } else { Err(format!("{}\n{}", session.ended, session.log)) };
    verdicts.push(("schemathesis_finds_nothing".to_owned(), ended));
    verdicts
}

/// Whether anything was found, by phase and operation.
fn phases(session: &Session) -> Vec<Verdict> {
    let mut found: BTreeMap<String, bool> = BTreeMap::new();
    for scenario in session.events.iter().filter_map(|event| event.get("ScenarioFinished")) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (phase, label) = (text(&scenario["phase"]), text(&scenario["recorder"]["label"]));
        let is_good = matches!(scenario["status"].as_str(), Some("success" | "skip"));
        *found.entry(format!("{phase}: {label}")).or_insert(true) &= is_good;
    }
    let verdict = |(name, is_good)| (name, if is_good { Ok(()) } else { Err("see the log above".to_owned()) });
    found.into_iter().map(verdict).collect()
}

/// Whether an operation took any request: what is always refused is not tested.
fn reached((operation, phases): (&String, &Value)) -> Verdict {
    let accepted = phases.as_object().into_iter().flatten().filter_map(|(_, counts)| counts["accepted"].as_u64());
    let accepted: u64 = accepted.sum();
    let verdict = if accepted > 0 { Ok(()) } else { Err(format!("no request was taken: {phases}")) };
    (format!("reached: {operation}"), verdict)
}
