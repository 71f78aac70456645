//! Finding open questions and answering them by id.

use serde_json::{Value, json};

use crate::{
    client::{Call, Reply},
    execute::execute,
    world::Site,
};

async fn list(site: &Site, query: &str) -> Value {
    let reply = Call::get(site.address, &format!("/interrupts{query}")).send().await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

async fn answer(site: &Site, id: &Value, response: Value) -> Reply {
    let path = format!("/interrupts/{}/answer", id.as_str().unwrap());
    Call::post(site.address, &path, &json!({"response": response})).send().await
}

#[tokio::test]
async fn open_questions_are_listed_oldest_first_without_their_secrets() {
    let site = Site::start().await;
    let asked = execute(&site, "pair").await;
    let listed = list(&site, "").await;
    let ids: Vec<_> = listed["interrupts"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
    assert_eq!(ids, [asked["interrupts"][0]["requestId"].clone(), asked["interrupts"][1]["requestId"].clone()]);
    assert_eq!(listed.get("nextCursor"), None);
    let first = &listed["interrupts"][0];
    for (field, value) in [
        ("status", json!("pending")),
        ("runId", asked["runId"].clone()),
        ("sessionId", json!("s1")),
        ("workflow", json!("pair")),
        ("node", json!("node")),
        ("createdAt", json!("2026-01-01T00:00:00.000Z")),
        ("expiresAt", json!("2026-01-01T00:15:00.000Z")),
        ("afterResponseCompleted", json!(false)),
    ] {
        assert_eq!(first[field], value, "{field}");
    }
    assert!(!listed.to_string().contains(asked["resume"]["token"].as_str().unwrap()));
}

#[tokio::test]
async fn a_listing_is_paged_and_filtered() {
    let site = Site::start().await;
    let (first, _) = (execute(&site, "pair").await, execute(&site, "review").await);
    let mut seen = Vec::new();
    let mut query = "?limit=1".to_owned();
    loop {
        let page = list(&site, &query).await;
        seen.extend(page["interrupts"].as_array().unwrap().iter().map(|one| one["id"].to_string()));
        match page["nextCursor"].as_str() {
            Some(cursor) => query = format!("?limit=1&cursor={cursor}"),
            None => break,
        }
    }
    let whole: Vec<_> =
        list(&site, "").await["interrupts"].as_array().unwrap().iter().map(|one| one["id"].to_string()).collect();
    assert_eq!((seen.len(), &seen), (3, &whole));
    let count = async |query: &str| list(&site, query).await["interrupts"].as_array().unwrap().len();
    let run = format!("?runId={}", first["runId"].as_str().unwrap());
    assert_eq!(count(&run).await, 2);
    assert_eq!(count("?sessionId=s1&context.tenant=acme&afterResponseCompleted=false").await, 3);
    for none in ["?sessionId=s2", "?context.tenant=other", "?context.n=1", "?afterResponseCompleted=true"] {
        assert_eq!(count(none).await, 0, "{none}");
    }
    for malformed in ["?limit=0", "?limit=201", "?cursor=nonsense", "?sessionId=%00", "?afterResponseCompleted=maybe"] {
        let reply = Call::get(site.address, &format!("/interrupts{malformed}")).send().await;
        assert_eq!(reply.refusal(), (400, "INVALID_REQUEST".to_owned()), "{malformed}");
    }
}

#[tokio::test]
async fn a_question_is_read_and_answered_by_its_id() {
    let site = Site::start().await;
    let asked = execute(&site, "review").await;
    let id = &asked["interrupt"]["requestId"];
    let get = || Call::get(site.address, &format!("/interrupts/{}", id.as_str().unwrap()));
    assert_eq!(get().send().await.json()["status"], "pending");
    let select = |id: &str| json!({"type": "select", "ids": [id]});
    assert_eq!(answer(&site, id, select("banana")).await.refusal(), (422, "INVALID_RESPONSE".to_owned()));
    assert_eq!(answer(&site, id, json!("approve")).await.refusal(), (400, "INVALID_REQUEST".to_owned()));
    assert_eq!(answer(&site, id, select("approve")).await.json()["status"], "completed");
    assert_eq!(answer(&site, id, select("approve")).await.json()["status"], "completed", "again");
    assert_eq!(answer(&site, id, select("revise")).await.refusal().0, 409);
    assert_eq!(get().send().await.json()["status"], "answered");
    for path in ["/interrupts/human-1", "/interrupts/%00", "/interrupts/%ff", "/interrupts/%20"] {
        assert_eq!(Call::get(site.address, path).send().await.refusal(), (404, "NOT_FOUND".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn the_actor_of_the_caller_is_kept_with_the_answer() {
    let site = Site::start().await;
    let asked = execute(&site, "review").await;
    let id: kortyx_protocol::RequestId = asked["interrupt"]["requestId"].as_str().unwrap().parse().unwrap();
    let body = json!({"response": {"type": "select", "ids": ["approve"]}});
    let call = Call::post(site.address, &format!("/interrupts/{id}/answer"), &body).header("x-actor", "ann");
    assert_eq!(call.send().await.status, 200);
    let record = kortyx_store::Store::interrupt(&*site.store, &id).await.unwrap().unwrap();
    assert!(format!("{record:?}").contains("ann"), "{record:?}");
}
