//! Schemathesis: a Python program, in an environment of its own below the target folder.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::software::find;
use crate::process;

/// Its version, and those of all that it needs.
const REQUIREMENTS: &str = include_str!("schemathesis.txt");

/// The version that is wanted runs.
pub(super) fn installed() -> bool {
    let Some(folder) = folder() else { return false };
    let same = fs::read_to_string(folder.join("installed.txt")).is_ok_and(|installed| installed == REQUIREMENTS);
    same && folder.join("bin/schemathesis").exists()
}

/// A Python is here that can make environments and put packages into them.
pub(super) fn has_python() -> bool {
    let Some(python) = find(&["python3"]) else { return false };
    let mut command = process::command(python);
    command.args(["-c", "import ensurepip, venv"]);
    process::output(command).is_ok()
}

/// What installs it.
pub(super) fn commands() -> Vec<Vec<String>> {
    let folder = folder().unwrap_or_else(|| "target/xtask/schemathesis".into());
    let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/servers/schemathesis.txt");
    let words = |words: &[&str], paths: &[PathBuf]| {
        let paths = paths.iter().map(|path| path.display().to_string());
        words.iter().map(|word| (*word).to_owned()).chain(paths).collect::<Vec<_>>()
    };
    let pip = folder.join("bin/pip").display().to_string();
    let install = [pip.as_str(), "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    let remember = [requirements.clone(), folder.join("installed.txt")];
    vec![
        words(&["python3", "-m", "venv", "--clear"], &[folder]),
        words(&install, &[requirements]),
        words(&["cp"], &remember),
    ]
}

/// Where it is: below the target folder, in which cargo keeps notes.
fn folder() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    let target = program.ancestors().find(|folder| folder.join(".rustc_info.json").exists())?;
    Some(target.join("xtask").join("schemathesis"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_is_pinned() {
        let pinned = |line: &str| line.starts_with('#') || line.split_once("==").is_some();
        assert!(REQUIREMENTS.lines().all(pinned), "{REQUIREMENTS}");
        assert!(REQUIREMENTS.lines().any(|line| line.starts_with("schemathesis==")));
    }

    #[test]
    fn it_is_installed_below_the_target_folder() {
        let [venv, install, _] = commands().try_into().unwrap();
        assert!(venv.last().unwrap().ends_with("xtask/schemathesis"), "{venv:?}");
        assert!(Path::new(install.last().unwrap()).exists(), "{install:?}");
    }
}
