//! The command as people and the continuous integration see it.

use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

type Outcome = Result<(), Box<dyn Error>>;

const SUITE: &str = r#"
#[test]
fn one() { println!("conformance: 2 cases, 2 passed"); }
#[test]
fn two() {
    assert!(std::env::var_os("KORTYX_SQLITE_PATH").is_none());
    assert_eq!(std::env::var("CARGO_PKG_NAME").unwrap(), env!("CARGO_PKG_NAME"));
}
#[test]
#[ignore]
fn three() {}
"#;

/// A workspace with the packages of the memory lane, one test target each, which runs once more under the codec in `kortyx-tests`.
fn workspace(memory: &str, tests: &str) -> Result<TempDir, Box<dyn Error>> {
    workspace_of(&[("kortyx-memory", memory), ("kortyx-tests", tests)])
}

fn workspace_of(packages: &[(&str, &str)]) -> Result<TempDir, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("Cargo.toml"), "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n")?;
    for (name, suite) in packages {
        let package = folder.path().join("crates").join(name);
        fs::create_dir_all(package.join("src"))?;
        fs::create_dir_all(package.join("tests"))?;
        let manifest =
            format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n[lib]\ntest = false\ndoctest = false\n");
        fs::write(package.join("Cargo.toml"), manifest)?;
        fs::write(package.join("src").join("lib.rs"), "")?;
        let target = if *name == "kortyx-tests" { "acceptance.rs" } else { "suite.rs" };
        fs::write(package.join("tests").join(target), suite)?;
    }
    Ok(folder)
}

fn xtask(folder: &Path, args: &[&str]) -> Result<Output, Box<dyn Error>> {
    Ok(xtask_command(folder, args).output()?)
}

fn xtask_command(folder: &Path, args: &[&str]) -> Command {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.args(args).current_dir(folder).env("KORTYX_SQLITE_PATH", "not-for-tests");
    xtask.env("CARGO_BUILD_JOBS", "1").env("CARGO_TARGET_DIR", folder.join("target"));
    xtask
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_lanes_are_listed_without_running_any() -> Outcome {
    let output = xtask(Path::new("."), &["test-matrix", "--list"])?;
    let lanes: Vec<_> = text(&output).lines().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect();

    assert_eq!(
        lanes,
        [
            "lint",
            "docs",
            "layers",
            "features",
            "unit",
            "clients",
            "memory",
            "sqlite",
            "redis",
            "redis-cluster",
            "postgres",
            "postgres-pgbouncer",
            "postgres+cache",
            "load",
            "faults"
        ]
    );
    Ok(())
}

#[test]
fn a_lane_that_needs_a_server_is_listed_with_it() -> Outcome {
    let text = text(&xtask(Path::new("."), &["test-matrix", "--list"])?);
    let lane = text.lines().find(|line| line.starts_with("redis-cluster "));

    let needs = "; needs redis-cluster (KORTYX_TEST_REDIS_CLUSTER_URL)";
    assert!(lane.is_some_and(|line| line.ends_with(needs)), "{text}");
    Ok(())
}

#[test]
fn an_unknown_lane_fails_and_still_ends_with_the_counts() -> Outcome {
    let output = xtask(Path::new("."), &["test-matrix", "--lane", "nope"])?;

    assert!(!output.status.success());
    assert_eq!(text(&output), "0 passed, 1 failed, 0 skipped\n");
    Ok(())
}

#[test]
fn slow_a_lane_ends_with_the_sum_of_its_tests() -> Outcome {
    let folder = workspace(SUITE, SUITE)?;

    let output = xtask(folder.path(), &["test-matrix", "--lane", "memory"])?;

    let text = text(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("conformance: 2 cases, 2 passed"), "{text}");
    assert_eq!(text.lines().last(), Some("6 passed, 0 failed, 3 skipped"));
    Ok(())
}

#[test]
fn slow_the_store_of_a_lane_reaches_the_tests_of_the_workspace_and_the_codec_only_the_acceptance_tests() -> Outcome {
    let folder = workspace(
        "#[test] fn none() { assert!(std::env::var_os(\"KORTYX_TEST_STORE\").is_none()); }",
        "#[test] fn memory() { assert_eq!(std::env::var(\"KORTYX_TEST_STORE\").unwrap(), \"memory\"); }",
    )?;
    let others = "#[test] fn none() { assert!(std::env::var_os(\"KORTYX_TEST_CODEC\").is_none()); }";
    fs::write(folder.path().join("crates").join("kortyx-tests").join("tests").join("others.rs"), others)?;

    let output = xtask(folder.path(), &["test-matrix", "--lane", "memory"])?;

    let text = text(&output);
    assert!(text.contains("kortyx-tests test acceptance KORTYX_TEST_CODEC=1: 1 passed"), "{text}");
    assert_eq!(text.lines().last(), Some("4 passed, 0 failed, 0 skipped"));
    Ok(())
}

#[test]
fn slow_a_failed_test_is_shown_and_counted() -> Outcome {
    let folder = workspace(SUITE, "#[test] fn good() {}\n#[test] fn bad() { panic!(\"the reason\"); }")?;

    let output = xtask(folder.path(), &["test-matrix", "--lane", "memory"])?;

    let text = text(&output);
    assert!(!output.status.success());
    assert!(text.contains("the reason"), "{text}");
    assert_eq!(text.lines().last(), Some("4 passed, 2 failed, 1 skipped"));
    Ok(())
}

#[test]
fn slow_tests_that_do_not_compile_fail_once_and_keep_no_others_from_running() -> Outcome {
    let folder = workspace("fn broken( {", SUITE)?;

    let output = xtask(folder.path(), &["test-matrix", "--lane", "memory"])?;

    let text = text(&output);
    assert!(!output.status.success());
    assert!(text.contains("did not compile: kortyx-memory test suite"), "{text}");
    assert_eq!(text.lines().last(), Some("4 passed, 1 failed, 2 skipped"));
    Ok(())
}

#[test]
fn slow_a_package_that_ran_no_test_fails_its_lane() -> Outcome {
    let folder = workspace(SUITE, "#[test] #[ignore] fn later() {}")?;

    let output = xtask(folder.path(), &["test-matrix", "--lane", "memory"])?;

    let text = text(&output);
    assert!(!output.status.success());
    assert!(text.contains("no test ran"), "{text}");
    assert_eq!(text.lines().last(), Some("2 passed, 2 failed, 3 skipped"));
    Ok(())
}

#[test]
fn slow_a_test_program_that_dies_is_a_failure() -> Outcome {
    let folder = workspace(SUITE, "#[test] fn dies() { std::process::abort(); }")?;

    let output = xtask(folder.path(), &["test-matrix", "--lane", "memory"])?;

    assert!(!output.status.success());
    assert_eq!(text(&output).lines().last(), Some("2 passed, 2 failed, 1 skipped"));
    Ok(())
}

#[test]
fn slow_an_interrupted_run_ends_with_the_counts_and_leaves_no_test_program() -> Outcome {
    let sleeps = "#[test] fn sleeps() {
        std::fs::write(\"id.part\", std::process::id().to_string()).unwrap();
        std::fs::rename(\"id.part\", \"id\").unwrap();
        std::thread::sleep(std::time::Duration::from_secs(600));
    }";
    let folder = workspace(sleeps, sleeps)?;
    let mut run = xtask_command(folder.path(), &["test-matrix", "--lane", "memory"]).stdout(Stdio::piped()).spawn()?;
    let ready = ["kortyx-memory", "kortyx-tests"].map(|name| folder.path().join("crates").join(name).join("id"));
    while !ready.iter().all(|id| id.exists()) && run.try_wait()?.is_none() {
        thread::sleep(Duration::from_millis(20));
    }

    Command::new("kill").args(["-s", "TERM", &run.id().to_string()]).status()?;
    let output = run.wait_with_output()?;

    assert!(!output.status.success());
    assert_eq!(text(&output).lines().last(), Some("0 passed, 2 failed, 0 skipped"), "two run at a time");
    for id in ready {
        let id = fs::read_to_string(id)?;
        assert!(!Command::new("kill").args(["-0", &id]).status()?.success(), "a test program still runs");
    }
    Ok(())
}

/// A test that is content with the URL that its lane should give it, and with no other.
const FINDS_REDIS: &str = "#[test] fn redis() {
    let url = std::env::var(\"KORTYX_TEST_REDIS_URL\").unwrap();
    let (_, address) = url.rsplit_once('@').unwrap();
    assert!(std::net::TcpStream::connect(address).is_ok());
    assert!(std::env::var_os(\"KORTYX_TEST_POSTGRES_URL\").is_none());
}";

#[test]
fn slow_a_lane_finds_its_server_and_the_others_do_not() -> Outcome {
    if which::which("redis-server").is_err() {
        return Ok(());
    }
    let memory = "#[test] fn none() { assert!(std::env::var_os(\"KORTYX_TEST_REDIS_URL\").is_none()); }";
    let tests = "#[test] fn runs() {}";
    let others = [("kortyx-cli", tests), ("kortyx-memory", memory), ("kortyx-tests", tests)];
    let folder = workspace_of(&[&others[..], &[("kortyx-redis", FINDS_REDIS)]].concat())?;
    let mut run = xtask_command(folder.path(), &["test-matrix", "--lane", "redis", "--lane", "memory"]);
    run.env_remove("KORTYX_TEST_REDIS_URL").env("KORTYX_TEST_POSTGRES_URL", "postgres://not-for-this-lane");

    let output = run.env("TMPDIR", folder.path()).output()?;

    let text = text(&output);
    assert!(text.contains("redis runs"), "{text}");
    assert_eq!(text.lines().last(), Some("7 passed, 0 failed, 0 skipped"), "{text}");
    assert!(!left(folder.path())?, "the server's folder is left");
    Ok(())
}

#[test]
fn slow_a_lane_without_its_server_fails_and_keeps_no_other_from_running() -> Outcome {
    let packages = ["kortyx-cli", "kortyx-memory", "kortyx-redis", "kortyx-tests"].map(|name| (name, SUITE));
    let folder = workspace_of(&packages)?;
    let broken = folder.path().join("redis-server");
    fs::write(&broken, "#!/bin/sh\necho the reason; exit 1\n")?;
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755))?;
    fs::copy(&broken, folder.path().join("redis-cli"))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(folder.path().to_owned()).chain(std::env::split_paths(&path)))?;
    let mut run = xtask_command(folder.path(), &["test-matrix", "--lane", "memory", "--lane", "redis"]);

    let output = run.env_remove("KORTYX_TEST_REDIS_URL").env("PATH", path).output()?;

    let text = text(&output);
    assert!(text.contains("FAIL  redis ended (exit status: 1)") && text.contains("| the reason"), "{text}");
    assert_eq!(text.lines().last(), Some("6 passed, 1 failed, 3 skipped"), "{text}");
    Ok(())
}

#[test]
fn a_lane_without_its_browser_fails_with_the_command_that_installs_it() -> Outcome {
    let folder = workspace_of(&[("kortyx-demo", SUITE), ("kortyx-tests", SUITE)])?;
    let manager = folder.path().join("apt-get");
    fs::write(&manager, "#!/bin/sh\nexit 1\n")?;
    fs::set_permissions(&manager, fs::Permissions::from_mode(0o755))?;
    let cargo = which::which("cargo")?;
    if cargo.with_file_name("chromedriver").exists() || Path::new("/usr/local/bin/chromedriver").exists() {
        return Ok(());
    }
    let path = std::env::join_paths([Some(folder.path()), cargo.parent()].into_iter().flatten())?;

    let output = xtask_command(folder.path(), &["test-matrix", "--lane", "clients"]).env("PATH", path).output()?;

    let text = text(&output);
    // The lane's other programs may be there or not.
    let line = text.lines().find(|line| line.starts_with("   FAIL  Chromium"));
    let command = "apt-get install --yes --no-install-recommends chromium chromium-driver";
    assert!(line.is_some_and(|line| line.contains(" is not installed: run `") && line.contains(command)), "{text}");
    assert_eq!(text.lines().last(), Some("0 passed, 1 failed, 0 skipped"), "{text}");
    Ok(())
}

#[test]
fn slow_a_server_that_dies_under_its_lane_fails_it() -> Outcome {
    if which::which("redis-server").is_err() {
        return Ok(());
    }
    let kills = "#[test] fn kills() {
        let url = std::env::var(\"KORTYX_TEST_REDIS_URL\").unwrap();
        std::process::Command::new(\"redis-cli\").args([\"-u\", &url, \"shutdown\"]).status().unwrap();
    }";
    let runs = "#[test] fn runs() {}";
    let folder = workspace_of(&[("kortyx-cli", runs), ("kortyx-redis", kills), ("kortyx-tests", runs)])?;
    let mut run = xtask_command(folder.path(), &["test-matrix", "--lane", "redis"]);

    let output = run.env_remove("KORTYX_TEST_REDIS_URL").env("TMPDIR", folder.path()).output()?;

    let text = text(&output);
    assert!(text.contains("FAIL  redis ended (exit status: 0); the end of its log:"), "{text}");
    assert_eq!(text.lines().last(), Some("4 passed, 1 failed, 0 skipped"), "{text}");
    assert!(!left(folder.path())?, "the server's folder is left");
    Ok(())
}

/// Whether a server left its folder here.
fn left(folder: &Path) -> Result<bool, Box<dyn Error>> {
    let names: Result<Vec<_>, _> = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.file_name())).collect();
    Ok(names?.iter().any(|name| name.to_string_lossy().starts_with("kortyx-")))
}
