//! K8: who may see, who may answer, and who did.

use kortyx::protocol::RequestId;
use kortyx_tests::{Counter, World, site};
use serde_json::{Value, json};

use crate::{
    page::{Page, answer, done, handle, message, questions},
    shapes::acting,
};

/// The code of a refusal.
fn code(said: &(u16, Value)) -> (u16, &str) {
    (said.0, said.1["failure"]["code"].as_str().unwrap_or_else(|| panic!("{said:?}")))
}

#[tokio::test]
async fn b113_to_another_tenant_nothing_exists_by_any_verb_and_any_id() {
    let (world, acts) = (World::new(), Counter::new());
    let mut page = Page::of(&world, &[acting(&acts)]).await;
    let shown = page.say("s", "go").await;
    let (question, run) = (questions(&shown).remove(0), done(&shown)["runId"].clone());
    let point = page.turns("s").await.remove(1)["id"].clone();
    let yes = json!({"type": "select", "ids": ["approve"]});

    page.used_by("spy");
    assert_eq!(page.get("/interrupts").await.1["interrupts"], json!([]));
    assert_eq!(page.get("/interrupts?sessionId=s").await.1["interrupts"], json!([]));
    assert_eq!(page.turns("s").await, Vec::<Value>::new());
    let refused = [
        page.post("/chat", &answer("s", &question, &json!({"selected": "approve"}))).await,
        page.post("/chat", &message("s", "go")).await,
        page.post("/resume", &handle(&question, &run, "s", &yes)).await,
    ];
    assert!(refused.iter().all(|said| code(said) == (404, "NOT_FOUND")), "{refused:?}");
    // What is another's and what never was are told apart by nothing.
    let (request, run, point) = (question["requestId"].as_str().unwrap(), run.as_str().unwrap(), &point);
    let nobody = "00000000-0000-4000-8000-000000000000";
    for (theirs, never) in [
        (page.get(&format!("/interrupts/{request}")).await, page.get(&format!("/interrupts/human-{nobody}")).await),
        (
            page.post(&format!("/interrupts/{request}/answer"), &json!({"response": yes})).await,
            page.post(&format!("/interrupts/human-{nobody}/answer"), &json!({"response": yes})).await,
        ),
        (page.get(&format!("/runs/{run}/stream")).await, page.get(&format!("/runs/run-{nobody}/stream")).await),
        (
            page.checkpoints("rollback", &json!({"checkpointId": point})).await,
            page.checkpoints("rollback", &json!({"checkpointId": format!("cp-{nobody}")})).await,
        ),
        (
            page.checkpoints("fork", &json!({"checkpointId": point})).await,
            page.checkpoints("fork", &json!({"checkpointId": format!("cp-{nobody}")})).await,
        ),
    ] {
        assert_eq!(code(&theirs), (404, "NOT_FOUND"));
        assert_eq!(theirs, never);
    }
    assert_eq!(page.checkpoints("get", &json!({"checkpointId": point})).await, (200, Value::Null));

    page.used_by("nobody");
    assert_eq!(code(&page.get("/interrupts").await), (403, "SCOPE_REQUIRED"));
    assert_eq!(code(&page.get(&format!("/runs/{run}/stream")).await), (403, "SCOPE_REQUIRED"));
    page.used_by("acme");
    assert_eq!((page.listed("s").await.len(), acts.count()), (1, 0), "nothing happened to it");
    let answered = page.answer("s", &question, &json!({"selected": "approve"})).await;
    assert_eq!((done(&answered)["status"].as_str(), acts.count()), (Some("completed"), 1));
}

#[tokio::test]
async fn b113_neither_the_query_nor_the_body_widens_what_a_caller_may_see() {
    let (world, acts) = (World::new(), Counter::new());
    let mut page = Page::of(&world, &[acting(&acts)]).await;
    page.say("s", "go").await;
    page.used_by("spy");
    assert_eq!(page.get("/interrupts?context.tenant=acme").await.1["interrupts"], json!([]));
    let mut body = message("mine", "go");
    body["context"] = json!({"tenant": "acme"});
    page.chat(&body).await;
    page.used_by("acme");
    assert_eq!(page.get("/interrupts").await.1["interrupts"].as_array().unwrap().len(), 1, "only its own");
    assert!(page.listed("mine").await.is_empty(), "a run of another tenant is not passed off as this one's");
}

#[tokio::test]
async fn b114_who_answered_is_kept_and_who_may_not_is_refused_before_anything_happens() {
    let (world, acts) = (World::new(), Counter::new());
    let mut page = Page::of(&world, &[acting(&acts)]).await;
    let question = questions(&page.say("s", "go").await).remove(0);
    let id = question["requestId"].as_str().unwrap();
    let yes = json!({"response": {"type": "select", "ids": ["approve"]}});
    for (tenant, refusal) in [("banned", (403, "INVALID_REQUEST")), ("stranger", (401, "INVALID_REQUEST"))] {
        page.used_by(tenant);
        let refused = page.post(&format!("/interrupts/{id}/answer"), &yes).await;
        assert_eq!(code(&refused), refusal);
        assert_eq!(code(&page.post("/chat", &answer("s", &question, &json!({"selected": "approve"}))).await), refusal);
    }
    page.used_by("acme");
    assert_eq!((page.listed("s").await.len(), acts.count()), (1, 0));
    assert_eq!(page.post(&format!("/interrupts/{id}/answer"), &yes).await.0, 200);
    let stored = world.store().await.interrupt(&RequestId::new(id).unwrap()).await.unwrap().unwrap();
    assert_eq!(stored.receipt.unwrap().actor.as_deref(), Some(site::ACTOR));
}
