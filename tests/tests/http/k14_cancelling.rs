//! K14: what is stopped is over at once, everywhere, and the conversation goes on.

use std::{sync::Arc, time::Duration};

use kortyx::{
    NodeOutput,
    prelude::AskExt as _,
    protocol::SessionId,
    store::{CancelTarget, Scope},
};
use kortyx_tests::{Counter, World, approve_or_decline, eventually, one_node};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::{
    page::{Page, done, error, handle, kinds, message, questions},
    shapes::{acting, pair, saying, working},
};

#[tokio::test]
async fn b167_a_waiting_run_that_is_cancelled_is_over_at_once_on_every_surface() {
    let (world, acts) = (World::new(), Counter::new());
    let page = Page::of(&world, &[acting(&acts)]).await;
    for form in ["chat", "resume", "id"] {
        let shown = page.say(form, "go").await;
        let (question, run) = (&questions(&shown)[0], &done(&shown)["runId"]);
        let (id, cancel) = (question["requestId"].as_str().unwrap(), json!({"type": "cancel"}));
        let status = match form {
            "chat" => done(&page.answer(form, question, &json!({"cancel": true})).await)["status"].clone(),
            "resume" => page.post("/resume", &handle(question, run, form, &cancel)).await.1["status"].clone(),
            _ => page.post(&format!("/interrupts/{id}/answer"), &json!({"response": cancel})).await.1["status"].clone(),
        };
        assert_eq!(status, "cancelled", "{form}");
        assert!(page.listed(form).await.is_empty());
        assert_eq!(page.get(&format!("/interrupts/{id}")).await.1["status"], "cancelled");
        let followed = page.follow(run.as_str().unwrap()).await;
        assert_eq!((kinds(&followed), &done(&followed)["status"]), (vec!["session", "cancelled", "done"], &status));
        let yes = json!({"type": "select", "ids": ["approve"]});
        let late = page.post("/resume", &handle(question, run, form, &yes)).await;
        assert_eq!((late.0, late.1["failure"]["code"].as_str()), (410, Some("INTERRUPT_CANCELLED")), "{late:?}");
    }
    assert_eq!(acts.count(), 0);
}

#[tokio::test]
async fn b168_cancelling_a_session_ends_what_works_and_what_waits() {
    let (world, gate) = (World::new(), Arc::new(Semaphore::new(0)));
    let page = Page::of(&world, &[working(&gate), pair()]).await;
    let mut waits = message("s", "go");
    waits["workflowId"] = "pair".into();
    let asked = questions(&page.chat(&waits).await);
    let mut works = message("s", "go");
    works["workflowId"] = "working".into();
    let mut stream = page.open(&works).await;
    stream.frames(2).await;
    let target = CancelTarget::Session(SessionId::new("s").unwrap());
    let scope = Scope::session(SessionId::new("s").unwrap());
    assert_eq!(page.agent().cancel(target, scope, None).await.unwrap().len(), 2);
    let rest = stream.rest().await.body;
    assert!(rest.contains(r#""status":"cancelled""#) && rest.ends_with("data: [DONE]\n\n"), "{rest}");
    assert!(page.listed("s").await.is_empty());
    assert_eq!(error(&page.answer("s", &asked[0], &json!({"text": "x"})).await), "INTERRUPT_CANCELLED");
}

#[tokio::test]
async fn b169_a_conversation_goes_on_wherever_its_turn_was_stopped() {
    let (world, gate) = (World::new(), Arc::new(Semaphore::new(0)));
    let page = Page::of(&world, &[working(&gate), saying()]).await;
    // A fresh turn is cancelled when its client goes, here after the session and after the message.
    for read in 1..=2 {
        let session = format!("s{read}");
        let mut stream = page.open(&message(&session, "go")).await;
        stream.frames(read).await;
        drop(stream);
        eventually("it is stopped", || async { page.agent().driven_runs() == 0 }).await;
        let mut next = message(&session, "and now?");
        next["workflowId"] = "saying".into();
        let said = page.chat(&next).await;
        assert_eq!(
            (kinds(&said), &done(&said)["status"]),
            (vec!["session", "message", "checkpoint", "done"], &json!("completed"))
        );
    }
    // While it waits there is nothing to stop but the question.
    gate.add_permits(1);
    let asked = questions(&page.say("waits", "go").await).remove(0);
    page.answer("waits", &asked, &json!({"cancel": true})).await;
    let mut next = message("waits", "and now?");
    next["workflowId"] = "saying".into();
    assert_eq!(done(&page.chat(&next).await)["status"], "completed");
}

#[tokio::test]
async fn b171_a_deadline_that_the_author_dealt_with_ends_in_no_error() {
    let world = World::new();
    let workflow = one_node("default", |ctx| async move {
        let ask = approve_or_decline("Go on?").expires_in(Duration::from_secs(10)).default_on_expiry("decline");
        Ok(NodeOutput::new().data("answer", &ctx.interrupt("ask", ask).await?))
    });
    let page = Page::of(&world, &[workflow]).await;
    let shown = page.say("s", "go").await;
    world.advance(Duration::from_secs(10));
    eventually("the default applies", || async { page.agent().worker().pass().await.unwrap().defaulted == 1 }).await;
    let followed = page.follow(done(&shown)["runId"].as_str().unwrap()).await;
    assert_eq!(kinds(&followed).into_iter().find(|kind| *kind == "error"), None, "{followed:?}");
    assert_eq!(
        (&done(&followed)["status"], &done(&followed)["data"]["answer"]),
        (&json!("completed"), &json!("decline"))
    );
}
