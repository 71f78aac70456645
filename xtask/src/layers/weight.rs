//! What crates must not pull in, and how much they may.

use super::Verdict;
use super::tree::Tree;
use crate::error::Error;
use crate::workspace::Workspace;

/// Crates that must not know something, at any depth, with these features, on any platform.
struct Ban {
    package: &'static str,
    features: &'static [&'static str],
    rule: &'static str,
    banned: &'static [&'static [&'static str]],
}

/// How many crates may stand below one with its default features.
struct Budget {
    package: &'static str,
    below: usize,
}

const ASYNC_RUNTIMES: &[&str] = &[
    "actix-rt",
    "async-executor",
    "async-global-executor",
    "async-io",
    "async-std",
    "compio",
    "embassy-executor",
    "futures-executor",
    "glommio",
    "monoio",
    "smol",
    "tokio",
    "tokio-util",
];
const INPUT_AND_OUTPUT: &[&str] = &[
    "axum",
    "curl",
    "deadpool-postgres",
    "fred",
    "h2",
    "hyper",
    "libsqlite3-sys",
    "mio",
    "redis",
    "reqwest",
    "rusqlite",
    "socket2",
    "sqlx",
    "sqlx-core",
    "tokio-postgres",
    "tonic",
    "ureq",
];

const TRACE_EXPORT: &[&str] = &[
    "opentelemetry",
    "opentelemetry-http",
    "opentelemetry-otlp",
    "opentelemetry-proto",
    "opentelemetry_sdk",
    "prost",
    "tracing-opentelemetry",
    "tracing-subscriber",
];

const ALL: &[&str] = &["--all-features"];

const BANS: &[Ban] = &[
    Ban {
        package: "kortyx-protocol",
        features: ALL,
        rule: "does no I/O and knows no async runtime",
        banned: &[ASYNC_RUNTIMES, INPUT_AND_OUTPUT],
    },
    Ban {
        package: "kortyx-contracts",
        features: ALL,
        rule: "does no I/O and knows no async runtime",
        banned: &[ASYNC_RUNTIMES, INPUT_AND_OUTPUT],
    },
    Ban {
        package: "kortyx-store",
        features: ALL,
        rule: "knows no driver and no transport",
        banned: &[INPUT_AND_OUTPUT],
    },
    Ban {
        package: "kortyx-runtime",
        features: ALL,
        rule: "knows neither storage nor transport",
        banned: &[INPUT_AND_OUTPUT],
    },
    Ban {
        package: "kortyx",
        features: &["--features", "cache,codec,genai,http,mcp,sqlite,telemetry,yaml"],
        rule: "knows no OpenTelemetry without the feature `otel`",
        banned: &[TRACE_EXPORT],
    },
];

const BUDGETS: &[Budget] =
    &[Budget { package: "kortyx-protocol", below: 15 }, Budget { package: "kortyx", below: 110 }];

/// One verdict for each ban and each budget.
pub(super) fn verdicts(workspace: &Workspace) -> Result<Vec<Verdict>, Error> {
    let mut verdicts = Vec::new();
    for ban in BANS {
        let tree = Tree::load(workspace, ban.package, &[ban.features, &["--target", "all"]].concat())?;
        verdicts.push(ban.verdict(&tree));
    }
    for budget in BUDGETS {
        verdicts.push(budget.verdict(&Tree::load(workspace, budget.package, &[])?));
    }
    Ok(verdicts)
}

impl Ban {
    fn verdict(&self, tree: &Tree) -> Verdict {
        let ways = self.banned.iter().copied().flatten().filter_map(|name| tree.way_to(name));
        Verdict {
            rule: format!("{} {}", self.package, self.rule),
            faults: ways.map(|way| format!("forbidden way {way}")).collect(),
        }
    }
}

impl Budget {
    fn verdict(&self, tree: &Tree) -> Verdict {
        let Self { package, below } = self;
        let size = tree.size();
        let over = format!("it has {size}: see `cargo tree -p {package} -e normal`");
        Verdict {
            rule: format!("{package} has under {below} dependencies by default ({size})"),
            faults: if size < *below { Vec::new() } else { vec![over] },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAN: Ban = Ban { package: "a", features: ALL, rule: "knows no async runtime", banned: &[ASYNC_RUNTIMES] };

    #[test]
    fn a_banned_crate_deep_in_the_tree_is_found_with_its_way() {
        let verdict = BAN.verdict(&Tree::parse("0a v1\n1b v1\n2tokio v1\n"));

        assert_eq!(verdict.faults, ["forbidden way a -> b -> tokio"]);
    }

    #[test]
    fn a_crate_with_a_similar_name_is_not_banned() {
        assert!(BAN.verdict(&Tree::parse("0a v1\n1tokio-ish v1\n")).faults.is_empty());
    }

    #[test]
    fn a_budget_is_broken_when_it_is_reached() {
        let budget = Budget { package: "a", below: 2 };

        assert!(budget.verdict(&Tree::parse("0a v1\n1b v1\n")).faults.is_empty());
        assert_eq!(budget.verdict(&Tree::parse("0a v1\n1b v1\n1c v1\n")).faults.len(), 1);
    }
}
