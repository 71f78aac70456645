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

    fn transition(own: &str) -> Self {
        let library = concat!(
            include_str!("scripts/library/1_base.lua"),
            include_str!("scripts/library/2_session.lua"),
            include_str!("scripts/library/3_question.lua"),
            include_str!("scripts/library/4_run.lua"),
            include_str!("scripts/library/5_reopen.lua"),
            include_str!("scripts/library/6_reply.lua"),
        );
        Self::new(format!("{library}\n{own}"))
    }
}

macro_rules! transitions {
    ($($name:ident => $file:literal),* $(,)?) => {
        $(pub(crate) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::transition(include_str!(concat!("scripts/", $file))));)*
    };
}

transitions! {
    OPEN => "open.lua",
    RECORD => "record.lua",
    SUSPEND => "suspend.lua",
    FINISH => "finish.lua",
    PARK => "park.lua",
    RENEW => "renew.lua",
    RELEASE => "release.lua",
    ANSWER => "answer.lua",
    CLAIM => "claim.lua",
    EXPIRE => "expire.lua",
    CANCEL => "cancel.lua",
    APPEND => "append.lua",
    ROLLBACK => "rollback.lua",
    FORK => "fork.lua",
    PRUNE_RUN => "prune_run.lua",
    PRUNE_SESSION => "prune_session.lua",
    READ => "read.lua",
    PAGE => "page.lua",
    REPAIR => "repair.lua",
}

/// Reads an index.
pub(crate) static DUE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/due.lua").to_owned()));

/// Writes the version of the schema.
pub(crate) static SETUP: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/setup.lua").to_owned()));
