//! The model of the assistant, where it cannot work.

use std::process::Command;

#[test]
fn a_model_that_cannot_work_is_told_before_anything_is_served() {
    let said =
        Command::new(env!("CARGO_BIN_EXE_kortyx-demo")).args(["--model", "gpt-5-mini"]).env_clear().output().unwrap();
    let error = String::from_utf8(said.stderr).unwrap();
    assert_eq!((said.status.code(), said.stdout.is_empty()), (Some(1), true), "{error}");
    let told = if cfg!(feature = "genai") { "set OPENAI_API_KEY" } else { "build it with the feature `genai`" };
    assert!(error.starts_with("error: ") && error.contains(told), "{error}");
}
