//! The scripts: each is the library with its own part behind it.

use std::sync::LazyLock;

use crate::client::sha1;

/// A script and the digest that a server knows it by.
pub(crate) struct Script {
    pub(crate) source: String,
    pub(crate) sha: String,
}

impl Script {
    fn new(source: String) -> Self {
        let sha = sha1(&source);
        Self { source, sha }
    }

    /// A script with the parts of the library that it needs.
    fn transition(needs: Needs, own: &str) -> Self {
        let mut source = String::from(include_str!("scripts/library/base.lua"));
        source.push_str(include_str!("scripts/library/session.lua"));
        if needs != Needs::Runs {
            source.push_str(include_str!("scripts/library/turns.lua"));
        }
        source.push_str(include_str!("scripts/library/question.lua"));
        source.push_str(include_str!("scripts/library/run.lua"));
        if needs == Needs::Reopening {
            source.push_str(include_str!("scripts/library/reopen.lua"));
        }
        source.push_str(include_str!("scripts/library/reply.lua"));
        source.push_str(own);
        Self::new(source)
    }
}

/// How much of the library a script needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Runs and questions.
    Runs,
    /// Checkpoints too.
    Turns,
    /// And what opens their questions again.
    Reopening,
}

macro_rules! transitions {
    ($($name:ident => $needs:ident $file:literal),* $(,)?) => {
        $(pub(crate) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::transition(Needs::$needs, include_str!(concat!("scripts/", $file))));)*
    };
}

transitions! {
    OPEN => Runs "open.lua",
    RECORD => Runs "record.lua",
    SUSPEND => Turns "suspend.lua",
    FINISH => Turns "finish.lua",
    PARK => Runs "park.lua",
    RENEW => Runs "renew.lua",
    RELEASE => Runs "release.lua",
    ANSWER => Runs "answer.lua",
    CLAIM => Runs "claim.lua",
    EXPIRE => Runs "expire.lua",
    CANCEL => Runs "cancel.lua",
    APPEND => Turns "append.lua",
    ROLLBACK => Reopening "rollback.lua",
    FORK => Reopening "fork.lua",
    PRUNE_RUN => Runs "prune_run.lua",
    PRUNE_SESSION => Turns "prune_session.lua",
    READ => Turns "read.lua",
    PAGE => Runs "page.lua",
    REPAIR => Turns "repair.lua",
}

/// Reads an index.
pub(crate) static DUE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/due.lua").to_owned()));

/// Writes the version of the schema.
pub(crate) static SETUP: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/setup.lua").to_owned()));
