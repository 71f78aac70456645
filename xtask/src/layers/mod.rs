//! `cargo xtask layers`: crates depend downwards only, and on little.

mod arrows;
mod tree;
mod weight;

use std::process::ExitCode;

use crate::console;
use crate::error::Error;
use crate::workspace::Workspace;

/// One rule about one crate, and whether it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The rule, for people.
    pub(crate) rule: String,
    /// What breaks it; empty when it holds.
    pub(crate) faults: Vec<String>,
}

/// Judges the whole workspace.
pub(crate) fn verdicts(workspace: &Workspace) -> Result<Vec<Verdict>, Error> {
    let mut verdicts = arrows::verdicts(&workspace.members);
    verdicts.extend(weight::verdicts(workspace)?);
    Ok(verdicts)
}

/// Judges the workspace around the current folder and prints each rule.
pub(crate) fn command() -> Result<ExitCode, Error> {
    let verdicts = verdicts(&Workspace::load()?)?;
    for verdict in &verdicts {
        console::say(format_args!("{} {}", if verdict.faults.is_empty() { "ok  " } else { "FAIL" }, verdict.rule));
        verdict.faults.iter().for_each(|fault| console::say(format_args!("     {fault}")));
    }
    let broken = verdicts.iter().filter(|verdict| !verdict.faults.is_empty()).count();
    console::say(format_args!("{} rules hold, {broken} broken", verdicts.len() - broken));
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
