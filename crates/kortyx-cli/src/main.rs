//! `kortyx`: looks into a store from the terminal, and on request changes what is there.
#![doc = include_str!("../README.md")]

mod arguments;
mod command;
mod error;
mod open;
mod report;
mod show;
mod watch;

use std::process::ExitCode;

use clap::Parser as _;

use crate::{arguments::Arguments, error::Exit};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return arguments::tell(&error, std::env::args_os()).into(),
    };
    arguments.options.color.choice().write_global();
    let json = arguments.options.json;
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            report::complain(&format!("error: the program cannot start: {error}"));
            return Exit::Failed.into();
        }
    };
    match runtime.block_on(command::run(arguments)) {
        Ok(exit) => exit.into(),
        Err(error) => {
            error.tell(json);
            error.exit().into()
        }
    }
}
