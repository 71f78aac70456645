//! Lists and single things, for people and for programs.

use kortyx_protocol::{CheckpointId, SessionId};
use kortyx_store::NewCheckpoint;
use serde_json::json;

use crate::world::{SECRET_TEXT, World, kortyx};

#[tokio::test(flavor = "multi_thread")]
async fn open_questions_are_listed_by_scope_and_without_what_they_ask() {
    let world = World::new().await;
    let question = world.waiting().await;

    let said = world.kortyx(&["interrupts", "list", "--context", "tenant=acme"]).await;

    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains(question.request_id.as_str()) && said.out.contains("approval (choice)"), "{}", said.out);
    assert!(!said.out.contains(SECRET_TEXT), "content is not listed: {}", said.out);
    assert!(!said.out.contains('\u{1b}'), "no colours where no terminal is");

    let with_content = world.kortyx(&["interrupts", "list", "--context", "tenant=acme", "--content"]).await;
    assert!(with_content.out.contains(SECRET_TEXT), "{}", with_content.out);
    let of_others = world.json(&["interrupts", "list", "--context", "tenant=other"]).await;
    assert_eq!(of_others, json!({"interrupts": [], "isCut": false}));
    let coloured = world.kortyx(&["interrupts", "list", "--context", "tenant=acme", "--color", "always"]).await;
    assert!(coloured.out.contains('\u{1b}'));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_list_hold_every_question_once() {
    let world = World::new().await;
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(json!(world.waiting().await.request_id));
    }
    let list = ["interrupts", "list", "--context", "tenant=acme", "--limit", "2"];

    let first = world.json(&list).await;
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = world.json(&[&list[..], &["--cursor", cursor]].concat()).await;

    let pages = [&first, &second].map(|page| page["interrupts"].as_array().unwrap().clone());
    let listed: Vec<_> = pages.into_iter().flatten().map(|question| question["id"].clone()).collect();
    assert_eq!(listed, asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_shows_where_it_stands_and_what_it_waits_for() {
    let world = World::new().await;
    let question = world.waiting().await;
    let run = world.run_of(&question).await;

    let seen = world.json(&["runs", "show", run.as_str()]).await;

    assert_eq!((&seen["run"]["status"], &seen["run"]["workflow"]), (&json!("suspended"), &json!("review")));
    assert_eq!(seen["run"]["workflowVersion"], "3");
    assert_eq!(seen["run"]["context"], json!({"tenant": "acme"}));
    assert_eq!(seen["openInterrupts"][0]["id"], json!(question.request_id));
    assert_eq!(seen["openInterrupts"][0].get("content"), None);
    let said = world.kortyx(&["runs", "show", run.as_str()]).await;
    assert!(said.out.contains("suspended") && said.out.contains("tenant=\"acme\""), "{}", said.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_shows_its_open_questions() {
    let world = World::new().await;
    let question = world.waiting().await;
    let session = question.resume.session_id.as_str();

    let seen = world.json(&["sessions", "show", session]).await;

    assert_eq!(seen["openInterrupts"][0]["id"], json!(question.request_id));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_checkpoints_of_a_session_are_compared_by_place_and_with_values_only_on_request() {
    let world = World::new().await;
    let session = SessionId::new("chat-1").unwrap();
    for (id, state) in
        [("cp-1", r#"{"v":1,"data":{"draft":"canary one"}}"#), ("cp-2", r#"{"v":1,"data":{"draft":"canary two"}}"#)]
    {
        let checkpoint = NewCheckpoint {
            id: CheckpointId::new(id).unwrap(),
            label: None,
            nodes: vec!["draft".to_owned()],
            workflow: "review".to_owned(),
            workflow_version: None,
            state: state.into(),
            structured_stream_ids: Vec::new(),
        };
        world.store.append_checkpoint(&session, checkpoint).await.unwrap();
    }

    let listed = world.json(&["checkpoints", "list", "chat-1"]).await;
    let diff = world.json(&["checkpoints", "diff", "cp-1", "cp-2"]).await;

    assert_eq!(
        (&listed["checkpoints"][1]["id"], &listed["checkpoints"][1]["parent"]),
        (&json!("cp-2"), &json!("cp-1"))
    );
    assert_eq!(diff["changes"], json!([{"path": "/data/draft", "kind": "changed"}]));
    let said = world.kortyx(&["checkpoints", "diff", "cp-1", "cp-2"]).await.out;
    assert!(said.contains("~ /data/draft") && !said.contains("canary"), "{said}");
    let said = world.kortyx(&["checkpoints", "diff", "cp-1", "cp-2", "--content"]).await.out;
    assert!(said.contains("canary one") && said.contains("canary two"), "{said}");
    let sessions = world.json(&["sessions", "list"]).await;
    assert_eq!((&sessions["sessions"][0]["id"], &sessions["sessions"][0]["turnIndex"]), (&json!("chat-1"), &json!(1)));
    assert_eq!(world.json(&["sessions", "show", "chat-1"]).await["checkpoints"], 2);
    assert_eq!(world.json(&["store", "check"]).await["checkpoints"], 2, "a session without a run is checked too");
}

#[tokio::test]
async fn a_workflow_file_is_drawn_without_its_code() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("document.yaml");
    let text = "id: document\nversion: 1\nnodes:\n  - { id: draft, retry: { attempts: 3 } }\n  - { id: review, use: far.away }\n\
                edges:\n  - { from: draft, to: review }\n  - { from: review, to: __end__, when: approve }\n  \
                - { from: review, to: draft, otherwise: true }\n";
    std::fs::write(&file, text).unwrap();
    let drawn = async |more: &[&str]| {
        let all = [&["workflows", "topology", file.to_str().unwrap()], more].concat();
        let said = kortyx(&all.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>()).await;
        assert_eq!(said.code, 0, "{said:?}");
        said.out
    };

    let tree = "document@1 one node at a time\n├─ draft (start) up to 3 attempts\n│  └─ → review\n└─ review\n   ├─ approve → end\n   \
                └─ otherwise → draft\n";
    assert_eq!(drawn(&[]).await, tree);
    assert!(drawn(&["--format", "dot"]).await.contains("\"review\" -> \"draft\" [label=\"otherwise\"];"));
    assert!(drawn(&["--format", "mermaid"]).await.contains("n1 -->|\"approve\"| finish"));
    let value: serde_json::Value = serde_json::from_str(&drawn(&["--json"]).await).unwrap();
    assert_eq!(value["kind"], "topology");
    let edges = value["data"]["edges"].as_array().unwrap();
    let approve = json!({"from": "review", "to": "__end__", "when": "condition", "condition": "approve"});
    assert!(edges.len() == 3 && edges.contains(&approve), "{edges:?}");
}

#[tokio::test]
async fn completions_name_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let said = kortyx(&["completions".to_owned(), shell.to_owned()]).await;
        assert!(said.code == 0 && said.out.contains("interrupts"), "{shell}");
    }
}
