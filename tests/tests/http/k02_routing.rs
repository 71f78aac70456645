//! K1 and K2: an answer reaches the question that it is for, as it is, and no other.

use futures_util::future::try_join_all;
use kortyx::{InterruptContract, NodeOutput, Text, Workflow};
use kortyx_tests::{Counter, World, one_node};
use serde_json::{Value, json};

use crate::{
    page::{Page, done, error, handle, kinds, message, questions},
    shapes::{acting, pair},
};

/// Asks as many questions at once as the message says.
fn asking_many() -> Workflow {
    one_node("many", |ctx| async move {
        let count: u32 = ctx.input::<kortyx::ChatInput>()?.input.parse().unwrap_or(1);
        let ids: Vec<_> = (0..count).map(|number| format!("ask-{number}")).collect();
        let answers = try_join_all(ids.iter().map(|id| ctx.interrupt(id, Text::new("Well?")))).await?;
        Ok(NodeOutput::new().data("answers", &answers))
    })
}

#[tokio::test]
async fn b015_a_forged_answer_reaches_no_run() {
    let (world, acts) = (World::new(), Counter::new());
    let page = Page::of(&world, &[acting(&acts)]).await;
    let (shown, other) = (page.say("s", "go").await, page.say("t", "go").await);
    let (question, run) = (&questions(&shown)[0], &done(&shown)["runId"]);
    let yes = json!({"type": "select", "ids": ["approve"]});
    let mut forged = Vec::new();
    for (field, value) in [
        ("requestId", json!("human-00000000-0000-4000-8000-000000000000")),
        ("requestId", questions(&other)[0]["requestId"].clone()),
        ("resumeToken", questions(&other)[0]["resumeToken"].clone()),
        ("resumeToken", json!(format!("{}A", question["resumeToken"].as_str().unwrap()))),
        ("resumeToken", json!("approved")),
    ] {
        let mut question = question.clone();
        question[field] = value;
        forged.push(page.post("/resume", &handle(&question, run, "s", &yes)).await.0);
        let chat = page.answer("s", &question, &json!({"selected": "approve"})).await;
        assert!(!kinds(&chat).contains(&"message"), "{chat:?}");
    }
    forged.push(page.post("/resume", &handle(question, &done(&other)["runId"], "s", &yes)).await.0);
    forged.push(page.post("/resume", &handle(question, run, "t", &yes)).await.0);
    assert!(forged.iter().all(|status| [400, 404, 409].contains(status)), "{forged:?}");
    assert_eq!(acts.count(), 0);

    let answered = page.post("/resume", &handle(question, run, "s", &yes)).await;
    assert_eq!((answered.0, answered.1["data"]["decision"].as_str(), acts.count()), (200, Some("approve"), 1));
    let no = json!({"type": "select", "ids": ["decline"]});
    assert_eq!(page.post("/resume", &handle(question, run, "s", &no)).await.0, 409, "a used token");
    assert_eq!(acts.count(), 1);
}

#[tokio::test]
async fn b023_a_used_answer_and_an_empty_message_leave_the_next_question_open() {
    let world = World::new();
    let page = Page::of(&world, &[pair()]).await;
    let asked = questions(&page.say("s", "go").await);
    page.answer("s", &asked[0], &json!({"text": "one"})).await;
    for _ in 0..3 {
        let again = page.answer("s", &asked[0], &json!({"text": "one"})).await;
        assert_eq!(questions(&again)[0]["requestId"], asked[1]["requestId"]);
        assert_eq!(page.post("/chat", &json!({"sessionId": "s", "messages": []})).await.0, 400);
        let open = page.listed("s").await;
        assert_eq!((open.len(), &open[0]["id"]), (1, &asked[1]["requestId"]));
    }
    let last = page.answer("s", &asked[1], &json!({"text": "two"})).await;
    assert_eq!(done(&last)["data"], json!({"a": "one", "b": "two"}));
}

#[tokio::test]
async fn b025_an_object_that_looks_like_a_map_of_answers_is_delivered_as_it_is() {
    const ANYTHING: InterruptContract<Value, Value> =
        InterruptContract::new("anything").description("Takes any value").schema_id("test.any").version("1");
    let world = World::new();
    let workflow = one_node("any", |ctx| async move {
        let answer = ctx.interrupt("ask", ANYTHING.ask(json!({}))).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let page = Page::of(&world, &[workflow]).await;
    for (number, kind) in ["none", "number", "hex", "id"].into_iter().enumerate() {
        let session = format!("s{number}");
        let shown = page.say(&session, "go").await;
        let question = &questions(&shown)[0];
        let id = question["requestId"].as_str().unwrap();
        let value = match kind {
            "none" => json!({}),
            "number" => json!({"1": "v"}),
            "hex" => json!({"0123456789abcdef0123456789abcdef": "v"}),
            _ => json!({id: "v"}),
        };
        let response = json!({"type": "value", "value": value});
        let (status, said) = page.post("/resume", &handle(question, &done(&shown)["runId"], &session, &response)).await;
        assert_eq!((status, &said["data"]["answer"]), (200, &value), "{kind}");
    }
}

#[tokio::test]
async fn b033_b035_one_answer_and_many_have_one_format_and_are_applied_all_or_none() {
    let world = World::new();
    let page = Page::of(&world, &[asking_many()]).await;
    for count in [1_usize, 2, 10] {
        let session = format!("s{count}");
        let shown = page.say(&session, &count.to_string()).await;
        let (asked, run) = (questions(&shown), &done(&shown)["runId"]);
        assert_eq!(asked.len(), count);
        let mut responses: Vec<_> = (asked.iter().enumerate())
            .map(|(at, it)| json!({"requestId": it["requestId"], "response": {"type": "text", "text": at.to_string()}}))
            .collect();
        let mut batch = handle(&asked[0], run, &session, &Value::Null);
        batch.as_object_mut().unwrap().remove("response");
        responses[count - 1]["response"] = json!({"type": "select", "ids": ["x"]});
        batch["responses"] = json!(responses);
        assert_eq!(page.post("/resume", &batch).await.0, 422);
        assert_eq!(page.listed(&session).await.len(), count, "nothing was applied");

        batch["responses"][count - 1]["response"] = json!({"type": "text", "text": (count - 1).to_string()});
        let (status, said) = page.post("/resume", &batch).await;
        let wanted: Vec<_> = (0..count).map(|at| at.to_string()).collect();
        assert_eq!((status, &said["data"]["answers"]), (200, &json!(wanted)), "{said}");
    }
}

#[tokio::test]
async fn b037_an_answer_to_an_older_question_reaches_it() {
    let (world, acts) = (World::new(), Counter::new());
    let page = Page::of(&world, &[acting(&acts), pair()]).await;
    let older = questions(&page.say("s", "go").await).remove(0);
    let mut next = message("s", "something else");
    next["workflowId"] = "pair".into();
    let newer = questions(&page.chat(&next).await);
    let answered = page.answer("s", &older, &json!({"selected": "approve"})).await;
    assert_eq!(done(&answered)["data"]["decision"], "approve");
    let open = page.listed("s").await;
    let ids: Vec<_> = open.iter().map(|open| &open["id"]).collect();
    assert_eq!(ids, [&newer[0]["requestId"], &newer[1]["requestId"]]);
}

#[tokio::test]
async fn b038_a_conversation_that_waits_holds_up_no_other() {
    let (world, acts) = (World::new(), Counter::new());
    let page = Page::of(&world, &[acting(&acts)]).await;
    let waiting = questions(&page.say("s", "go").await).remove(0);
    for other in 0..8 {
        let session = format!("other-{other}");
        let asked = questions(&page.say(&session, "go").await).remove(0);
        let answered = page.answer(&session, &asked, &json!({"selected": "approve"})).await;
        assert_eq!(done(&answered)["status"], "completed");
    }
    assert_eq!((acts.count(), page.listed("s").await.len()), (8, 1));
    // An answer in a conversation that is not its own consumes nothing.
    let foreign = page.answer("other-0", &waiting, &json!({"selected": "approve"})).await;
    assert_eq!(error(&foreign), "INTERRUPT_MISMATCH");
    assert_eq!((acts.count(), page.listed("s").await.len()), (8, 1));
}
