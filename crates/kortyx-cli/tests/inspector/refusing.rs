//! What the program does not do, and what it ends with then.

use serde_json::Value;

use crate::world::{World, kortyx};

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_changed_without_write() {
    let world = World::new().await;
    let question = world.waiting().await;
    let (id, run) = (question.request_id.as_str(), world.run_of(&question).await);
    let commands: [&[&str]; 6] = [
        &["interrupts", "answer", id, "--select", "approve", "--as", "ada"],
        &["interrupts", "cancel", id, "--as", "ada"],
        &["runs", "cancel", run.as_str()],
        &["runs", "resume", run.as_str()],
        &["store", "prune"],
        &["store", "setup"],
    ];
    let before = world.json(&["runs", "show", run.as_str()]).await;

    for command in commands {
        let said = world.kortyx(command).await;
        assert_eq!(said.code, 5, "{command:?}: {said:?}");
        assert!(said.err.contains("--write") && said.out.is_empty(), "{said:?}");
    }

    assert_eq!(world.json(&["runs", "show", run.as_str()]).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_fit_is_refused_with_the_reason_and_the_question_stays_open() {
    let world = World::new().await;
    let question = world.waiting().await;
    let id = question.request_id.as_str();

    let said = world.kortyx(&["interrupts", "answer", id, "--select", "aprove", "--as", "ada", "--write"]).await;

    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.err.contains("`aprove` is not one of the options"), "{said:?}");
    let said = world.kortyx(&["interrupts", "answer", id, "--text", "x", "--as", "ada", "--write", "--json"]).await;
    let error: Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!((said.code, &error["kind"], &error["error"]["code"]), (4, &"error".into(), &"INVALID_RESPONSE".into()));
    assert_eq!(world.json(&["interrupts", "show", id]).await["interrupt"]["status"], "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_answer_is_told_that_another_won() {
    let world = World::new().await;
    let question = world.waiting().await;
    let answer =
        |option| ["interrupts", "answer", question.request_id.as_str(), "--select", option, "--as", "ada", "--write"];
    world.json(&answer("approve")).await;

    let said = world.kortyx(&answer("revise")).await;

    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.err.contains("another answer"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_failure_has_its_exit_code() {
    let world = World::new().await;
    let run = world.run_of(&world.waiting().await).await;
    let cases: [(&[&str], i32); 7] = [
        (&["interrupts", "show", "human-of-nobody"], 3),
        (&["runs", "show", "run-of-nobody"], 3),
        (&["sessions", "show", "nobody"], 3),
        (&["checkpoints", "list", "nobody"], 3),
        (&["runs", "resume", run.as_str(), "--write"], 4),
        (&["interrupts", "answer", "x", "--write"], 2),
        (&["workflows", "topology", "/nowhere.yaml"], 2),
    ];
    for (command, code) in cases {
        let said = world.kortyx(command).await;
        assert_eq!(said.code, code, "{command:?}: {said:?}");
        assert!(!said.err.is_empty() && said.out.is_empty(), "{command:?}: {said:?}");
    }
}

#[tokio::test]
async fn a_program_can_read_what_is_wrong_with_its_command_line() {
    for wrong in
        [&["--json", "runs", "shw"][..], &["runs", "list", "--watch=0s", "--json"], &["runs", "show", "--json"]]
    {
        let said = kortyx(&wrong.iter().map(|&word| word.to_owned()).collect::<Vec<_>>()).await;
        let error: Value = serde_json::from_str(&said.err).unwrap();
        assert_eq!((said.code, &error["error"]["code"]), (2, &"USAGE".into()), "{wrong:?}");
        assert_eq!((said.err.lines().count(), said.out.as_str()), (1, ""), "{said:?}");
    }
}

#[test]
fn an_error_that_nobody_reads_ends_with_its_exit_code() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_kortyx"));
    let status = command.args(["--store", "mysql://host", "runs", "list"]).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[tokio::test]
async fn a_password_is_shown_nowhere() {
    // None of them can be used, so the address is what the errors are about.
    for address in ["postgres://app:hunter2@host:port/db", "redis://app:hunter2@:1", "mysql://app:hunter2@host"] {
        let arguments = ["--store", address, "runs", "show", "run-1"];
        let said = kortyx(&arguments.map(str::to_owned)).await;
        assert!(said.code == 1 || said.code == 2, "{said:?}");
        assert!(!said.err.contains("hunter2") && !said.out.contains("hunter2"), "{said:?}");
    }
    let said = kortyx(&["interrupts".to_owned(), "show".to_owned(), "x".to_owned()]).await;
    assert!(said.code == 2 && said.err.contains("--store"), "{said:?}");
}
