//! `cargo xtask bench`.

use std::ffi::OsString;
use std::process::{Command, ExitCode, Stdio};

use clap::ValueEnum as _;

use crate::error::Error;
use crate::servers::{Server, Servers};
use crate::{interrupt, process};

/// What is built and run.
const PACKAGE: [&str; 4] = ["--release", "--quiet", "--package", "kortyx-bench"];

/// Runs the bench with the given arguments, with the servers that it says it needs, and passes its exit code on.
pub(crate) fn command(args: &[OsString]) -> Result<ExitCode, Error> {
    interrupt::watch().map_err(Error::Signals)?;
    // The bench starts the other programs of its package.
    let built = process::cargo().arg("build").args(PACKAGE).status().map_err(Error::run("cargo"))?;
    if !built.success() {
        return Ok(ExitCode::FAILURE);
    }
    let asked = bench(args).arg("--needs").stderr(Stdio::inherit()).output().map_err(Error::run("cargo"))?;
    if !asked.status.success() {
        return Ok(exit_code(asked.status.code()));
    }
    let logs = tempfile::tempdir().map_err(Error::file(std::env::temp_dir()))?;
    let mut servers = Servers::durable(logs.path().to_owned());
    let urls = servers.urls(&named(&String::from_utf8_lossy(&asked.stdout)))?;
    let mut measuring = bench(args);
    measuring.envs(urls);
    Ok(exit_code(process::status(measuring)?.code()))
}

fn bench(args: &[OsString]) -> Command {
    let mut cargo = process::cargo();
    cargo.arg("run").args(PACKAGE).args(["--bin", "kortyx-bench", "--"]).args(args);
    cargo
}

/// The servers that a text names, one a line. Help is such a text too, and names none.
fn named(text: &str) -> Vec<Server> {
    text.lines().filter_map(|line| Server::from_str(line, false).ok()).collect()
}

fn exit_code(code: Option<i32>) -> ExitCode {
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_by_name_and_other_lines_are_passed_over() {
        assert_eq!(named("redis\nredis-cluster\npostgres\n"), [Server::Redis, Server::RedisCluster, Server::Postgres]);
        assert!(named("Usage: cargo xtask bench\n\n  --store redis\n").is_empty());
    }
}
