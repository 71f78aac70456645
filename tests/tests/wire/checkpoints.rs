//! Checkpoints in every state of a session.

use serde_json::{Value, json};

use crate::cases::{Case, Step, answer, post, turn};

pub(crate) fn cases() -> Vec<Case> {
    let ask = |body: Value| post("/checkpoints", &body);
    let list = || ask(json!({"action": "list", "sessionId": "s"}));
    let about = |action: &str, id: &str| ask(json!({"action": action, "checkpointId": id}));
    let approve = || answer(&json!({"selected": "approve"}));
    vec![
        Case::new("checkpoints-of-an-unknown-session", [list()]),
        Case::new("checkpoints-while-waiting", [turn("choice"), list(), about("get", "cp-1")]),
        Case::new("checkpoints-completed", [turn("choice"), approve(), list(), about("get", "cp-2")]),
        Case::new("checkpoints-with-structured-data", [turn("writer"), about("get", "cp-1")]),
        Case::new("checkpoints-after-a-failure", [turn("domain"), list()]),
        Case::new("checkpoints-of-a-response", [turn("order"), Step::Settled, list(), about("get", "cp-1")]),
        Case::new("checkpoint-unknown", [about("get", "cp-x"), about("rollback", "cp-x"), about("fork", "cp-x")]),
        Case::new("rollback-to-a-question", [turn("choice"), approve(), about("rollback", "cp-1"), list()]),
        Case::new("rollback-to-the-head", [turn("choice"), about("rollback", "cp-1")]),
        Case::new(
            "rollback-invalidates",
            [turn("text"), turn("writer"), about("rollback", "cp-1"), about("get", "cp-2")],
        ),
        Case::new(
            "rollback-expired",
            [turn("choice"), approve(), Step::Minutes(16), about("rollback", "cp-1"), list()],
        ),
        Case::new("rollback-superseded-answer", [turn("text"), turn("choice"), about("rollback", "cp-1"), approve()]),
        Case::new("fork", [turn("choice"), about("fork", "cp-1"), approve(), list()]),
        Case::new(
            "fork-into-a-session",
            [
                turn("choice"),
                ask(json!({"action": "fork", "checkpointId": "cp-1", "newSessionId": "t"})),
                ask(json!({"action": "fork", "checkpointId": "cp-1", "newSessionId": "t"})),
                ask(json!({"action": "list", "sessionId": "t"})),
            ],
        ),
        Case::new("fork-expired", [turn("choice"), Step::Minutes(16), about("fork", "cp-1")]),
        Case::new(
            "checkpoints-other-tenant",
            [turn("choice"), list().with("x-tenant", "spy"), about("rollback", "cp-1").with("x-tenant", "spy")],
        ),
        Case::new("checkpoints-without-scope", [list().with("x-tenant", "nobody")]),
        Case::new(
            "checkpoints-malformed",
            [
                ask(json!({})),
                ask(json!({"action": "delete", "checkpointId": "cp-x"})),
                ask(json!({"action": "list"})),
                ask(json!({"action": "list", "sessionId": "s", "more": 1})),
                ask(json!({"action": "get", "checkpointId": 7})),
                ask(json!({"action": "rollback", "checkpointId": "cp-x", "newSessionId": "t"})),
            ],
        ),
    ]
}
