//! Whom servers run as that refuse to run as root.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::error::Error;
use crate::process;

/// Accounts without rights that systems have, the best first.
const NAMES: [&str; 2] = ["postgres", "nobody"];

/// An account of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) user: u32,
    pub(super) group: u32,
}

impl Account {
    /// Another account when this program runs as root; otherwise none, and servers run as this program does.
    pub(super) fn unprivileged() -> Result<Option<Self>, Error> {
        if !is_root() {
            return Ok(None);
        }
        let account = NAMES.iter().find_map(|name| Self::named(name));
        account.map(Some).ok_or_else(|| Error::NoAccount(NAMES.join("` or `")))
    }

    /// Makes a command run as this account, without the groups of this program.
    pub(super) fn apply(self, command: &mut Command) {
        command.uid(self.user).gid(self.group);
    }

    fn named(name: &str) -> Option<Self> {
        Some(Self { user: id("-u", name)?, group: id("-g", name)? })
    }
}

/// This program may do everything.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn id(what: &str, name: &str) -> Option<u32> {
    let mut command = process::command("id");
    command.args([what, name]);
    process::output(command).ok()?.trim().parse().ok()
}
