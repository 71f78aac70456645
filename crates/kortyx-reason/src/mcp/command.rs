//! The program of a server that speaks over its standard streams.

use std::{ffi::OsString, fmt, path::PathBuf, process::Stdio};

use tokio::process::Command;

/// What of this process' environment a server gets, so that programs are found and start: never the application's own variables.
const INHERITED: &[&str] = &[
    "HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "USER", // Unix
    "APPDATA",
    "LOCALAPPDATA",
    "PATHEXT",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE", // Windows
];

/// The command that starts a server.
///
/// It gets `PATH`, `HOME` and the like of this process' environment, and what [`env`](Self::env) says; no keys, no database URLs.
///
/// ```
/// use kortyx_reason::McpCommand;
///
/// let command = McpCommand::new("npx").args(["-y", "@acme/files"]).env("ACME_KEY", "…");
/// # let _ = command;
/// ```
#[derive(Clone)]
#[must_use]
pub struct McpCommand {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    folder: Option<PathBuf>,
    show_errors: bool,
}

impl McpCommand {
    /// Starts this program.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self { program: program.into(), args: Vec::new(), env: Vec::new(), folder: None, show_errors: false }
    }

    /// With these arguments too.
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// With this variable in its environment.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// In this folder.
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// What it writes to its standard error appears in this process'. Else nobody sees it.
    pub fn show_errors(mut self) -> Self {
        self.show_errors = true;
        self
    }

    /// The command, with pipes, in a process group of its own.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).env_clear();
        command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        command.stderr(if self.show_errors { Stdio::inherit() } else { Stdio::null() });
        #[cfg(unix)]
        command.process_group(0);
        command
    }
}

impl fmt::Debug for McpCommand {
    /// Without arguments and variables, which may hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpCommand").field("program", &self.program).finish_non_exhaustive()
    }
}
