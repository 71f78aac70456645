//! The example of this crate, and a subject that breaks a promise.

use std::{path::Path, process::Command};

#[test]
fn the_example_ends_well() {
    // Beside the directory of this test.
    let own = std::env::current_exe().unwrap();
    let example = own.parent().and_then(Path::parent).unwrap().join("examples/payment");
    let output = Command::new(example).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(stdout.contains("raced for: Raced { questions: 20, answers: 2000, runs: 20 }"), "{stdout}");
    assert_eq!(stdout.lines().count(), 4, "{stdout}");
}
