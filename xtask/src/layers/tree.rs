//! Dependency trees as `cargo tree` prints them.

use std::collections::BTreeSet;

use crate::error::Error;
use crate::process;
use crate::workspace::Workspace;

/// What a crate pulls in when users build it: dependencies outside tests and build scripts, of any depth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    depth: usize,
    name: String,
    version: String,
}

impl Tree {
    /// Asks cargo for the tree of a package, with more arguments that choose features and platforms.
    pub(super) fn load(workspace: &Workspace, package: &str, args: &[&str]) -> Result<Self, Error> {
        let mut cargo = process::cargo();
        cargo.args(["tree", "--package", package, "--edges", "normal", "--prefix", "depth", "--format", "{p}"]);
        cargo.args(args).current_dir(&workspace.root);
        process::output(cargo).map(|text| Self::parse(&text))
    }

    /// Reads lines of the form `2serde v1.0.0 (notes)`; the number is the depth.
    pub(super) fn parse(text: &str) -> Self {
        Self { nodes: text.lines().filter_map(Node::parse).collect() }
    }

    /// How many crates stand below the root, each version counted once.
    pub(super) fn size(&self) -> usize {
        let below = self.nodes.iter().filter(|node| node.depth > 0);
        below.map(|node| (&node.name, &node.version)).collect::<BTreeSet<_>>().len()
    }

    /// The way from the root to the first crate with this name.
    pub(super) fn way_to(&self, name: &str) -> Option<String> {
        let mut way: Vec<&str> = Vec::new();
        for node in &self.nodes {
            way.truncate(node.depth);
            way.push(&node.name);
            if node.name == name {
                return Some(way.join(" -> "));
            }
        }
        None
    }
}

impl Node {
    fn parse(line: &str) -> Option<Self> {
        let name_at = line.find(|character: char| !character.is_ascii_digit())?;
        let (depth, package) = line.split_at(name_at);
        let mut words = package.split_whitespace();
        let (name, version) = (words.next()?, words.next()?);
        Some(Self { depth: depth.parse().ok()?, name: name.into(), version: version.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "\
0kortyx-contracts v0.1.0 (/work/crates/kortyx-contracts)
1jsonschema v0.61.0
2serde v1.0.0
3serde_derive v1.0.0 (proc-macro)
1kortyx-protocol v0.1.0 (/work/crates/kortyx-protocol)
2serde v1.0.0 (*)
2syn v2.0.0
2mio v1.0.0
1syn v3.0.0
";

    #[test]
    fn repeated_crates_count_once_and_versions_each() {
        assert_eq!(Tree::parse(TREE).size(), 7);
    }

    #[test]
    fn the_root_does_not_count() {
        assert_eq!(Tree::parse("0kortyx v0.1.0\n").size(), 0);
    }

    #[test]
    fn the_way_to_a_crate_names_every_step() {
        let way = Tree::parse(TREE).way_to("mio");

        assert_eq!(way.as_deref(), Some("kortyx-contracts -> kortyx-protocol -> mio"));
    }

    #[test]
    fn there_is_no_way_to_an_absent_crate() {
        assert_eq!(Tree::parse(TREE).way_to("tokio"), None);
    }

    #[test]
    fn lines_that_are_no_package_are_left_out() {
        assert_eq!(Tree::parse("\n[build-dependencies]\n12\n").size(), 0);
    }
}
