//! What becomes of the rest of a turn while one call waits.

use kortyx_reason::WhileWaiting;
use serde_json::json;

use crate::world::{Effects, agent, answer, calling, data, gated, open, reasoning, run, tea, told, with};

#[tokio::test]
async fn hold_makes_the_calls_before_the_one_that_waits_and_none_after_it() {
    let calls = [("note", json!({"what": "a"})), tea(), ("note", json!({"what": "b"}))];
    let (model, effects) = (calling(calls), Effects::default());
    let workflow = gated(&model, &effects);
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    assert_eq!(effects.count(), 1);
    data(answer(&agent, &paused, 0, json!({"decision": "approve"})).await);
    assert_eq!(effects.count(), 3);
    assert_eq!(told(&model), [r#"{"done":"a"}"#, r#"{"done":"tea"}"#, r#"{"done":"b"}"#]);
}

#[tokio::test]
async fn proceed_makes_the_calls_that_wait_for_nobody_and_each_other_with_its_answer() {
    let calls = [tea(), ("note", json!({"what": "a"})), ("order", json!({"what": "cake"}))];
    let (model, effects) = (calling(calls), Effects::default());
    let (given, counted) = (model.clone(), effects.clone());
    let workflow = reasoning(move || {
        let tools = (counted.tool("order").approve_always(), counted.tool("note"));
        with(&given).tool(tools.0).tool(tools.1).while_waiting(WhileWaiting::Proceed)
    });
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    assert_eq!((open(&paused).len(), effects.count()), (2, 1));
    let paused = answer(&agent, &paused, 1, json!({"decision": "approve"})).await;
    assert_eq!(effects.count(), 2);
    let done = data(answer(&agent, &paused, 0, json!({"decision": "reject"})).await);
    assert_eq!(effects.count(), 2);
    assert_eq!(done["results"][2], json!(["order", "completed", {"done": "cake"}]));
    assert_eq!(told(&model)[1..], [r#"{"done":"a"}"#, r#"{"done":"cake"}"#]);
}
