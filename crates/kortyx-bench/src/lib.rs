#![doc = include_str!("../README.md")]

mod allocation;
mod child;
mod crowd;
mod error;
mod listing;
mod measure;
mod memory;
mod number;
mod options;
mod pace;
mod process;
mod reported;
mod row;
mod served;
mod sqlite;
mod statistics;
mod table;
mod template;
mod watched;
mod wire;
mod workload;

use std::{
    error::Error as _,
    io::{self, Write as _},
    iter,
    process::ExitCode,
};

use clap::Parser as _;

use crate::{error::Error, measure::Measure, options::Options, row::Row, served::Server};

/// The program: reads its arguments, makes the measures that they choose, prints them.
pub fn run() -> ExitCode {
    let options = Options::parse();
    let measures = match options.measures() {
        Ok(measures) => measures,
        Err(error) => {
            complain(&error);
            return ExitCode::FAILURE;
        }
    };
    if options.needs {
        print_needs(&measures);
        return ExitCode::SUCCESS;
    }
    let mut rows = Vec::new();
    let mut complete = true;
    for measure in measures {
        match rows_of(measure, &options) {
            Ok(more) => rows.extend(more),
            Err(error) => {
                complain(&error);
                complete = false;
            }
        }
    }
    print(&rows, options.json);
    if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The servers of these measures, by name.
fn print_needs(measures: &[Measure]) {
    let mut names: Vec<&str> = measures.iter().filter_map(|measure| measure.server()).map(Server::name).collect();
    names.dedup();
    let text = names.iter().fold(String::new(), |text, name| text + name + "\n");
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// Makes a measure, in a process of its own unless this is one.
fn rows_of(measure: Measure, options: &Options) -> Result<Vec<Row>, Error> {
    if options.in_process { measure.run(options) } else { child::rows(measure, options) }
}

fn print(rows: &[Row], as_json: bool) {
    let text = if as_json { format!("{:#}\n", table::json(rows)) } else { table::render(rows) };
    // A reader that went away is no reason to fail.
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

fn complain(error: &Error) {
    let causes = iter::successors(error.source(), |cause| (*cause).source());
    let text = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
    let _ = writeln!(io::stderr().lock(), "error: {text}");
}
