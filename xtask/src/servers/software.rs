//! What has to be installed, and where its programs are.

use std::env;
use std::fs;
use std::path::PathBuf;

use super::Server;
use super::provision::Manager;
use super::schemathesis;
use crate::error::Error;

/// Where programs also are that the search path of a person may lack.
const SYSTEM: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin"];
/// Folders with a folder for each version of Postgres, and what those are called.
const POSTGRES: [(&str, &str); 5] = [
    ("/usr/lib/postgresql", ""),
    ("/usr", "pgsql-"),
    ("/usr/libexec", "postgresql"),
    ("/opt/homebrew/opt", "postgresql@"),
    ("/usr/local/opt", "postgresql@"),
];

/// Something that has to be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Software {
    /// Or Valkey.
    Redis,
    /// With its tools.
    Postgres,
    /// The pooler.
    PgBouncer,
    /// With its driver.
    Chromium,
    /// With what makes environments of its packages.
    Python,
    /// The pinned version, in a Python environment of this workspace.
    Schemathesis,
}

impl Software {
    /// For people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Redis => "Redis",
            Self::Postgres => "Postgres",
            Self::PgBouncer => "PgBouncer",
            Self::Chromium => "Chromium",
            Self::Python => "Python",
            Self::Schemathesis => "Schemathesis",
        }
    }

    /// Its programs are here.
    pub(super) fn installed(self) -> bool {
        match self {
            Self::Redis => {
                find(&["redis-server", "valkey-server"]).is_some() && find(&["redis-cli", "valkey-cli"]).is_some()
            }
            Self::Postgres => find(&["initdb"]).is_some(),
            Self::PgBouncer => find(&["pgbouncer"]).is_some(),
            Self::Chromium => {
                find(&["chromium", "chromium-browser", "google-chrome"]).is_some() && find(&["chromedriver"]).is_some()
            }
            Self::Python => schemathesis::has_python(),
            Self::Schemathesis => schemathesis::installed(),
        }
    }

    /// It is not installed.
    pub(super) fn missing(self) -> Error {
        missing(&[self])
    }
}

/// What the system lacks of these programs, and of what these servers need. A server that is given needs nothing.
pub(super) fn lacking(servers: &[Server], programs: &[Software]) -> Vec<Software> {
    let mut lacking = Vec::new();
    let started = servers.iter().filter(|server| server.given().is_none());
    for software in started.flat_map(|server| server.software()).chain(programs) {
        if !software.installed() && !lacking.contains(software) {
            lacking.push(*software);
        }
    }
    lacking
}

/// These are not installed: what to do, in one command.
pub(super) fn missing(software: &[Software]) -> Error {
    let advice = match commands(software) {
        Some(commands) => format!("run `{}`, or this command with `--provision`", commands.join(" && ")),
        None => "install it, or name a server in the environment".to_owned(),
    };
    Error::NotInstalled { software: names(software), advice }
}

/// What people would type to install these, if it is known.
fn commands(software: &[Software]) -> Option<Vec<String>> {
    let managed: Vec<_> = software.iter().copied().filter(|one| *one != Software::Schemathesis).collect();
    let mut commands = Vec::new();
    if !managed.is_empty() {
        commands.push(Manager::find()?.install(&managed));
    }
    if software.contains(&Software::Schemathesis) {
        commands.extend(schemathesis::commands());
    }
    Some(commands.into_iter().map(|words| words.join(" ")).collect())
}

/// For people.
pub(super) fn names(software: &[Software]) -> String {
    software.iter().map(|software| software.name()).collect::<Vec<_>>().join(", ")
}

/// The first of these programs that is installed.
pub(super) fn find(programs: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(SYSTEM.iter().map(PathBuf::from)).chain(postgres());
    let folders = env::join_paths(folders).ok()?;
    programs.iter().find_map(|program| which::which_in(program, Some(&folders), "/").ok())
}

/// The folders of the programs of Postgres, the newest version first.
fn postgres() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (folder, prefix) in POSTGRES {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let version = name.to_str().and_then(|name| name.strip_prefix(prefix)?.parse::<f32>().ok());
            found.extend(version.map(|version| (version, entry.path())));
        }
    }
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found.into_iter().flat_map(|(_, folder)| [folder.join("bin"), folder]).collect()
}

/// A password that nobody on this machine guesses.
pub(super) fn password() -> Result<String, Error> {
    let half = || getrandom::u64().map_err(Error::Random);
    Ok(format!("{:016x}{:016x}", half()?, half()?))
}
