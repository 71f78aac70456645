//! The store that the environment names, and looking again and again.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use kortyx_orchestrator::{Agent, ExecuteOptions};
use kortyx_protocol::ResumeResponse;
use serde_json::{Value, json};

use crate::world::{World, workflow};

/// The variable of the library for the server that the tests are given, and its address; an `SQLite` file without one.
fn named(file: &str) -> (&'static str, String) {
    let url = |name: &str| std::env::var(name).unwrap();
    match std::env::var("KORTYX_TEST_STORE").as_deref() {
        Ok("postgres") => ("KORTYX_POSTGRES_URL", url("KORTYX_TEST_POSTGRES_URL")),
        Ok("redis") => ("KORTYX_REDIS_URL", url("KORTYX_TEST_REDIS_URL")),
        Ok("redis-cluster") => ("KORTYX_REDIS_URL", url("KORTYX_TEST_REDIS_CLUSTER_URL")),
        _ => ("KORTYX_SQLITE_PATH", file.to_owned()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_that_the_environment_names_is_looked_into() {
    let directory = tempfile::tempdir().unwrap();
    let (variable, address) = named(directory.path().join("k.db").to_str().unwrap());
    let value = address.clone();
    let workflow = workflow();
    let agent = Agent::builder().workflow(&workflow).without_worker();
    let agent =
        agent.from_variables(move |name| (name == variable).then(|| value.clone().into())).build().await.unwrap();
    let waits = agent.execute(&workflow, Value::Null, ExecuteOptions::new()).await.unwrap();
    let question = waits.interrupts()[0].clone();
    let (run, session) = (question.resume.run_id.as_str(), question.resume.session_id.as_str());
    let look = async |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kortyx"));
        command.args(arguments).arg("--json").env(variable, &address);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(!text.contains(question.resume.token.expose()), "no token is shown");
        serde_json::from_str::<Value>(&text).unwrap()["data"].clone()
    };

    let open = look(&["interrupts", "list", "--session", session]).await;
    assert_eq!(open["interrupts"][0]["id"], json!(question.request_id));
    let id = question.request_id.as_str();
    look(&["interrupts", "answer", id, "--select", "approve", "--as", "ada", "--write"]).await;
    let trace = look(&["runs", "trace", run]).await;
    assert_eq!(trace["interrupts"][0]["interrupt"]["answered"]["actor"], "ada");
    assert_eq!(look(&["runs", "list", "--session", session]).await["runs"][0]["isOrphan"], true);
    let check = look(&["store", "check", "--session", session]).await;
    assert_eq!((&check["runs"], &check["broken"], &check["notices"]), (&json!(1), &json!(0), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_tells_what_changed() {
    let world = World::new().await;
    let question = world.waiting().await;
    let run = world.run_of(&question).await;
    let store = format!("sqlite:{}", world.path().display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_kortyx"));
    command.args(["--store", &store, "runs", "show", run.as_str(), "--json", "--watch=20ms"]).stdout(Stdio::piped());
    let mut watching = command.spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap()["data"].clone();

    let before = tokio::task::block_in_place(&mut next);
    world.agent.resume(&question.resume, ResumeResponse::select(["approve"])).await.unwrap();
    let after = tokio::task::block_in_place(&mut next);

    assert_eq!(before["run"]["answers"], 0);
    assert_eq!(after["run"]["answers"], 1);
    watching.kill().unwrap();
    watching.wait().unwrap();
}
