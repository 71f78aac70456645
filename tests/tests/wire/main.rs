//! Golden exchanges: what crosses the wire, byte for byte but for ids, as files in `tests/wire`.
//!
//! Each case is one entry of a table and one file. `KORTYX_WIRE=record cargo test -p kortyx-tests --test wire` writes the files anew;
//! read the difference before you keep it. What the served document does not say of a body or a status fails as well.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails in a test panics")]

mod answers;
mod cases;
mod chat;
mod checkpoints;
mod document;
mod exchange;
mod executions;
mod following;
mod golden;
mod malformed;
mod names;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use tokio::runtime::Builder;

use crate::cases::Case;

fn main() -> ExitCode {
    let mut cases: Vec<Case> = Vec::new();
    for some in [chat::cases, answers::cases, malformed::cases, executions::cases, checkpoints::cases, following::cases]
    {
        cases.extend(some());
    }
    let names: Vec<String> = cases.iter().map(|case| case.name.clone()).collect();
    let mut trials: Vec<Trial> = cases.into_iter().map(trial).collect();
    trials.push(Trial::test("every_file_belongs_to_one_case", move || Ok(golden::check_names(names)?)));
    trials.push(Trial::test("what_the_document_does_not_say_is_found", || Ok(document::check_itself()?)));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trial(case: Case) -> Trial {
    Trial::test(case.name.clone(), move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let script = runtime.block_on(exchange::play(case.steps))?;
        Ok(golden::compare(&case.name, &script)?)
    })
}
