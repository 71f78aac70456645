//! Measures in processes of their own, so that none finds what another left in memory.

use std::{
    env,
    process::{Command, Stdio},
};

use serde::Deserialize;

use crate::{allocation::COUNTED, error::Error, measure::Measure, options::Options, row::Row};

/// What a child prints.
#[derive(Deserialize)]
struct Printed {
    rows: Vec<Row>,
}

/// Makes a measure in a process of its own, of the program that it needs.
pub(crate) fn rows(measure: Measure, options: &Options) -> Result<Vec<Row>, Error> {
    let name = measure.name();
    let mut program = env::current_exe().map_err(Error::io("find this program"))?;
    if measure.is_counted() {
        program.set_file_name(COUNTED);
        program.set_extension(env::consts::EXE_EXTENSION);
    }
    let mut command = Command::new(program);
    command.args(["--only", name, "--in-process", "--json"]).stderr(Stdio::inherit());
    if options.quick {
        command.arg("--quick");
    }
    if let Some(questions) = options.questions {
        command.arg("--questions").arg(questions.to_string());
    }
    if let Some(directory) = &options.directory {
        command.arg("--directory").arg(directory);
    }
    let output = command.output().map_err(Error::io("start a process for a measure"))?;
    if !output.status.success() {
        return Err(Error::Child(name, output.status));
    }
    let printed: Printed = serde_json::from_slice(&output.stdout).map_err(|error| Error::Rows(name, error))?;
    Ok(printed.rows)
}
