//! Automation of this workspace: `cargo xtask test-matrix`, `serve`, `layers`, `bench`.

mod bench;
mod console;
mod error;
mod features;
mod interrupt;
mod layers;
mod matrix;
mod process;
mod serve;
mod servers;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::Error;
use crate::matrix::Tally;
use crate::servers::Server;

/// Automation of this workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the lanes of the test matrix and ends with the line `N passed, N failed, N skipped`.
    TestMatrix {
        /// Runs only this lane; may be given several times.
        #[arg(long = "lane", value_name = "NAME")]
        lanes: Vec<String>,
        /// Prints the lanes and exits.
        #[arg(long)]
        list: bool,
        /// Installs servers that lanes need and the system lacks, with its package manager.
        #[arg(long)]
        provision: bool,
    },
    /// Starts servers as the lanes do, runs a command with their URLs in its environment, and stops them.
    Serve {
        /// Which.
        #[arg(required = true)]
        servers: Vec<Server>,
        /// Installs them when the system lacks them, with its package manager.
        #[arg(long)]
        provision: bool,
        /// The command; without one the URLs are printed and the servers run until Ctrl-C.
        #[arg(last = true)]
        command: Vec<OsString>,
    },
    /// Proves that crates depend downwards only and stay within their dependency budgets.
    Layers,
    /// Runs the bench on the release build, with the servers it needs; arguments are the bench's own.
    Bench {
        /// Arguments of the bench.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::TestMatrix { list: true, .. } => {
            matrix::list();
            ExitCode::SUCCESS
        }
        Command::TestMatrix { lanes, list: false, provision } => test_matrix(&lanes, provision),
        Command::Serve { servers, provision, command } => {
            serve::command(&servers, provision, &command).unwrap_or_else(|error| report(&error))
        }
        Command::Layers => layers::command().unwrap_or_else(|error| report(&error)),
        Command::Bench { args } => bench::command(&args).unwrap_or_else(|error| report(&error)),
    }
}

/// Whatever happens, the counts are the last line.
fn test_matrix(lanes: &[String], provision: bool) -> ExitCode {
    let total = matrix::run(lanes, provision).unwrap_or_else(|error| {
        report(&error);
        Tally::one_failed()
    });
    console::say(total);
    if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report(error: &Error) -> ExitCode {
    console::complain(error);
    ExitCode::FAILURE
}
