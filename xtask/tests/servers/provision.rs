//! What happens when a server is not installed, on a search path where it is not.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::world::{World, complaint, installed, printed};

/// A package manager that notes what it is asked for, and then runs a script.
fn manager(world: &World, script: &str) -> (PathBuf, PathBuf) {
    let (program, asked) = (world.path().join("apt-get"), world.path().join("asked"));
    let text = format!("#!/bin/sh\necho \"$DEBIAN_FRONTEND: $*\" >> {}\n{script}\n", asked.display());
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    (program, asked)
}

#[test]
fn a_missing_server_fails_with_the_command_that_installs_it() {
    let world = World::new();
    let (apt, asked) = manager(&world, "");
    let path = world.search_path(&[("apt-get", &apt)]);

    let output = world.serve(&["redis", "redis-cluster", "--", "true"]).env("PATH", path).output().unwrap();

    let complaint = complaint(&output);
    assert!(complaint.contains("Redis is not installed: run `"), "{complaint}");
    let advice = "env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends redis-server`, \
                  or this command with `--provision`";
    assert!(complaint.contains(advice), "{complaint}");
    assert!(!asked.exists(), "it was installed without being asked for");
}

#[test]
fn provision_says_what_it_runs_and_then_uses_what_it_installed() {
    if !installed(&["redis"]) {
        return;
    }
    let world = World::new();
    let place = |name: &str| which::which(name).unwrap().display().to_string();
    let links = format!(
        "[ \"$1\" = update ] || ln -s {} {} {}",
        place("redis-server"),
        place("redis-cli"),
        world.path().join("bin").display()
    );
    let (apt, asked) = manager(&world, &links);
    let path = world.search_path(&[("apt-get", &apt)]);

    let mut serve = world.serve(&["--provision", "redis", "--", "printenv", "KORTYX_TEST_REDIS_URL"]);
    let printed = printed(&serve.env("PATH", path).output().unwrap());

    let (update, install) = (
        "env DEBIAN_FRONTEND=noninteractive apt-get update`",
        "env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends redis-server`",
    );
    assert!(printed.find(update).unwrap() < printed.find(install).unwrap(), "{printed}");
    assert!(printed.lines().last().unwrap().starts_with("redis://"), "{printed}");
    assert_eq!(
        fs::read_to_string(asked).unwrap(),
        "noninteractive: update\nnoninteractive: install --yes --no-install-recommends redis-server\n"
    );
}

#[test]
fn a_failed_installation_shows_what_the_package_manager_said() {
    let world = World::new();
    let (apt, _) = manager(&world, "[ \"$1\" = update ] || { echo 'E: no such package' >&2; exit 100; }");
    let path = world.search_path(&[("apt-get", &apt)]);

    let output = world.serve(&["--provision", "redis", "--", "true"]).env("PATH", path).output().unwrap();

    let complaint = complaint(&output);
    assert!(complaint.contains("E: no such package"), "{complaint}");
    assert!(world.is_clean());
}

#[test]
fn an_installation_that_brings_nothing_is_no_success() {
    let world = World::new();
    let (apt, _) = manager(&world, "");
    let path = world.search_path(&[("apt-get", &apt)]);

    let output = world.serve(&["--provision", "redis", "--", "true"]).env("PATH", path).output().unwrap();

    let complaint = complaint(&output);
    assert!(complaint.contains("redis-server` did not bring it"), "{complaint}");
}

#[test]
fn a_server_that_is_given_is_neither_installed_nor_started() {
    let world = World::new();
    let (apt, asked) = manager(&world, "exit 1");
    let path = world.search_path(&[("apt-get", &apt)]);
    let mut serve = world.serve(&["--provision", "redis", "--", "printenv", "KORTYX_TEST_REDIS_URL"]);

    let output = serve.env("PATH", path).env("KORTYX_TEST_REDIS_URL", "redis://elsewhere").output().unwrap();

    assert_eq!(printed(&output), "redis://elsewhere");
    assert!(!asked.exists());
}

#[test]
fn without_a_package_manager_the_advice_is_to_install_or_to_name_a_server() {
    let world = World::new();
    let path = world.search_path(&[]);

    let output = world.serve(&["redis", "--", "true"]).env("PATH", path).output().unwrap();

    assert!(complaint(&output).contains("Redis is not installed: install it, or name a server in the environment"));
}
