//! Golden exchanges: what crosses the wire, byte for byte but for ids, as files in `tests/wire`.
//!
//! Each case is one entry of a table and one file. `KORTYX_WIRE=record cargo test -p kortyx-tests --test wire` writes the files anew;
//! read the difference before you keep it.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails in a test panics")]

mod answers;
mod cases;
mod chat;
mod checkpoints;
mod client;
mod exchange;
mod executions;
mod golden;
mod malformed;
mod names;
mod site;
mod workflows;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use tokio::runtime::Builder;

use crate::cases::Case;

fn main() -> ExitCode {
    let cases: Vec<Case> =
        [chat::cases(), answers::cases(), malformed::cases(), executions::cases(), checkpoints::cases()]
            .into_iter()
            .flatten()
            .collect();
    let names: Vec<String> = cases.iter().map(|case| case.name.clone()).collect();
    let mut trials: Vec<Trial> = cases.into_iter().map(trial).collect();
    trials.push(Trial::test("every_file_belongs_to_one_case", move || Ok(golden::check_names(names)?)));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trial(case: Case) -> Trial {
    Trial::test(case.name.clone(), move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let script = runtime.block_on(exchange::play(case.steps));
        Ok(golden::compare(&case.name, &script)?)
    })
}
