//! Installs what is missing.

use std::path::Path;
use std::time::Duration;

use super::Server;
use super::account::is_root;
use super::schemathesis;
use super::software::{self, Software};
use crate::console::say;
use crate::error::Error;
use crate::process::{self, Ended};

/// Longer than a package manager takes.
const LIMIT: Duration = Duration::from_mins(15);

/// A package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manager {
    Apt,
    Apk,
    Dnf,
    Brew,
}

/// Installs these programs and what these servers need, unless it is there or their URLs are given. Says first what it runs.
pub(crate) fn provision(servers: &[Server], programs: &[Software], logs: &Path) -> Result<(), Error> {
    let mut lacking = software::lacking(servers, programs);
    if lacking.is_empty() {
        return Ok(());
    }
    say(format_args!("\n== provision: {}", software::names(&lacking)));
    let all = lacking.len();
    lacking.retain(|software| *software != Software::Schemathesis);
    let has_all_managed = lacking.len() == all;
    let mut installing = Vec::new();
    if !lacking.is_empty() {
        installing.push(install(&lacking, logs)?);
    }
    if !has_all_managed {
        for (place, command) in schemathesis::commands().into_iter().enumerate() {
            run(&command, &logs.join(format!("schemathesis-{place}.log")))?;
            installing.push(command);
        }
    }
    let lacking = software::lacking(servers, programs);
    if lacking.is_empty() {
        return Ok(());
    }
    let commands: Vec<_> = installing.iter().map(|command| format!("`{}`", command.join(" "))).collect();
    let advice = format!("{} did not bring it", commands.join(", "));
    Err(Error::NotInstalled { software: software::names(&lacking), advice })
}

/// Installs these with the system's package manager, and returns the command that did.
fn install(software: &[Software], logs: &Path) -> Result<Vec<String>, Error> {
    let manager = Manager::find().ok_or_else(|| software::missing(software))?;
    if let Some(refresh) = manager.refresh() {
        // Of the lists of several sources one may be out of reach; the installation tells whether it was needed.
        run(&refresh, &logs.join("refresh.log")).unwrap_or_else(|error| say(format_args!("   FAIL  {error}")));
    }
    let command = manager.install(software);
    run(&command, &logs.join("install.log"))?;
    Ok(command)
}

impl Manager {
    /// The one of this system.
    pub(super) fn find() -> Option<Self> {
        let managers = [Self::Apt, Self::Apk, Self::Dnf, Self::Brew];
        managers.into_iter().find(|manager| software::find(&[manager.program()]).is_some())
    }

    /// The command that installs these.
    pub(super) fn install(self, software: &[Software]) -> Vec<String> {
        let arguments: &[&str] = match self {
            Self::Apt => &["install", "--yes", "--no-install-recommends"],
            Self::Apk => &["add"],
            Self::Dnf => &["install", "--assumeyes"],
            Self::Brew => &["install"],
        };
        let packages = software.iter().flat_map(|software| self.packages(*software));
        self.command(arguments.iter().chain(packages))
    }

    /// The command that learns what there is to install.
    fn refresh(self) -> Option<Vec<String>> {
        match self {
            Self::Apt | Self::Apk => Some(self.command(["update"].iter())),
            Self::Dnf | Self::Brew => None,
        }
    }

    fn command<'a>(self, arguments: impl Iterator<Item = &'a &'a str>) -> Vec<String> {
        let sudo = (self != Self::Brew && !is_root()).then_some("sudo");
        let quiet: &[&str] = if self == Self::Apt { &["env", "DEBIAN_FRONTEND=noninteractive"] } else { &[] };
        let words = sudo.into_iter().chain(quiet.iter().copied()).chain([self.program()]);
        words.chain(arguments.copied()).map(str::to_owned).collect()
    }

    fn program(self) -> &'static str {
        match self {
            Self::Apt => "apt-get",
            Self::Apk => "apk",
            Self::Dnf => "dnf",
            Self::Brew => "brew",
        }
    }

    fn packages(self, software: Software) -> &'static [&'static str] {
        match (software, self) {
            (Software::Redis, Self::Apt) => &["redis-server"],
            (Software::Redis, _) => &["redis"],
            (Software::Postgres, Self::Dnf) => &["postgresql-server"],
            (Software::Postgres, Self::Apk) => &["postgresql", "postgresql-client"],
            (Software::Postgres, Self::Apt) => &["postgresql"],
            (Software::Postgres, Self::Brew) => &["postgresql@17"],
            (Software::PgBouncer, _) => &["pgbouncer"],
            (Software::Chromium, Self::Apt) => &["chromium", "chromium-driver"],
            (Software::Chromium, Self::Apk) => &["chromium", "chromium-chromedriver"],
            (Software::Chromium, Self::Dnf | Self::Brew) => &["chromium", "chromedriver"],
            (Software::Python, Self::Apt) => &["python3-venv"],
            (Software::Python, _) => &["python3"],
            // Not among what it has.
            (Software::Schemathesis, _) => &[],
        }
    }
}

fn run(words: &[String], log: &Path) -> Result<(), Error> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    say(format_args!("   ...   `{}`", words.join(" ")));
    let mut command = process::command(program);
    command.args(arguments);
    match process::logged(command, log, None, LIMIT)? {
        Ended::Well => Ok(()),
        Ended::Badly | Ended::TimedOut => {
            Err(Error::Command { command: words.join(" "), stderr: process::tail(log, 20) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(manager: Manager, software: &[Software]) -> String {
        let line = manager.install(software).join(" ");
        line.strip_prefix("sudo ").unwrap_or(&line).to_owned()
    }

    #[test]
    fn one_command_installs_everything_without_a_question() {
        let all = [Software::Redis, Software::Postgres, Software::PgBouncer, Software::Chromium];

        assert_eq!(
            line(Manager::Apt, &all),
            "env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
             redis-server postgresql pgbouncer chromium chromium-driver"
        );
        assert_eq!(
            line(Manager::Apk, &all),
            "apk add redis postgresql postgresql-client pgbouncer chromium chromium-chromedriver"
        );
        assert_eq!(
            line(Manager::Dnf, &all),
            "dnf install --assumeyes redis postgresql-server pgbouncer chromium chromedriver"
        );
        assert_eq!(line(Manager::Brew, &all), "brew install redis postgresql@17 pgbouncer chromium chromedriver");
    }

    #[test]
    fn a_person_without_rights_is_asked_for_them_where_the_manager_needs_them() {
        let by_sudo = |manager: Manager| manager.install(&[Software::Redis]).first().is_some_and(|word| word == "sudo");

        assert_eq!(by_sudo(Manager::Apt), !is_root());
        assert!(!by_sudo(Manager::Brew));
    }
}
