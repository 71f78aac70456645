//! Test programs: built once for all lanes, run by each.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use cargo_metadata::{Artifact, Message};

use crate::error::Error;
use crate::process::{self, Ended};
use crate::workspace::{Member, Workspace, target_label};

/// Where the system looks for shared libraries; programs of procedural macros need the compiler's.
const LIBRARY_PATH: &str = if cfg!(windows) {
    "PATH"
} else if cfg!(target_os = "macos") {
    "DYLD_FALLBACK_LIBRARY_PATH"
} else {
    "LD_LIBRARY_PATH"
};

/// The test programs of some packages.
#[derive(Debug)]
pub(super) struct Programs {
    tests: Vec<Program>,
    binaries: Vec<Program>,
    library_path: OsString,
    /// How the build ended.
    pub(super) ended: Ended,
}

/// An executable that cargo built.
#[derive(Debug, Clone)]
pub(super) struct Program {
    /// The id of its package.
    package: String,
    /// Its target: `lib kortyx_store`, `test faults`.
    pub(super) target: String,
    /// Its target's name alone.
    name: String,
    path: PathBuf,
}

impl Programs {
    /// Builds the tests of all these packages in one go, so that dependencies are built with one set of features.
    ///
    /// Errors in one package do not keep others from being built. What cargo says goes to `log`.
    pub(super) fn build(
        workspace: &Workspace,
        members: &[&Member],
        log: &Path,
        limit: Duration,
    ) -> Result<Self, Error> {
        let messages = log.with_extension("json");
        let mut cargo = process::cargo();
        // What `cargo test --no-run` builds, which knows no `--keep-going`.
        cargo.args(["build", "--bins", "--tests", "--examples", "--keep-going"]);
        cargo.args(["--message-format", "json-render-diagnostics"]);
        let names: BTreeSet<_> = members.iter().map(|member| &member.name).collect();
        for name in names {
            cargo.args(["--package", name]);
        }
        cargo.current_dir(&workspace.root);
        let ended = process::logged(cargo, log, Some(&messages), limit)?;

        let artifacts = artifacts(&messages)?;
        let tests = artifacts.iter().filter(|artifact| artifact.profile.test).filter_map(program).collect();
        let binaries = artifacts.iter().filter(|artifact| !artifact.profile.test).filter_map(program).collect();
        Ok(Self { tests, binaries, library_path: library_path()?, ended })
    }

    /// The test programs of a package, in a stable order.
    pub(super) fn of(&self, member: &Member) -> Vec<&Program> {
        let mut found: Vec<_> = self.tests.iter().filter(|program| program.package == member.id).collect();
        found.sort_by(|a, b| a.target.cmp(&b.target));
        found
    }

    /// Targets of a package, each after its name, that should be test programs and are not: they did not compile.
    pub(super) fn missing<'m>(&self, member: &'m Member) -> Vec<(&'m str, &'m str)> {
        let built: Vec<_> = self.of(member).into_iter().map(|program| &program.target).collect();
        let missing = member.tests.iter().filter(|target| !built.contains(target));
        missing.map(|target| (member.name.as_str(), target.as_str())).collect()
    }

    /// The command that runs a test program as `cargo test` would, with the output of passed tests shown.
    pub(super) fn command(&self, program: &Program, member: &Member) -> Command {
        let mut command = process::command(&program.path);
        command.arg("--show-output").current_dir(&member.folder);
        command.env("CARGO", process::cargo().get_program()).env("CARGO_MANIFEST_DIR", &member.folder);
        command.env("CARGO_PKG_NAME", &member.name).env("CARGO_PKG_VERSION", &member.version);
        command.env(LIBRARY_PATH, &self.library_path);
        for binary in self.binaries.iter().filter(|binary| binary.package == member.id) {
            command.env(format!("CARGO_BIN_EXE_{}", binary.name), &binary.path);
        }
        command
    }
}

fn artifacts(messages: &Path) -> Result<Vec<Artifact>, Error> {
    let file = File::open(messages).map_err(Error::file(messages))?;
    let mut artifacts = Vec::new();
    for message in Message::parse_stream(BufReader::new(file)) {
        if let Message::CompilerArtifact(artifact) = message.map_err(Error::file(messages))? {
            artifacts.push(artifact);
        }
    }
    Ok(artifacts)
}

fn program(artifact: &Artifact) -> Option<Program> {
    Some(Program {
        package: artifact.package_id.repr.clone(),
        target: target_label(&artifact.target),
        name: artifact.target.name.clone(),
        path: artifact.executable.clone()?.into_std_path_buf(),
    })
}

fn library_path() -> Result<OsString, Error> {
    let mut rustc = process::command(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--print", "target-libdir"]);
    let folder = PathBuf::from(process::output(rustc)?.trim());
    let inherited = env::var_os(LIBRARY_PATH).unwrap_or_default();
    let folders = std::iter::once(folder.clone()).chain(env::split_paths(&inherited));
    // A folder with a separator in its name cannot be listed; then the compiler's own has to do.
    Ok(env::join_paths(folders).unwrap_or_else(|_| folder.into_os_string()))
}
