//! Servers do not outlive what started them, however it ends.

use std::process::Command;

use super::world::{World, complaint, eventually, installed, listens, signal};

#[test]
fn the_exit_code_of_the_command_is_passed_on_after_its_servers_stopped() {
    if !installed(&["redis"]) {
        return;
    }
    let world = World::new();

    let output = world.serve(&["redis", "--", "sh", "-c", "echo $KORTYX_TEST_REDIS_URL; exit 7"]).output().unwrap();

    assert_eq!(output.status.code(), Some(7));
    assert!(!listens(String::from_utf8_lossy(&output.stdout).trim()));
    assert!(world.is_clean());
}

#[test]
fn a_command_that_cannot_be_run_leaves_no_server() {
    if !installed(&["redis"]) {
        return;
    }
    let world = World::new();

    let output = world.serve(&["redis", "--", "/no/such/program"]).output().unwrap();

    assert!(complaint(&output).contains("cannot run `/no/such/program`"));
    assert!(world.is_clean());
}

#[test]
fn servers_have_stopped_when_an_interrupted_program_ends() {
    if !installed(&["redis", "postgres", "pgbouncer"]) {
        return;
    }
    for (name, server) in [("INT", "redis"), ("TERM", "pgbouncer"), ("HUP", "redis")] {
        let world = World::new();
        let (mut child, url) = world.running(server);
        assert!(listens(&url));

        signal(&child, name);
        child.wait().unwrap();

        assert!(!listens(&url), "{server} still runs after SIG{name}");
        assert!(world.is_clean(), "folders are left after SIG{name}");
    }
}

#[test]
fn an_interrupted_command_ends_before_its_servers() {
    if !installed(&["redis"]) {
        return;
    }
    let world = World::new();
    let ready = world.path().join("ready");
    let script = format!("echo $$ > {0}.part; mv {0}.part {0}; exec sleep 600", ready.display());
    let mut child = world.serve(&["redis", "--", "sh", "-c", &script]).spawn().unwrap();
    eventually("the command runs", || ready.exists());

    signal(&child, "TERM");
    let status = child.wait().unwrap();

    assert!(!status.success());
    let id = std::fs::read_to_string(ready).unwrap();
    assert!(!Command::new("kill").args(["-0", id.trim()]).status().unwrap().success(), "the command still runs");
    assert!(world.is_clean());
}

#[test]
fn servers_stop_soon_after_the_program_was_killed() {
    if !installed(&["redis", "postgres", "pgbouncer"]) {
        return;
    }
    for server in ["redis", "redis-cluster", "pgbouncer"] {
        let world = World::new();
        let (mut child, url) = world.running(server);

        signal(&child, "KILL");
        child.wait().unwrap();

        eventually("the server stops", || !listens(&url));
        // The folder of the log is the program's own; nobody removes it for it.
        eventually("the folders of the servers are gone", || world.folders("kortyx-").is_empty());
    }
}

#[test]
fn a_server_that_dies_is_told_with_the_end_of_its_log() {
    if !installed(&["redis"]) {
        return;
    }
    let world = World::new();
    let (child, url) = world.running("redis");

    Command::new("redis-cli").args(["--no-auth-warning", "-u", &url, "shutdown"]).status().unwrap();

    let complaint = complaint(&child.wait_with_output().unwrap());
    assert!(complaint.contains("redis ended (exit status: 0)"), "{complaint}");
    assert!(complaint.contains("User requested shutdown"), "{complaint}");
    assert!(world.is_clean());
}
