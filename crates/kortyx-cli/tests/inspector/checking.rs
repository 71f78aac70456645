//! Counting what is stored, and looking whether it keeps its promises.

use kortyx_protocol::ResumeResponse;
use serde_json::json;
use sqlx::{Connection as _, SqliteConnection};

use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_an_agent_filled_is_sound() {
    let world = World::new().await;
    let (ended, waits) = (world.waiting().await, world.waiting().await);
    let next = world.agent.resume(&ended.resume, ResumeResponse::select(["approve"])).await.unwrap();
    world.agent.resume(&next.interrupts()[0].resume, ResumeResponse::text("Ada")).await.unwrap();
    world.agent.resume(&waits.resume, ResumeResponse::select(["revise"])).await.unwrap();
    let cancelled = world.run_of(&world.waiting().await).await;
    world.kortyx(&["runs", "cancel", cancelled.as_str(), "--write"]).await;
    let question = world.waiting().await;
    world.kortyx(&["interrupts", "cancel", question.request_id.as_str(), "--as", "ada", "--write"]).await;

    let seen = world.json(&["store", "check"]).await;

    assert_eq!((&seen["findings"], &seen["runs"], &seen["interrupts"]), (&json!([]), &json!(4), &json!(6)));
    let stats = world.json(&["store", "stats"]).await;
    assert_eq!(stats["byStatus"], json!({"cancelled": 2, "completed": 1, "suspended": 1}));
    assert_eq!((&stats["runs"], &stats["orphans"], &stats["openInterrupts"]), (&json!(4), &json!(0), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_broken_is_found_and_named() {
    let breaks: [(&str, &str); 4] = [
        ("UPDATE interrupts SET status = 'superseded'", "waits-for-somebody"),
        ("UPDATE interrupts SET question = x'7b'", "questions-read"),
        ("UPDATE interrupts SET ask = '9:0:other'", "open-questions-are-waited-for"),
        ("UPDATE snapshots SET body = x'7b'", "snapshot-reads"),
    ];
    for (statement, rule) in breaks {
        let world = World::new().await;
        world.waiting().await;
        assert_eq!(world.kortyx(&["store", "check"]).await.code, 0);
        let mut file = SqliteConnection::connect(&format!("sqlite:{}", world.path().display())).await.unwrap();
        sqlx::query(statement).execute(&mut file).await.unwrap();
        file.close().await.unwrap();

        let said = world.kortyx(&["store", "check"]).await;

        assert_eq!(said.code, 6, "{statement}: {said:?}");
        assert!(said.out.contains(rule), "{statement}: {said:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_nobody_drives_is_to_be_looked_at_and_not_broken() {
    let world = World::new().await;
    let question = world.waiting().await;
    let id = question.request_id.as_str();
    world.json(&["interrupts", "answer", id, "--select", "approve", "--as", "ada", "--write"]).await;

    let seen = world.json(&["store", "check"]).await;

    assert_eq!((&seen["broken"], &seen["notices"]), (&json!(0), &json!(1)));
    assert_eq!(seen["findings"][0]["rule"], "running-runs-are-driven");
}
