//! What can be measured.

use tokio::runtime::{Builder, Runtime};

use crate::{
    error::Error,
    listing, memory,
    options::{Options, StoreKind},
    row::Row,
    sqlite,
};

/// A measure: some numbers that are taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Cycles a second in memory, and what their parts cost.
    MemoryCycles,
    /// How often a cycle in memory allocates.
    MemoryAllocations,
    /// What a paused run keeps.
    MemoryPaused,
    /// What many cycles leave behind.
    MemoryGrowth,
    /// Pages of few and of many questions.
    MemoryListing,
    /// Many runs at once, against a raw group commit.
    SqliteMany,
    /// One run alone, against raw transactions.
    SqliteOne,
    /// Pages of few and of many questions.
    SqliteListing,
}

impl Measure {
    /// All, in the order of the table.
    pub(crate) const ALL: [Self; 8] = [
        Self::MemoryCycles,
        Self::MemoryAllocations,
        Self::MemoryPaused,
        Self::MemoryGrowth,
        Self::MemoryListing,
        Self::SqliteMany,
        Self::SqliteOne,
        Self::SqliteListing,
    ];

    /// What `--only` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::MemoryCycles => "memory-cycles",
            Self::MemoryAllocations => "memory-allocations",
            Self::MemoryPaused => "memory-paused",
            Self::MemoryGrowth => "memory-growth",
            Self::MemoryListing => "memory-listing",
            Self::SqliteMany => "sqlite-many",
            Self::SqliteOne => "sqlite-one",
            Self::SqliteListing => "sqlite-listing",
        }
    }

    /// What it measures.
    pub(crate) fn store(self) -> StoreKind {
        match self {
            Self::MemoryCycles
            | Self::MemoryAllocations
            | Self::MemoryPaused
            | Self::MemoryGrowth
            | Self::MemoryListing => StoreKind::Memory,
            Self::SqliteMany | Self::SqliteOne | Self::SqliteListing => StoreKind::Sqlite,
        }
    }

    /// Whether it needs the program that counts what it allocates.
    pub(crate) fn is_counted(self) -> bool {
        matches!(self, Self::MemoryAllocations | Self::MemoryPaused | Self::MemoryGrowth)
    }

    /// Makes it, in this process.
    pub(crate) fn run(self, options: &Options) -> Result<Vec<Row>, Error> {
        match self {
            Self::MemoryCycles => on_one_core()?.block_on(memory::cycles(options)),
            Self::MemoryAllocations => on_one_core()?.block_on(memory::allocations(options)),
            Self::MemoryPaused => on_one_core()?.block_on(memory::paused(options)),
            Self::MemoryGrowth => on_one_core()?.block_on(memory::growth(options)),
            Self::MemoryListing => on_one_core()?.block_on(listing::memory(options)),
            Self::SqliteMany => on_all_cores()?.block_on(sqlite::many(options)),
            Self::SqliteOne => on_all_cores()?.block_on(sqlite::one(options)),
            Self::SqliteListing => on_one_core()?.block_on(listing::sqlite(options)),
        }
    }
}

fn on_one_core() -> Result<Runtime, Error> {
    Builder::new_current_thread().enable_all().build().map_err(Error::io("start a runtime"))
}

fn on_all_cores() -> Result<Runtime, Error> {
    Builder::new_multi_thread().enable_all().build().map_err(Error::io("start a runtime"))
}
