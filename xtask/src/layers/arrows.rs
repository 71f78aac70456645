//! Which crate of the workspace may depend on which.

use super::Verdict;
use crate::features::MACROS;
use crate::workspace::{Dependency, Member};

/// The place of a crate in the layers.
struct Layer {
    name: &'static str,
    reach: Reach,
}

/// What a crate may depend on, among the crates of the workspace and outside its tests.
enum Reach {
    /// These.
    Only(&'static [&'static str]),
    /// The first, and the second behind a feature.
    Optionally(&'static [&'static str], &'static [&'static str]),
    /// Every layer: it stands above them all.
    Everything,
}

const PROTOCOL: &str = "kortyx-protocol";
const DERIVE: &str = "kortyx-contracts-derive";
const CONTRACTS: &str = "kortyx-contracts";
const RUNTIME: &str = "kortyx-runtime";
const REASON: &str = "kortyx-reason";
const STORE: &str = "kortyx-store";
const ORCHESTRATOR: &str = "kortyx-orchestrator";
const HTTP: &str = "kortyx-http";
const TELEMETRY: &str = "kortyx-telemetry";
const ADAPTERS: &[&str] =
    &["kortyx-cache", "kortyx-codec", "kortyx-memory", "kortyx-postgres", "kortyx-redis", "kortyx-sqlite"];

/// What the facade takes behind features: the adapters, the routes, reasoning and telemetry.
const ABOVE: &[&str] = &[
    "kortyx-cache",
    "kortyx-codec",
    HTTP,
    "kortyx-memory",
    "kortyx-postgres",
    REASON,
    "kortyx-redis",
    "kortyx-sqlite",
    TELEMETRY,
];

/// The arrows of `ARCHITECTURE.md`, lowest layer first. A new crate needs a row; a new adapter also one in `ADAPTERS`.
const LAYERS: &[Layer] = &[
    Layer { name: PROTOCOL, reach: Reach::Only(&[]) },
    Layer { name: DERIVE, reach: Reach::Only(&[]) },
    Layer { name: CONTRACTS, reach: Reach::Only(&[PROTOCOL, DERIVE]) },
    Layer { name: STORE, reach: Reach::Only(&[PROTOCOL]) },
    Layer { name: RUNTIME, reach: Reach::Only(&[PROTOCOL, CONTRACTS]) },
    Layer { name: REASON, reach: Reach::Only(&[PROTOCOL, CONTRACTS, RUNTIME]) },
    Layer { name: "kortyx-cache", reach: Reach::Only(&[PROTOCOL, STORE]) },
    Layer { name: "kortyx-codec", reach: Reach::Only(&[PROTOCOL, STORE]) },
    Layer { name: "kortyx-memory", reach: Reach::Only(&[PROTOCOL, STORE]) },
    Layer { name: "kortyx-sqlite", reach: Reach::Only(&[PROTOCOL, STORE]) },
    Layer { name: "kortyx-postgres", reach: Reach::Only(&[PROTOCOL, STORE]) },
    Layer { name: "kortyx-redis", reach: Reach::Only(&[PROTOCOL, STORE]) },
    Layer { name: ORCHESTRATOR, reach: Reach::Optionally(&[PROTOCOL, CONTRACTS, RUNTIME, STORE], ADAPTERS) },
    Layer { name: HTTP, reach: Reach::Only(&[PROTOCOL, STORE, ORCHESTRATOR]) },
    Layer { name: TELEMETRY, reach: Reach::Only(&[PROTOCOL, RUNTIME, STORE, ORCHESTRATOR]) },
    Layer { name: "kortyx", reach: Reach::Optionally(&[PROTOCOL, CONTRACTS, RUNTIME, STORE, ORCHESTRATOR], ABOVE) },
    Layer { name: "kortyx-testkit", reach: Reach::Only(&[PROTOCOL, CONTRACTS, RUNTIME, STORE, ORCHESTRATOR]) },
    Layer { name: "kortyx-refused", reach: Reach::Only(&[PROTOCOL, CONTRACTS, RUNTIME]) },
    Layer { name: "kortyx-tests", reach: Reach::Everything },
    Layer { name: "kortyx-bench", reach: Reach::Everything },
    Layer { name: "kortyx-cli", reach: Reach::Everything },
    Layer { name: "kortyx-demo", reach: Reach::Everything },
    Layer { name: "kortyx-load", reach: Reach::Everything },
    Layer { name: "xtask", reach: Reach::Only(&[]) },
    Layer { name: MACROS, reach: Reach::Only(&[]) },
];

/// One verdict for each crate.
pub(super) fn verdicts(members: &[Member]) -> Vec<Verdict> {
    members.iter().map(|member| verdict(member, members)).collect()
}

fn verdict(member: &Member, members: &[Member]) -> Verdict {
    let Some(layer) = LAYERS.iter().find(|layer| layer.name == member.name) else {
        return Verdict {
            rule: format!("{} has a layer", member.name),
            faults: vec!["it has no row in xtask/src/layers/arrows.rs: say what it may depend on".into()],
        };
    };
    let inside = member.dependencies.iter().filter(|one| members.iter().any(|other| other.name == one.name));
    Verdict {
        rule: format!("{} depends downwards on {}", member.name, layer.reach),
        faults: inside.filter_map(|dependency| layer.fault(dependency)).collect(),
    }
}

impl Layer {
    fn fault(&self, Dependency { name, optional }: &Dependency) -> Option<String> {
        let names = |list: &[&str]| list.contains(&name.as_str());
        let edge = format!("forbidden edge {} -> {name}", self.name);
        match &self.reach {
            Reach::Everything if LAYERS.iter().any(|layer| layer.name == name && layer.is_below_the_top()) => None,
            Reach::Only(allowed) | Reach::Optionally(allowed, _) if names(allowed) => None,
            Reach::Optionally(_, behind_features) if names(behind_features) => {
                (!optional).then(|| format!("{edge}: it must be optional, behind a feature"))
            }
            Reach::Everything | Reach::Only(_) | Reach::Optionally(..) => Some(edge),
        }
    }

    fn is_below_the_top(&self) -> bool {
        !matches!(self.reach, Reach::Everything) && !["xtask", MACROS].contains(&self.name)
    }
}

impl std::fmt::Display for Reach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Only([]) => f.write_str("none of us"),
            Self::Only(allowed) => f.write_str(&allowed.join(", ")),
            Self::Optionally(allowed, behind_features) => {
                write!(f, "{}; behind features {}", allowed.join(", "), behind_features.join(", "))
            }
            Self::Everything => f.write_str("any library crate"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace of every layer, where one crate has the given dependencies.
    fn faults(name: &str, dependencies: &[(&str, bool)]) -> Vec<String> {
        let mut members: Vec<Member> =
            LAYERS.iter().map(|layer| Member { name: layer.name.into(), ..Member::default() }).collect();
        members.retain(|member| member.name != name);
        let dependencies =
            dependencies.iter().map(|(name, optional)| Dependency { name: (*name).into(), optional: *optional });
        let member = Member { name: name.into(), dependencies: dependencies.collect(), ..Member::default() };
        members.push(member.clone());
        verdict(&member, &members).faults
    }

    #[test]
    fn arrows_down_are_allowed() {
        assert!(faults("kortyx-runtime", &[("kortyx-contracts", false), ("kortyx-protocol", false)]).is_empty());
        assert!(faults("kortyx-sqlite", &[("kortyx-store", false)]).is_empty());
        assert!(faults("kortyx-tests", &[("kortyx", false), ("kortyx-sqlite", false)]).is_empty());
    }

    #[test]
    fn the_runtime_may_not_know_the_store() {
        let faults = faults("kortyx-runtime", &[("kortyx-store", false)]);

        assert_eq!(faults, ["forbidden edge kortyx-runtime -> kortyx-store"]);
    }

    #[test]
    fn an_optional_arrow_up_is_still_an_arrow_up() {
        assert_eq!(faults("kortyx-store", &[("kortyx-memory", true)]).len(), 1);
    }

    #[test]
    fn an_adapter_may_not_know_contracts_or_another_adapter() {
        let faults = faults("kortyx-memory", &[("kortyx-contracts", false), ("kortyx-sqlite", false)]);

        assert_eq!(
            faults,
            ["forbidden edge kortyx-memory -> kortyx-contracts", "forbidden edge kortyx-memory -> kortyx-sqlite"]
        );
    }

    #[test]
    fn the_facade_takes_adapters_behind_features_only() {
        assert!(faults("kortyx", &[("kortyx-sqlite", true)]).is_empty());
        assert_eq!(
            faults("kortyx", &[("kortyx-sqlite", false)]),
            ["forbidden edge kortyx -> kortyx-sqlite: it must be optional, behind a feature"]
        );
    }

    #[test]
    fn nothing_depends_on_the_crates_at_the_top() {
        assert_eq!(faults("kortyx-bench", &[("kortyx-tests", false)]).len(), 1);
        assert_eq!(faults("kortyx", &[("xtask", true)]).len(), 1);
    }

    #[test]
    fn packages_of_others_are_not_layers() {
        assert!(faults("kortyx-protocol", &[("serde", false)]).is_empty());
    }

    #[test]
    fn a_crate_without_a_row_is_a_fault() {
        assert_eq!(faults("kortyx-unheard-of", &[]).len(), 1);
    }
}
