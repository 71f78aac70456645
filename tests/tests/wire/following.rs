//! Following a run: from any place on, while it waits, and after it has ended in each way.

use serde_json::json;

use crate::cases::{Case, Step, answer, get, turn};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = places();
    cases.extend(endings());
    cases.extend(refusals());
    cases
}

fn follow(after: &str) -> Step {
    get(format!("/runs/run-1/stream{after}"))
}

fn places() -> Vec<Case> {
    let last = |after: &str, id: &'static str| follow(after).with("last-event-id", id);
    let approve = || answer(&json!({"selected": "approve"}));
    vec![
        Case::new("follow-from-the-start", [turn("writer"), follow("")]),
        Case::new("follow-after", [turn("writer"), follow("?after=2")]),
        Case::new("follow-last-event-id", [turn("writer"), last("", "4")]),
        Case::new("follow-last-event-id-and-after", [turn("writer"), last("?after=1", "4"), last("?after=4", "")]),
        Case::new("follow-beyond-the-end", [turn("writer"), follow("?after=100")]),
        Case::new("follow-while-it-waits", [turn("choice"), follow("").open(2), approve(), Step::Rest]),
        Case::new(
            "follow-one-of-two-answers",
            [
                turn("pair"),
                follow("").open(3),
                answer(&json!({"text": "one"})),
                answer(&json!({"token": "token-2", "requestId": "human-2", "text": "two"})),
                Step::Rest,
            ],
        ),
    ]
}

fn endings() -> Vec<Case> {
    vec![
        Case::new("follow-completed", [turn("choice"), answer(&json!({"selected": "approve"})), follow("")]),
        Case::new("follow-failed", [turn("broken"), follow("")]),
        Case::new("follow-failed-in-public", [turn("domain"), follow("")]),
        Case::new("follow-cancelled", [turn("choice"), answer(&json!({"cancel": true})), follow("")]),
        Case::new("follow-responded", [turn("order"), Step::Settled, follow(""), follow("?after=1")]),
        Case::new("follow-expired", [turn("choice"), Step::Minutes(16), Step::Worker, follow("")]),
    ]
}

fn refusals() -> Vec<Case> {
    let last = |id: &'static str| follow("").with("last-event-id", id);
    vec![
        Case::new("follow-unknown", [get("/runs/run-1/stream")]),
        Case::new("follow-other-tenant", [turn("writer"), follow("").with("x-tenant", "spy")]),
        Case::new("follow-without-scope", [turn("writer"), follow("").with("x-tenant", "nobody")]),
        Case::new(
            "follow-malformed",
            [
                turn("writer"),
                follow("?after=x"),
                follow("?after=-1"),
                follow("?after="),
                follow("?after=1.5"),
                follow("?after=18446744073709551616"),
                last("cp-1"),
                last("-1"),
                follow("?after=x").with("last-event-id", "1"),
            ],
        ),
    ]
}
