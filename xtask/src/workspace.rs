//! What cargo knows about the workspace, reduced to what the automation asks.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, Target, TargetKind};

use crate::error::Error;

/// The workspace.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    /// The folder of the root manifest.
    pub(crate) root: PathBuf,
    /// Where cargo builds.
    pub(crate) target: PathBuf,
    /// Its packages, by name.
    pub(crate) members: Vec<Member>,
}

/// A package of the workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Member {
    /// Cargo's id of it.
    pub(crate) id: String,
    /// The package's name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// It lives in `crates/` and is no program, so users may depend on it alone.
    pub(crate) published: bool,
    /// Each feature with what it switches on.
    pub(crate) features: BTreeMap<String, Vec<String>>,
    /// What it depends on outside tests, as its manifest says, switched on or not.
    pub(crate) dependencies: Vec<Dependency>,
    /// The targets that `cargo test` turns into a program, as [`target_label`] names them.
    pub(crate) tests: Vec<String>,
}

/// A dependency of a package, outside tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependency {
    /// The package it names.
    pub(crate) name: String,
    /// A feature switches it on.
    pub(crate) optional: bool,
}

impl Workspace {
    /// Asks cargo about the workspace around the current folder.
    pub(crate) fn load() -> Result<Self, Error> {
        let metadata = MetadataCommand::new().no_deps().exec().map_err(Error::Metadata)?;
        let mut members: Vec<Member> = metadata.packages.iter().map(|package| member(&metadata, package)).collect();
        members.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self {
            root: metadata.workspace_root.into_std_path_buf(),
            target: metadata.target_directory.into_std_path_buf(),
            members,
        })
    }

    /// The member with this name.
    pub(crate) fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }
}

/// A target's kind and name: `lib kortyx_store`, `test faults`.
pub(crate) fn target_label(target: &Target) -> String {
    let kinds: Vec<_> = target.kind.iter().map(ToString::to_string).collect();
    format!("{} {}", kinds.join(" "), target.name)
}

fn member(metadata: &Metadata, package: &Package) -> Member {
    let folder = package.manifest_path.parent().unwrap_or(&metadata.workspace_root);
    let dependencies = package.dependencies.iter().filter(|dependency| dependency.kind != DependencyKind::Development);
    let tests = package.targets.iter().filter(|target| is_test(target));
    Member {
        id: package.id.repr.clone(),
        name: package.name.to_string(),
        version: package.version.to_string(),
        folder: folder.as_std_path().to_owned(),
        published: folder.starts_with(metadata.workspace_root.join("crates"))
            && !package.targets.iter().any(Target::is_bin),
        features: package.features.clone(),
        dependencies: dependencies
            .map(|dependency| Dependency { name: dependency.name.clone(), optional: dependency.optional })
            .collect(),
        tests: tests.map(target_label).collect(),
    }
}

/// Whether `cargo test` makes a program of a target, which it does of benches only when asked. One whose required features are off
/// is not built, and is missed: its tests would never run.
fn is_test(target: &Target) -> bool {
    target.test && !target.kind.contains(&TargetKind::Bench)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(kind: &str) -> Target {
        let text = format!(
            r#"{{"name": "genai", "kind": ["{kind}"], "crate_types": ["bin"], "required-features": ["genai"],
                "src_path": "/main.rs", "edition": "2024", "doctest": false, "test": true, "doc": false}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn tests_that_need_a_feature_are_missed_when_they_were_not_built() {
        assert!(is_test(&target("test")));
        assert!(!is_test(&target("bench")));
    }
}
