//! The feature sets that each published crate must build with.

use std::collections::BTreeSet;

use crate::workspace::Member;

/// The crate that each set is checked with, so that procedural macros are built once for all of them.
pub(crate) const MACROS: &str = "xtask-macros";

/// A choice of features of one crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FeatureSet {
    /// The crate.
    pub(crate) package: String,
    /// What is on, for people: `none`, `all`, `default` or a feature's name.
    pub(crate) label: String,
    /// The same for cargo.
    pub(crate) args: Vec<String>,
}

/// Every set to check of a crate: none, each feature alone, the default, all; without repeating equal ones.
pub(crate) fn feature_sets(member: &Member) -> Vec<FeatureSet> {
    let none = || vec!["--no-default-features".to_owned()];
    let mut candidates = vec![("none", BTreeSet::new(), none())];
    for name in member.features.keys().filter(|name| *name != "default") {
        let args = none().into_iter().chain(["--features".to_owned(), name.clone()]).collect();
        candidates.push((name, switched_on(member, [name.as_str()]), args));
    }
    candidates.push(("default", switched_on(member, ["default"]), Vec::new()));
    let all = switched_on(member, member.features.keys().map(String::as_str));
    candidates.push(("all", all, vec!["--all-features".to_owned()]));

    let mut seen = BTreeSet::new();
    candidates.retain(|(_, on, _)| seen.insert(on.clone()));
    let set = |(label, _, args): (&str, _, _)| FeatureSet { package: member.name.clone(), label: label.into(), args };
    candidates.into_iter().map(set).collect()
}

/// Features of this crate that are on when `chosen` are. `default` is only a name for others.
fn switched_on<'a>(member: &'a Member, chosen: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut open: Vec<&str> = chosen.into_iter().collect();
    let mut on = BTreeSet::new();
    while let Some(name) = open.pop() {
        if let Some((name, implied)) = member.features.get_key_value(name)
            && on.insert(name.as_str())
        {
            open.extend(implied.iter().map(String::as_str));
        }
    }
    on.remove("default");
    on
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(features: &[(&str, &[&str])]) -> Member {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        Member {
            name: "kortyx".into(),
            features: features.iter().map(|(name, implied)| ((*name).to_owned(), owned(implied))).collect(),
            ..Member::default()
        }
    }

    fn labels(member: &Member) -> Vec<String> {
        feature_sets(member).into_iter().map(|set| set.label).collect()
    }

    #[test]
    fn a_crate_without_features_has_one_set() {
        assert_eq!(labels(&member(&[])), ["none"]);
    }

    #[test]
    fn each_feature_is_checked_alone_and_with_all_others() {
        let facade = member(&[("default", &["memory"]), ("memory", &["dep:m", "o/memory"]), ("sqlite", &["dep:s"])]);

        assert_eq!(labels(&facade), ["none", "memory", "sqlite", "all"]);
    }

    #[test]
    fn a_default_of_several_features_is_a_set_of_its_own() {
        let facade = member(&[("default", &["a", "b"]), ("a", &[]), ("b", &[]), ("c", &["a"])]);

        assert_eq!(labels(&facade), ["none", "a", "b", "c", "default", "all"]);
    }

    #[test]
    fn a_feature_alone_switches_the_default_off() {
        let facade = member(&[("default", &["a"]), ("a", &[]), ("b", &[])]);
        let sets = feature_sets(&facade);
        let b = sets.iter().find(|set| set.label == "b").unwrap();

        assert_eq!(b.args, ["--no-default-features", "--features", "b"]);
    }
}
