//! K10: a client sees one id for one question, loses none, and is told what becomes of its message.

use std::{sync::Arc, time::Duration};

use kortyx::{NodeOutput, OnDisconnect, Text, WaitingPolicy};
use kortyx_tests::{Counter, World, eventually, one_node, with};
use serde_json::{Value, json};
use tokio::{join, sync::Semaphore};

use crate::{
    page::{Page, done, error, kinds, message, questions},
    shapes::{acting, pair, saying, working},
};

#[tokio::test]
async fn b130_one_question_has_one_id_on_every_surface() {
    let (world, acts) = (World::new(), Counter::new());
    let page = Page::of(&world, &[acting(&acts)]).await;
    let shown = page.say("s", "go").await;
    let (question, run) = (&questions(&shown)[0], done(&shown)["runId"].as_str().unwrap());
    let id = &question["requestId"];
    assert_eq!(&page.listed("s").await[0]["id"], id);
    assert_eq!(&page.get(&format!("/interrupts/{}", id.as_str().unwrap())).await.1["id"], id);
    let point = page.turns("s").await[1]["id"].clone();
    let pending = &page.checkpoints("get", &json!({"checkpointId": point})).await.1["activePendingRequests"][0];
    assert_eq!((&pending["requestId"], &pending["token"]), (id, &question["resumeToken"]));
    let refused = page.answer("s", question, &json!({"selected": "banana"})).await;
    assert_eq!(&questions(&refused)[0], question, "asked again as it was");
    let follow = async {
        let followed = page.follow(run).await;
        assert_eq!(&questions(&followed)[0], question);
    };
    let answer = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        page.answer("s", question, &json!({"selected": "approve"})).await
    };
    let ((), answered) = join!(follow, answer);
    assert_eq!(done(&answered)["data"]["decision"], "approve");
}

#[tokio::test]
async fn b131_what_the_stream_shows_is_enough_to_answer_anywhere() {
    let (world, acts) = (World::new(), Counter::new());
    let text = {
        let page = Page::of(&world, &[acting(&acts)]).await;
        questions(&page.say("s", "go").await)[0].to_string()
    };
    // Another server and another client; all that is left is the text that went over the wire.
    let page = Page::of(&world, &[acting(&acts)]).await;
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(shown["input"]["question"], "Act?");
    let answered = page.answer("s", &shown, &json!({"selected": [shown["input"]["options"][0]["id"]]})).await;
    assert_eq!((done(&answered)["data"]["decision"].as_str(), acts.count()), (Some("approve"), 1));
}

#[tokio::test]
async fn b135_wherever_a_connection_was_lost_the_question_is_found_again() {
    let (world, gate) = (World::new(), Arc::new(Semaphore::new(0)));
    let page = Page::with(&world, &[working(&gate)], |agent| agent.on_disconnect(OnDisconnect::GoOn)).await;
    // After the session, the message, the question, the checkpoint.
    for read in 1..=4_usize {
        let session = format!("s{read}");
        let mut stream = page.open(&message(&session, "go")).await;
        if read > 2 {
            gate.add_permits(1);
        }
        stream.frames(read).await;
        drop(stream);
        if read <= 2 {
            gate.add_permits(1);
        }
        eventually("the question is listed", || async { page.listed(&session).await.len() == 1 }).await;
        let point = page.turns(&session).await;
        let view = page.checkpoints("get", &json!({"checkpointId": point.last().unwrap()["id"]})).await.1;
        let pending = &view["activePendingRequests"][0];
        let found = json!({"resumeToken": pending["token"], "requestId": pending["requestId"]});
        let answered = page.answer(&session, &found, &json!({"text": "here"})).await;
        assert_eq!(done(&answered)["data"]["name"], "here", "{read}");
        eventually("nobody drives", || async { page.agent().driven_runs() == 0 }).await;
    }
}

#[tokio::test]
async fn b136_after_each_answer_what_the_client_shows_is_what_the_server_lists() {
    let world = World::new();
    let workflow = one_node("three", |ctx| async move {
        let (a, b, c) = join!(
            ctx.interrupt("a", Text::new("A?")),
            ctx.interrupt("b", Text::new("B?")),
            ctx.interrupt("c", Text::new("C?"))
        );
        Ok(NodeOutput::new().data("all", &[a?, b?, c?]))
    });
    let page = Page::of(&world, &[workflow]).await;
    let mut shown = questions(&page.say("s", "go").await);
    while !shown.is_empty() {
        let listed = page.listed("s").await;
        let ids = |questions: &[Value], field: &str| questions.iter().map(|it| it[field].clone()).collect::<Vec<_>>();
        assert_eq!(ids(&shown, "requestId"), ids(&listed, "id"));
        let answered = page.answer("s", &shown[0], &json!({"text": shown.len().to_string()})).await;
        shown = questions(&answered);
        if shown.is_empty() {
            assert_eq!(done(&answered)["data"]["all"], json!(["3", "2", "1"]));
        }
    }
    assert!(page.listed("s").await.is_empty());
}

/// A turn begins with its session, ends with one `done`, and what ends it otherwise comes right before.
fn check_grammar(path: &str, chunks: &[Value]) {
    let kinds = kinds(chunks);
    assert_eq!((kinds.first(), kinds.last()), (Some(&"session"), Some(&"done")), "{path}: {kinds:?}");
    for once in ["session", "done", "checkpoint", "error", "cancelled"] {
        assert!(kinds.iter().filter(|kind| **kind == once).count() <= 1, "{path}: {once} in {kinds:?}");
    }
    for last in ["cancelled", "checkpoint"] {
        let at = kinds.iter().position(|kind| *kind == last);
        assert!(at.is_none_or(|at| at == kinds.len() - 2), "{path}: {last} in {kinds:?}");
    }
    // A refused answer is followed by its question, which is open still.
    let refused = kinds.iter().position(|kind| *kind == "error");
    let is_left = |kind: &&str| ["error", "interrupt", "done"].contains(kind);
    assert!(refused.is_none_or(|at| kinds[at..].iter().all(is_left)), "{path}: {kinds:?}");
    let asked = kinds.iter().position(|kind| *kind == "interrupt");
    let is_closed = |kind: &&str| ["interrupt", "checkpoint", "done"].contains(kind);
    assert!(asked.is_none_or(|at| kinds[at..].iter().all(is_closed)), "{path}: {kinds:?}");
}

#[tokio::test]
async fn b138_every_path_of_a_turn_keeps_the_grammar() {
    let (world, acts) = (World::new(), Counter::new());
    let page = Page::of(&world, &[acting(&acts), pair(), saying()]).await;
    let of = |workflow: &str| {
        let mut body = message("s", "go");
        body["workflowId"] = workflow.into();
        body
    };
    let (yes, no, bad) = (json!({"selected": "approve"}), json!({"selected": "decline"}), json!({"selected": "x"}));
    check_grammar("said", &page.chat(&of("saying")).await);
    let shown = page.chat(&of("acting")).await;
    check_grammar("paused", &shown);
    let question = &questions(&shown)[0];
    for (path, fields) in [("invalid", &bad), ("denied", &no), ("repeated", &no), ("conflict", &yes)] {
        check_grammar(path, &page.answer("s", question, fields).await);
    }
    let two = questions(&page.chat(&of("pair")).await);
    for (path, question) in [("one of two", &two[0]), ("one of two again", &two[0]), ("two of two", &two[1])] {
        check_grammar(path, &page.answer("s", question, &json!({"text": "x"})).await);
    }
    let question = questions(&page.chat(&of("acting")).await).remove(0);
    for path in ["cancelled", "cancelled again"] {
        check_grammar(path, &page.answer("s", &question, &json!({"cancel": true})).await);
    }
    let question = questions(&page.chat(&of("acting")).await).remove(0);
    check_grammar("of another session", &page.answer("t", &question, &yes).await);
    world.advance(Duration::from_mins(16));
    check_grammar("expired", &page.answer("s", &question, &yes).await);
    let never = json!({"resumeToken": "never", "requestId": question["requestId"]});
    check_grammar("unknown", &page.answer("s", &never, &yes).await);
    assert_eq!(page.post("/chat", &of("no-such")).await.0, 404, "no stream begins");
}

#[tokio::test]
async fn b141_a_message_is_never_taken_for_an_answer_nor_an_answer_for_a_message() {
    for (policy, kept) in [(WaitingPolicy::StartNew, 2), (WaitingPolicy::Refuse, 1), (WaitingPolicy::Supersede, 1)] {
        let (world, acts) = (World::new(), Counter::new());
        let page = Page::with(&world, &[acting(&acts)], |agent| agent.on_waiting(policy)).await;
        let first = questions(&page.say("s", "go").await).remove(0);
        if policy == WaitingPolicy::Refuse {
            let (status, said) = page.post("/chat", &message("s", "approve")).await;
            assert_eq!((status, said["failure"]["code"].as_str()), (409, Some("CONFLICT")));
        } else {
            assert_ne!(questions(&page.say("s", "approve").await)[0]["requestId"], first["requestId"]);
        }
        assert_eq!((page.listed("s").await.len(), acts.count()), (kept, 0), "{policy:?}");
        let answered = page.answer("s", &first, &json!({"selected": "decline"})).await;
        match policy {
            WaitingPolicy::Supersede => assert_eq!(error(&answered), "INTERRUPT_CANCELLED"),
            _ => assert_eq!(done(&answered)["data"]["decision"], "decline"),
        }
        // Nothing waits for this answer any more, and it begins nothing.
        let late = page.answer("s", &first, &json!({"selected": "approve"})).await;
        assert!(["INTERRUPT_ALREADY_RESOLVED", "INTERRUPT_CANCELLED"].contains(&error(&late)), "{policy:?}: {late:?}");
        assert_eq!(acts.count(), 0);
    }
}

#[tokio::test]
async fn b143_one_approved_and_one_denied_are_both_final_and_the_run_goes_on_once() {
    let (world, ends) = (World::new(), Counter::new());
    let workflow = one_node(
        "two",
        with(ends.clone(), |ctx, ends| async move {
            let ask = |question| kortyx_tests::approve_or_decline(question);
            let (a, b) = join!(ctx.interrupt("a", ask("A?")), ctx.interrupt("b", ask("B?")));
            ends.hit();
            Ok(NodeOutput::new().data("both", &[a?, b?]))
        }),
    );
    let page = Page::of(&world, &[workflow]).await;
    let shown = page.say("s", "go").await;
    let asked = questions(&shown);
    let first = page.answer("s", &asked[0], &json!({"selected": "approve"})).await;
    assert_eq!((questions(&first).len(), ends.count()), (1, 0));
    let second = page.answer("s", &asked[1], &json!({"selected": "decline"})).await;
    assert_eq!(done(&second)["data"]["both"], json!(["approve", "decline"]));
    for question in &asked {
        let id = question["requestId"].as_str().unwrap();
        assert_eq!(page.get(&format!("/interrupts/{id}")).await.1["status"], "answered");
    }
    assert_eq!((page.listed("s").await.len(), ends.count()), (0, 1));
}
