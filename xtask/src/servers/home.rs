//! The temporary folder that a server lives in, and the commands that run there.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::account::Account;
use crate::error::Error;
use crate::process::{self, Ended};

/// A folder that nobody else may enter. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Home {
    folder: TempDir,
    account: Option<Account>,
}

impl Home {
    /// A new, empty one, of this account.
    pub(super) fn new(name: &str, account: Option<Account>) -> Result<Self, Error> {
        let parent = std::env::temp_dir();
        let folder =
            tempfile::Builder::new().prefix(&format!("kortyx-{name}-")).tempdir().map_err(Error::file(parent))?;
        let home = Self { folder, account };
        home.hand_over(home.path())?;
        Ok(home)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file that nobody else may read.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.path().join(name);
        let file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(Error::file(&path))?;
        self.hand_over(&path)?;
        Ok(path)
    }

    /// A command that runs here: as the folder's account, out of reach of the terminal's Ctrl-C, speaking English, and
    /// without what the environment says about the servers of the person who runs it.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = process::command(program);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("PG") || name.starts_with("REDIS")) {
                command.env_remove(name);
            }
        }
        command.current_dir(self.path()).env("LC_ALL", "C");
        process::own_group(&mut command);
        if let Some(account) = self.account {
            account.apply(&mut command);
        }
        command
    }

    /// Runs a command to its end, and returns all that it printed unless it failed.
    pub(super) fn run(&self, command: Command, limit: Duration) -> Result<String, Error> {
        let line = process::line(&command);
        let log = self.path().join("output");
        let ended = process::logged(command, &log, None, limit)?;
        let printed = fs::read(&log).map_err(Error::file(&log))?;
        let printed = String::from_utf8_lossy(&printed).into_owned();
        match ended {
            Ended::Well => Ok(printed),
            Ended::Badly => Err(Error::Command { command: line, stderr: printed.trim().to_owned() }),
            Ended::TimedOut => Err(Error::Command { command: line, stderr: format!("it took longer than {limit:?}") }),
        }
    }

    fn hand_over(&self, path: &Path) -> Result<(), Error> {
        let Some(Account { user, group }) = self.account else { return Ok(()) };
        chown(path, Some(user), Some(group)).map_err(Error::file(path))
    }
}
