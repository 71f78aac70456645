//! Requests made by schemathesis from the served `OpenAPI` document, against a server in a process of its own.
//!
//! What is checked of every response: no server error; a status, content type and body that the document names; what has its
//! schema is taken, and what has not is refused; other methods are refused. `cargo xtask test-matrix --lane openapi --provision`
//! installs schemathesis; its log and reports are kept in `target/tmp/openapi`.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails in a test panics")]

mod report;
mod session;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = if arguments.list { Vec::new() } else { trials() };
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trials() -> Vec<Trial> {
    match session::run() {
        Ok(session) => report::verdicts(&session).into_iter().map(trial).collect(),
        Err(error) => vec![trial(("schemathesis_runs".to_owned(), Err(error)))],
    }
}

fn trial((name, verdict): (String, Result<(), String>)) -> Trial {
    Trial::test(name, move || Ok(verdict?))
}
