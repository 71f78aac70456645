//! `cargo xtask bench`.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::error::Error;
use crate::process;

/// Runs the bench with the given arguments and passes its exit code on.
pub(crate) fn command(args: &[OsString]) -> Result<ExitCode, Error> {
    let mut cargo = process::cargo();
    cargo.args(["run", "--release", "--quiet", "--package", "kortyx-bench", "--"]).args(args);
    let status = cargo.status().map_err(Error::run("cargo"))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
