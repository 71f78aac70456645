//! Runs from their beginning.

use kortyx_protocol::ResumeResponse;
use kortyx_store::{RunStatus, Scope};
use serde_json::{Value, json};

use crate::world::{SECRET_TEXT, World};

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_whoever_they_belong_to() {
    let world = World::new().await;
    let (first, second) = (world.run_of(&world.waiting().await).await, world.run_of(&world.waiting().await).await);
    world.kortyx(&["runs", "cancel", first.as_str(), "--write"]).await;
    let ids = |list: Value| {
        let mut ids: Vec<_> = list["runs"].as_array().unwrap().iter().map(|run| run["id"].clone()).collect();
        ids.sort_by_key(Value::to_string);
        ids
    };

    let mut all = vec![json!(first), json!(second)];
    all.sort_by_key(Value::to_string);
    assert_eq!(ids(world.json(&["runs", "list"]).await), all);
    assert_eq!(ids(world.json(&["runs", "list", "--status", "suspended"]).await), [json!(second)]);
    assert_eq!(ids(world.json(&["runs", "list", "--workflow", "other"]).await), [] as [Value; 0]);
    let page = world.json(&["runs", "list", "--limit", "1"]).await;
    let rest = world.json(&["runs", "list", "--cursor", page["nextCursor"].as_str().unwrap()]).await;
    let mut paged = [ids(page), ids(rest)].concat();
    paged.sort_by_key(Value::to_string);
    assert_eq!(paged, all);
    let said = world.kortyx(&["runs", "list"]).await;
    assert!(said.out.contains("suspended") && said.out.contains("review@3"), "{}", said.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_tells_the_visits_the_steps_and_who_answered_what() {
    let world = World::new().await;
    let question = world.waiting().await;
    let run = world.run_of(&question).await;
    let (session, approve) = (question.resume.session_id.clone(), ResumeResponse::select(["approve"]));
    let answered = world.agent.answer(&question.request_id, Scope::session(session), approve, Some("ada".to_owned()));
    let waits = answered.await.unwrap();

    let trace = world.json(&["runs", "trace", run.as_str()]).await;

    assert_eq!(trace["executions"], 2);
    assert_eq!(trace["frames"][0]["visits"], json!({"review/draft": 1, "review/review": 1}));
    let visit = &trace["activations"][0];
    assert_eq!((&visit["node"], &visit["standing"]), (&json!("review"), &json!("waiting")));
    assert!(visit["beganAt"].is_string());
    let calls: Vec<_> = visit["calls"].as_array().unwrap().iter().map(|call| (&call["kind"], &call["id"])).collect();
    assert_eq!(
        calls,
        [("step", "notify"), ("interrupt", "approval"), ("interrupt", "name")]
            .map(|(kind, id)| (json!(kind), json!(id)))
            .each_ref()
            .map(|(kind, id)| (kind, id))
    );
    assert!(visit["calls"][0]["endedAt"].is_string());
    assert_eq!(visit["calls"][1]["interrupt"], json!(question.request_id));
    assert_eq!(trace["interrupts"][0]["interrupt"]["answered"]["actor"], "ada");
    assert_eq!(trace["interrupts"][0]["activation"], visit["id"]);
    let said = world.kortyx(&["runs", "trace", run.as_str()]).await.out;
    for part in
        ["review/draft ended, once", "step notify done +", "? approval (choice) asked +", "by ada", "? name (text)"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains(SECRET_TEXT), "{said}");
    let with_content = world.kortyx(&["runs", "trace", run.as_str(), "--content"]).await.out;
    assert!(with_content.contains(SECRET_TEXT) && with_content.contains("approve"), "{with_content}");

    // The run ends, and its state is gone; its questions are kept.
    let name = &waits.interrupts()[0];
    world.agent.resume(&name.resume, ResumeResponse::text("Ada")).await.unwrap();
    assert_eq!(world.store.run(&run).await.unwrap().unwrap().status, RunStatus::Completed);
    let said = world.kortyx(&["runs", "trace", run.as_str()]).await.out;
    for part in ["review/review over", "? approval (choice)", "by ada", "completed +"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn open_questions_are_listed_of_everybody_and_closed_ones_of_a_run() {
    let world = World::new().await;
    let (first, second) = (world.waiting().await, world.waiting().await);
    let run = world.run_of(&first).await;
    world.kortyx(&["interrupts", "cancel", first.request_id.as_str(), "--as", "ada", "--write"]).await;

    let open = world.json(&["interrupts", "list"]).await;
    let all = world.json(&["interrupts", "list", "--run", run.as_str(), "--all"]).await;

    let ids =
        |list: &Value| list["interrupts"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&open), [json!(second.request_id)]);
    assert_eq!(ids(&all), [json!(first.request_id)]);
    assert_eq!(all["interrupts"][0]["status"], "cancelled");
    assert_eq!(world.kortyx(&["interrupts", "list", "--all"]).await.code, 2, "of a run");
}
