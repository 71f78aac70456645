//! `cargo xtask serve`: the servers of the lanes, for a command or until Ctrl-C.

use std::ffi::OsString;
use std::process::{ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use crate::console;
use crate::error::Error;
use crate::servers::{Server, Servers, provision};
use crate::{interrupt, process};

/// How often it is looked whether everything still runs.
const POLL: Duration = Duration::from_millis(50);

/// Starts servers, runs the command with their URLs in its environment, stops them and passes its exit code on.
///
/// Without a command it prints the URLs as a shell reads them and waits for Ctrl-C.
pub(crate) fn command(needs: &[Server], install: bool, command: &[OsString]) -> Result<ExitCode, Error> {
    interrupt::watch().map_err(Error::Signals)?;
    let logs = tempfile::tempdir().map_err(Error::file(std::env::temp_dir()))?;
    if install {
        provision(needs, &[], logs.path())?;
    }
    let mut servers = Servers::new(logs.path().to_owned());
    let urls = servers.urls(needs)?;
    let Some((program, arguments)) = command.split_first() else {
        for (variable, url) in &urls {
            console::say(format_args!("export {variable}='{url}'"));
        }
        return wait(&mut servers);
    };
    let mut command = process::command(program);
    command.args(arguments).envs(urls).stdin(Stdio::inherit());
    let code = process::status(command)?.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

fn wait(servers: &mut Servers) -> Result<ExitCode, Error> {
    while !interrupt::happened() {
        if let Some(died) = servers.died().into_iter().next() {
            return Err(died);
        }
        thread::sleep(POLL);
    }
    Ok(ExitCode::SUCCESS)
}
