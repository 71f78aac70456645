//! The table of lanes.

use crate::error::Error;
use crate::servers::{Server, Software};
use crate::workspace::{Member, Workspace};

/// Checks and tests that run and count together.
#[derive(Debug)]
pub(super) struct Lane {
    /// What `--lane` takes.
    pub(super) name: &'static str,
    /// What it proves.
    pub(super) about: &'static str,
    /// The servers that run meanwhile; the environment of its tests has their URLs.
    pub(super) needs: &'static [Server],
    /// What its tests start themselves, and has to be installed.
    pub(super) programs: &'static [Software],
    /// What it does, in order.
    pub(super) steps: &'static [Step],
}

/// A part of a lane.
#[derive(Debug)]
pub(super) enum Step {
    /// A cargo command that passes or fails as a whole.
    Check {
        /// What it proves.
        name: &'static str,
        /// The command.
        args: &'static [&'static str],
        /// Its environment.
        env: Env,
    },
    /// The layer rules; each passes or fails.
    Layers,
    /// Every feature set of every published crate; each passes or fails.
    FeatureSets,
    /// The examples in the documentation, counted one by one.
    Doctests,
    /// The tests of packages, counted one by one. All lanes share one build of them.
    Tests(Chosen),
}

/// A choice of tests.
#[derive(Debug)]
pub(super) struct Chosen {
    /// Whose tests.
    pub(super) packages: Packages,
    /// Only those of this target (`test faults`); where there is none, all but those that stand [apart](APART).
    pub(super) target: Option<&'static str>,
    /// Only those whose name contains this.
    pub(super) only: Option<&'static str>,
    /// What tells them apart from other runs of the same tests, in other lanes or in this one.
    pub(super) env: Env,
}

/// Environment variables to set.
pub(super) type Env = &'static [(&'static str, &'static str)];

/// A choice of packages.
#[derive(Debug)]
pub(super) enum Packages {
    /// These.
    Named(&'static [&'static str]),
    /// Every member of the workspace that no lane names, so that a new crate is tested from its first day.
    Unnamed,
}

/// The tests of a crate.
const fn tests_of(packages: &'static [&'static str]) -> Step {
    Step::Tests(Chosen { packages: Packages::Named(packages), target: None, only: None, env: &[] })
}

/// The workspace's tests on the store that this environment names.
const fn workspace_tests(env: Env) -> Step {
    Step::Tests(Chosen { packages: Packages::Named(&["kortyx-tests"]), target: None, only: None, env })
}

/// The workspace's acceptance tests on the store that this environment names, perhaps under the codec.
const fn acceptance_tests(env: Env) -> Step {
    Step::Tests(Chosen {
        packages: Packages::Named(&["kortyx-tests"]),
        target: Some("test acceptance"),
        only: None,
        env,
    })
}

/// The inspector on the store that this environment names.
const fn inspector_tests(env: Env) -> Step {
    Step::Tests(Chosen { packages: Packages::Named(&["kortyx-cli"]), target: None, only: None, env })
}

/// It takes minutes, and tests every store at once.
const FAULTS: &str = "test faults";
/// It needs a program that no other test needs, and has no store to be run on.
const OPENAPI: &str = "test openapi";
/// The test programs that only run in lanes that name them.
pub(super) const APART: [&str; 2] = [FAULTS, OPENAPI];

/// A loop of a model, its tools and people, killed at every durable point on the store that this environment names.
const fn reasoning_tests(env: Env) -> Step {
    Step::Tests(Chosen {
        packages: Packages::Named(&["kortyx-tests"]),
        target: Some("test processes"),
        only: Some("reasoning"),
        env,
    })
}

/// Every lane, the cheap ones first.
///
/// A store's lane is its crate's tests, the conformance suite with and without the codec among them, then the workspace's tests on
/// that store, then its acceptance tests once more under the codec. These cover what a codec can change: what is stored and read
/// back, compared, claimed and set aside. Tests that kill processes or count their round trips do not run twice: the codec makes
/// no transition of its own but to ask again with stored bytes, so the points at which a process can die are the same, and
/// they take most of the time.
///
/// Beside a cache processes die in a loop of reasoning only: what a transition writes is written by Postgres alone, and that the cache
/// loses, mixes up or delays what it holds is what its own tests are about.
///
/// Behind PgBouncer they die in that loop, at random in the lane `faults`, and at every other point where nothing stands between them
/// and Postgres.
///
/// Servers that a lane needs are started as children of this process and stay for the lanes after it that need them too.
pub(super) const LANES: &[Lane] = &[
    Lane {
        name: "lint",
        about: "format and clippy",
        needs: &[],
        programs: &[],
        steps: &[
            Step::Check { name: "format", args: &["fmt", "--all", "--check"], env: &[] },
            Step::Check {
                name: "clippy",
                args: &["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"],
                env: &[],
            },
        ],
    },
    Lane {
        name: "docs",
        about: "documentation without warnings, and its examples",
        needs: &[],
        programs: &[],
        steps: &[
            Step::Check {
                name: "documentation",
                args: &["doc", "--workspace", "--no-deps"],
                env: &[("RUSTDOCFLAGS", "--deny warnings")],
            },
            Step::Doctests,
        ],
    },
    Lane {
        name: "layers",
        about: "arrows between crates and dependency budgets",
        needs: &[],
        programs: &[],
        steps: &[Step::Layers],
    },
    Lane {
        name: "features",
        about: "each crate with no feature, each feature alone, the default and all",
        needs: &[],
        programs: &[],
        steps: &[Step::FeatureSets],
    },
    Lane {
        name: "unit",
        about: "crates that need no store",
        needs: &[],
        programs: &[],
        steps: &[Step::Tests(Chosen { packages: Packages::Unnamed, target: None, only: None, env: &[] })],
    },
    Lane {
        name: "clients",
        about: "the pages of the demo in a headless Chromium, and a server under requests made from its OpenAPI document",
        needs: &[],
        programs: &[Software::Chromium, Software::Python, Software::Schemathesis],
        steps: &[
            tests_of(&["kortyx-demo"]),
            Step::Tests(Chosen {
                packages: Packages::Named(&["kortyx-tests"]),
                target: Some(OPENAPI),
                only: None,
                env: &[],
            }),
        ],
    },
    Lane {
        name: "memory",
        about: "the store in this process, and the workspace's tests on it",
        needs: &[],
        programs: &[],
        steps: &[
            tests_of(&["kortyx-memory"]),
            workspace_tests(&[("KORTYX_TEST_STORE", "memory")]),
            acceptance_tests(&[("KORTYX_TEST_STORE", "memory"), ("KORTYX_TEST_CODEC", "1")]),
        ],
    },
    Lane {
        name: "sqlite",
        about: "the store in a file, and the workspace's tests on it",
        needs: &[],
        programs: &[],
        steps: &[
            tests_of(&["kortyx-sqlite"]),
            workspace_tests(&[("KORTYX_TEST_STORE", "sqlite")]),
            inspector_tests(&[("KORTYX_TEST_STORE", "sqlite")]),
            acceptance_tests(&[("KORTYX_TEST_STORE", "sqlite"), ("KORTYX_TEST_CODEC", "1")]),
        ],
    },
    Lane {
        name: "redis",
        about: "the store on a Redis and on a Redis Cluster, and the workspace's tests on a Redis",
        needs: &[Server::Redis, Server::RedisCluster],
        programs: &[],
        steps: &[
            tests_of(&["kortyx-redis"]),
            workspace_tests(&[("KORTYX_TEST_STORE", "redis")]),
            inspector_tests(&[("KORTYX_TEST_STORE", "redis")]),
            acceptance_tests(&[("KORTYX_TEST_STORE", "redis"), ("KORTYX_TEST_CODEC", "1")]),
        ],
    },
    Lane {
        name: "redis-cluster",
        about: "the workspace's tests on a Redis Cluster",
        needs: &[Server::RedisCluster],
        programs: &[],
        steps: &[
            workspace_tests(&[("KORTYX_TEST_STORE", "redis-cluster")]),
            inspector_tests(&[("KORTYX_TEST_STORE", "redis-cluster")]),
            acceptance_tests(&[("KORTYX_TEST_STORE", "redis-cluster"), ("KORTYX_TEST_CODEC", "1")]),
        ],
    },
    Lane {
        name: "postgres",
        about: "the store on a Postgres and behind PgBouncer, and the workspace's tests on a Postgres",
        needs: &[Server::Postgres, Server::PgBouncer],
        programs: &[],
        steps: &[
            tests_of(&["kortyx-postgres"]),
            workspace_tests(&[("KORTYX_TEST_STORE", "postgres")]),
            inspector_tests(&[("KORTYX_TEST_STORE", "postgres")]),
            acceptance_tests(&[("KORTYX_TEST_STORE", "postgres"), ("KORTYX_TEST_CODEC", "1")]),
        ],
    },
    Lane {
        name: "postgres-pgbouncer",
        about: "the workspace's acceptance tests on a Postgres behind PgBouncer",
        needs: &[Server::Postgres, Server::PgBouncer],
        programs: &[],
        steps: &[
            acceptance_tests(&[("KORTYX_TEST_STORE", "postgres-pgbouncer")]),
            Step::Tests(Chosen {
                packages: Packages::Named(&["kortyx-tests"]),
                target: Some("test http"),
                only: None,
                env: &[("KORTYX_TEST_STORE", "postgres-pgbouncer")],
            }),
            reasoning_tests(&[("KORTYX_TEST_STORE", "postgres-pgbouncer")]),
            acceptance_tests(&[("KORTYX_TEST_STORE", "postgres-pgbouncer"), ("KORTYX_TEST_CODEC", "1")]),
        ],
    },
    Lane {
        name: "postgres+cache",
        about: "a cache in a Redis beside a Postgres, and the workspace's acceptance tests on both",
        needs: &[Server::Redis, Server::Postgres],
        programs: &[],
        steps: &[
            tests_of(&["kortyx-cache"]),
            acceptance_tests(&[("KORTYX_TEST_STORE", "postgres+cache")]),
            reasoning_tests(&[("KORTYX_TEST_STORE", "postgres+cache")]),
            acceptance_tests(&[("KORTYX_TEST_STORE", "postgres+cache"), ("KORTYX_TEST_CODEC", "1")]),
        ],
    },
    Lane {
        name: "load",
        about: "Kortyx over HTTP with many chats, idle streams, slow readers and attackers, for a minute",
        needs: &[],
        programs: &[],
        steps: &[tests_of(&["kortyx-load"])],
    },
    Lane {
        name: "faults",
        about: "every store while processes die and servers go away, for minutes",
        needs: &[Server::Redis, Server::RedisCluster, Server::Postgres, Server::PgBouncer],
        programs: &[],
        steps: &[Step::Tests(Chosen {
            packages: Packages::Named(&["kortyx-tests"]),
            target: Some(FAULTS),
            only: None,
            env: &[],
        })],
    },
];

impl Lane {
    /// How many of its test programs run at a time. Those that kill processes and wait for leases leave half of the machine idle,
    /// but where Postgres does their work it leaves none.
    pub(super) fn at_once(&self) -> usize {
        if self.needs.contains(&Server::Postgres) { 1 } else { 2 }
    }

    /// Whether it runs programs of this workspace, which may look for what the system has.
    pub(super) fn has_tests(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Tests(_)))
    }

    /// The packages whose tests this lane runs.
    pub(super) fn tested<'a>(&self, workspace: &'a Workspace) -> Result<Vec<&'a Member>, Error> {
        let mut tested = Vec::new();
        for step in self.steps {
            if let Step::Tests(tests) = step {
                tested.extend(tests.packages.resolve(workspace)?);
            }
        }
        Ok(tested)
    }
}

impl Packages {
    /// The members meant.
    pub(super) fn resolve<'a>(&self, workspace: &'a Workspace) -> Result<Vec<&'a Member>, Error> {
        match self {
            Self::Named(names) => {
                let find = |name: &&str| workspace.member(name).ok_or_else(|| Error::UnknownPackage((*name).into()));
                names.iter().map(find).collect()
            }
            Self::Unnamed => {
                let named: Vec<_> = LANES.iter().flat_map(|lane| lane.steps).flat_map(Step::named).copied().collect();
                Ok(workspace.members.iter().filter(|member| !named.contains(&member.name.as_str())).collect())
            }
        }
    }
}

impl Step {
    fn named(&self) -> &'static [&'static str] {
        match self {
            Self::Tests(Chosen { packages: Packages::Named(names), .. }) => names,
            Self::Check { .. } | Self::Layers | Self::FeatureSets | Self::Doctests | Self::Tests(_) => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(names: &[&str]) -> Workspace {
        let members = names.iter().map(|name| Member { name: (*name).into(), ..Member::default() }).collect();
        Workspace { root: "/".into(), target: "/target".into(), members }
    }

    fn lane(name: &str) -> &'static Lane {
        LANES.iter().find(|lane| lane.name == name).unwrap()
    }

    fn tested(name: &str, workspace: &Workspace) -> Vec<String> {
        lane(name).tested(workspace).unwrap().into_iter().map(|member| member.name.clone()).collect()
    }

    #[test]
    fn a_new_crate_is_tested_without_being_listed() {
        let workspace = workspace(&["kortyx-memory", "kortyx-new", "kortyx-sqlite", "kortyx-tests", "xtask"]);

        assert_eq!(tested("unit", &workspace), ["kortyx-new", "xtask"]);
    }

    #[test]
    fn each_store_runs_its_own_tests_and_the_workspace_tests() {
        let workspace = workspace(&["kortyx-cli", "kortyx-memory", "kortyx-sqlite", "kortyx-tests"]);

        assert_eq!(tested("memory", &workspace), ["kortyx-memory", "kortyx-tests", "kortyx-tests"]);
        assert_eq!(tested("sqlite", &workspace), ["kortyx-sqlite", "kortyx-tests", "kortyx-cli", "kortyx-tests"]);
    }

    #[test]
    fn each_store_is_tested_with_and_without_the_codec() {
        let others = ["lint", "docs", "layers", "features", "unit", "clients", "load", "faults"];
        for lane in LANES.iter().filter(|lane| !others.contains(&lane.name)) {
            let stores = |is_coded: bool| {
                let environments = lane.steps.iter().filter_map(|step| match step {
                    Step::Tests(tests) => Some(tests.env),
                    _ => None,
                });
                let wanted =
                    environments.filter(|env| env.iter().any(|(name, _)| *name == "KORTYX_TEST_CODEC") == is_coded);
                let named = wanted.flatten().filter(|(name, _)| *name == "KORTYX_TEST_STORE");
                let mut stores: Vec<_> = named.map(|(_, store)| *store).collect();
                stores.dedup();
                stores
            };
            assert_eq!((stores(false), stores(true)), (vec![lane.name], vec![lane.name]), "{}", lane.name);
        }
    }

    #[test]
    fn a_loop_of_reasoning_is_killed_in_the_lane_of_every_store_that_processes_share() {
        for name in ["sqlite", "redis", "redis-cluster", "postgres", "postgres-pgbouncer", "postgres+cache"] {
            let kills = |step: &Step| match step {
                Step::Tests(Chosen { packages: Packages::Named(names), target, only, env }) => {
                    let is_whole = target.is_none() && only.is_none();
                    let is_loop = *target == Some("test processes") && *only == Some("reasoning");
                    names.contains(&"kortyx-tests")
                        && (is_whole || is_loop)
                        && env.contains(&("KORTYX_TEST_STORE", name))
                }
                _ => false,
            };
            assert!(lane(name).steps.iter().any(kills), "{name}");
        }
    }

    #[test]
    fn a_lane_of_a_package_that_is_gone_is_an_error() {
        let error = lane("memory").tested(&workspace(&["kortyx"])).unwrap_err();

        assert!(matches!(error, Error::UnknownPackage(name) if name == "kortyx-memory"));
    }
}
