//! Completions for shells.

use std::io::Write as _;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::{arguments::Arguments, error::Exit};

/// Prints the script. A reader that went away is no error.
pub(super) fn print(shell: Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "kortyx", &mut script);
    drop(std::io::stdout().write_all(&script));
    Exit::Done
}
