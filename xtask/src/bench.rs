//! `cargo xtask bench`.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::error::Error;
use crate::process;

/// Runs the bench with the given arguments and passes its exit code on.
pub(crate) fn command(args: &[OsString]) -> Result<ExitCode, Error> {
    let package = ["--release", "--quiet", "--package", "kortyx-bench"];
    // The bench starts the other programs of its package.
    let built = process::cargo().arg("build").args(package).status().map_err(Error::run("cargo"))?;
    if !built.success() {
        return Ok(ExitCode::FAILURE);
    }
    let mut cargo = process::cargo();
    let status = cargo.arg("run").args(package).arg("--").args(args).status().map_err(Error::run("cargo"))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
