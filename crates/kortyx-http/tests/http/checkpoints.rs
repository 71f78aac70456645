//! Checkpoints over HTTP: within the caller's scope, and in the shapes of the protocol.

use serde_json::{Value, json};

use crate::{
    client::{Call, Reply},
    world::Site,
};

async fn turn(site: &Site) -> Value {
    let body = json!({"sessionId": "s1", "messages": [{"role": "user", "content": "Hello"}]});
    let chunks = Call::post(site.address, "/chat", &body).send().await.chunks();
    chunks.into_iter().find(|chunk| chunk["type"] == "checkpoint").expect("a turn leaves a checkpoint")
}

fn ask(site: &Site, body: &Value) -> Call {
    Call::post(site.address, "/checkpoints", body)
}

async fn asked(site: &Site, body: &Value) -> Reply {
    ask(site, body).send().await
}

#[tokio::test]
async fn checkpoints_are_listed_read_gone_back_to_and_forked() {
    let site = Site::start().await;
    let (first, _second) = (turn(&site).await, turn(&site).await);
    let listed = asked(&site, &json!({"action": "list", "sessionId": "s1"})).await.json();
    let labels: Vec<_> = listed.as_array().unwrap().iter().map(|one| one["turnIndex"].as_u64().unwrap()).collect();
    assert_eq!((labels, &listed[0]["label"]), (vec![0, 1, 2], &json!("session start")));
    let id = &first["id"];
    let got = asked(&site, &json!({"action": "get", "checkpointId": id})).await.json();
    assert_eq!((&got["id"], got["activePendingRequests"].as_array().unwrap().len()), (id, 1));
    let forked = asked(&site, &json!({"action": "fork", "checkpointId": id, "newSessionId": "s2"})).await.json();
    assert_eq!((&forked["sessionId"], &forked["forkedFrom"]), (&json!("s2"), id));
    let back = asked(&site, &json!({"action": "rollback", "checkpointId": id})).await.json();
    assert_eq!((&back["head"], back["activePendingRequests"].as_array().unwrap().len()), (id, 1));
    let again = asked(&site, &json!({"action": "fork", "checkpointId": id, "newSessionId": "s2"})).await;
    assert_eq!(again.refusal(), (409, "CONFLICT".to_owned()));
}

#[tokio::test]
async fn what_is_unknown_or_another_tenants_looks_the_same() {
    let site = Site::start().await;
    let id = turn(&site).await["id"].clone();
    let unknown = json!("cp-00000000-0000-4000-8000-000000000000");
    for action in ["get", "rollback", "fork"] {
        let body = |id: &Value| json!({"action": action, "checkpointId": id});
        let theirs = ask(&site, &body(&id)).header("x-tenant", "spy").send().await;
        let none = asked(&site, &body(&unknown)).await;
        assert_eq!((theirs.status, &theirs.body), (none.status, &none.body), "{action}");
        assert_eq!(theirs.status, if action == "get" { 200 } else { 404 });
    }
    let list = json!({"action": "list", "sessionId": "s1"});
    assert_eq!(ask(&site, &list).header("x-tenant", "spy").send().await.json(), json!([]));
    let refused = ask(&site, &list).header("x-tenant", "nobody").send().await;
    assert_eq!(refused.refusal(), (403, "SCOPE_REQUIRED".to_owned()));
    let squat = json!({"action": "fork", "checkpointId": id, "newSessionId": "s7"});
    assert_eq!(ask(&site, &squat).header("x-session", "s1").send().await.refusal().0, 404);
    let extra = json!({"action": "list", "sessionId": "s1", "more": 1});
    assert_eq!(asked(&site, &extra).await.refusal(), (400, "INVALID_REQUEST".to_owned()));
}

#[tokio::test]
async fn a_session_of_another_tenant_is_not_taken_over() {
    let site = Site::start().await;
    turn(&site).await;
    let body = json!({"sessionId": "s1", "messages": [{"role": "user", "content": "Hello"}]});
    let theirs = Call::post(site.address, "/chat", &body).header("x-tenant", "spy").send().await;
    assert_eq!(theirs.refusal(), (404, "NOT_FOUND".to_owned()));
}
