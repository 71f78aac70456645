//! What the program changes, with `--write`.

use std::time::Duration;

use kortyx_store::{ClaimRequest, Driver, Lease, Park, RunStatus, StoreErrorKind};
use serde_json::json;

use crate::world::{SECRET_TEXT, World};

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_kept_with_who_gave_it_and_its_run_is_left_to_a_worker() {
    let world = World::new().await;
    let question = world.waiting().await;
    let (id, run) = (question.request_id.as_str(), world.run_of(&question).await);
    let answer = ["interrupts", "answer", id, "--select", "approve", "--as", "ada", "--write"];

    let accepted = world.json(&answer).await;

    assert_eq!(
        (&accepted["seq"], &accepted["actor"], &accepted["isDuplicate"]),
        (&json!(1), &json!("ada"), &json!(false))
    );
    let record = world.store.run(&run).await.unwrap().unwrap();
    assert_eq!((record.status, record.lease_until), (RunStatus::Running, None), "nobody drives it yet");
    let audit = world.json(&["interrupts", "show", id]).await["interrupt"].clone();
    assert_eq!(audit["status"], "answered");
    assert_eq!(audit["answered"], json!({"seq": 1, "at": accepted["at"], "actor": "ada", "byDefault": false}));
    assert_eq!(audit["content"]["answer"], json!({"type": "select", "ids": ["approve"]}));
    assert_eq!(audit["content"]["question"]["question"], SECRET_TEXT);
    let said = world.kortyx(&["interrupts", "show", id]).await;
    assert!(said.out.contains("ada") && said.out.contains(SECRET_TEXT) && said.out.contains("approve"), "{}", said.out);

    let again = world.json(&answer).await;
    assert_eq!((&again["isDuplicate"], &again["at"]), (&json!(true), &accepted["at"]), "the first receipt");

    let pass = world.agent.worker().pass().await.unwrap();
    assert_eq!(pass.recovered, 1, "a worker takes it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_question_ends_its_run() {
    let world = World::new().await;
    let question = world.waiting().await;
    let run = world.run_of(&question).await;

    let cancelled = world.json(&["interrupts", "cancel", question.request_id.as_str(), "--as", "ada", "--write"]).await;

    assert_eq!(cancelled["runStatus"], "cancelled");
    assert_eq!(world.store.run(&run).await.unwrap().unwrap().status, RunStatus::Cancelled);
    let audit = world.json(&["interrupts", "show", question.request_id.as_str()]).await["interrupt"].clone();
    assert_eq!((&audit["status"], &audit["answered"]["actor"]), (&json!("cancelled"), &json!("ada")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_cancelled_with_a_reason_and_pruned_when_its_time_is_over() {
    let world = World::new().await;
    let run = world.run_of(&world.waiting().await).await;

    let cancelled = world.json(&["runs", "cancel", run.as_str(), "--reason", "by mistake", "--write"]).await;

    assert_eq!(cancelled["outcome"], "cancelled");
    let seen = world.json(&["runs", "show", run.as_str()]).await;
    assert_eq!((&seen["run"]["status"], &seen["run"]["reason"]), (&json!("cancelled"), &json!("by mistake")));
    let again = world.kortyx(&["runs", "cancel", run.as_str(), "--write"]).await;
    assert_eq!(again.code, 4, "{again:?}");

    let kept = world.json(&["store", "prune", "--write"]).await;
    assert_eq!(kept["runs"], 0, "a day is not over");
    let removed = world.json(&["store", "prune", "--finished-runs", "0s", "--write"]).await;
    assert_eq!(removed["runs"], 1);
    assert_eq!(world.kortyx(&["runs", "show", run.as_str()]).await.code, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_is_set_up_where_none_was() {
    let world = World::new().await;
    let path = world.path().with_file_name("new.db");
    let store = format!("sqlite:{}", path.display());
    let run = |arguments: &[&str]| {
        let all: Vec<String> = ["--store", &store].iter().chain(arguments).map(|&one| one.to_owned()).collect();
        async move { crate::world::kortyx(&all).await }
    };

    let missing = run(&["interrupts", "list", "--session", "s"]).await;
    assert_eq!(missing.code, 3, "{missing:?}");
    assert!(!path.exists(), "looking makes nothing");
    let said = run(&["store", "setup", "--write"]).await;
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(run(&["interrupts", "list", "--session", "s"]).await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_set_aside_is_handed_back() {
    let world = World::new().await;
    let lease = claimed(&world).await;
    let reason =
        r#"{"version":1,"code":"WORKFLOW_CHANGED","category":"internal","message":"it is gone","retryable":false}"#;
    world.store.park(Park { lease: lease.clone(), reason: reason.to_owned() }).await.unwrap();
    let seen = world.json(&["runs", "list", "--status", "parked"]).await;
    assert_eq!(seen["runs"][0]["id"], json!(lease.run_id));

    let resumed = world.json(&["runs", "resume", lease.run_id.as_str(), "--write"]).await;

    assert_eq!(resumed, json!({"id": lease.run_id, "outcome": "handedBack", "others": 0}));
    assert_eq!(world.agent.worker().pass().await.unwrap().recovered, 1, "a worker takes it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_taken_from_its_driver_only_by_force() {
    let world = World::new().await;
    let lease = claimed(&world).await;
    let resume = ["runs", "resume", lease.run_id.as_str(), "--write"];

    let refused = world.kortyx(&resume).await;
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.err.contains("--force"), "{refused:?}");
    let taken = world.json(&[&resume[..], &["--force"]].concat()).await;

    assert_eq!(taken["outcome"], "takenFromItsDriver");
    let late = world.store.renew(&lease, Duration::from_secs(1), 0).await.unwrap_err();
    assert_eq!(late.kind(), StoreErrorKind::LeaseLost, "its driver can do no harm");
    assert_eq!(world.json(&resume).await["outcome"], "free");
}

/// A run that was answered, in the hands of a driver that does nothing.
async fn claimed(world: &World) -> Lease {
    let question = world.waiting().await;
    let id = question.request_id.as_str();
    world.json(&["interrupts", "answer", id, "--select", "approve", "--as", "ada", "--write"]).await;
    let run = world.store.run(&world.run_of(&question).await).await.unwrap().unwrap();
    let driver = Driver { id: "test".to_owned(), ttl: Duration::from_mins(1) };
    let request = ClaimRequest { driver, workflows: vec![run.workflow], parked_before: None, limit: 1 };
    world.store.claim_orphans(request).await.unwrap().remove(0).lease
}
