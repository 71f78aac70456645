//! What can be measured.

use tokio::runtime::{Builder, Runtime};

use crate::{
    error::Error,
    listing, memory,
    options::{Options, StoreKind},
    reported,
    row::Row,
    served::{Server, postgres, redis},
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
    /// What a loop of reasoning costs beside its model.
    MemoryReason,
    /// How often a step of it allocates.
    MemoryReasonAllocations,
    /// Pages of few and of many questions.
    MemoryListing,
    /// One run after the other, with a reporter against none.
    MemoryTelemetry,
    /// Many runs at once, against a raw group commit.
    SqliteMany,
    /// One run alone, against raw transactions.
    SqliteOne,
    /// Pages of few and of many questions.
    SqliteListing,
    /// Many runs at once, with a reporter against none.
    SqliteTelemetry,
    /// Round trips.
    RedisTrips,
    /// Round trips, on a Cluster.
    RedisClusterTrips,
    /// Many runs at once, against a raw loop.
    RedisMany,
    /// What paused runs keep in the process.
    RedisPaused,
    /// Pages of few and of many questions.
    RedisListing,
    /// Round trips.
    PostgresTrips,
    /// Many runs at once, against a raw loop.
    PostgresMany,
    /// What paused runs keep in the process.
    PostgresPaused,
    /// Pages of few and of many questions.
    PostgresListing,
}

impl Measure {
    /// All, in the order of the table.
    pub(crate) const ALL: [Self; 21] = [
        Self::MemoryCycles,
        Self::MemoryAllocations,
        Self::MemoryPaused,
        Self::MemoryGrowth,
        Self::MemoryReason,
        Self::MemoryReasonAllocations,
        Self::MemoryListing,
        Self::MemoryTelemetry,
        Self::SqliteMany,
        Self::SqliteOne,
        Self::SqliteListing,
        Self::SqliteTelemetry,
        Self::RedisTrips,
        Self::RedisClusterTrips,
        Self::RedisMany,
        Self::RedisPaused,
        Self::RedisListing,
        Self::PostgresTrips,
        Self::PostgresMany,
        Self::PostgresPaused,
        Self::PostgresListing,
    ];

    /// What `--only` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::MemoryCycles => "memory-cycles",
            Self::MemoryAllocations => "memory-allocations",
            Self::MemoryPaused => "memory-paused",
            Self::MemoryGrowth => "memory-growth",
            Self::MemoryReason => "memory-reason-time",
            Self::MemoryReasonAllocations => "memory-reason-allocations",
            Self::MemoryListing => "memory-listing",
            Self::MemoryTelemetry => "memory-telemetry",
            Self::SqliteMany => "sqlite-many",
            Self::SqliteOne => "sqlite-one",
            Self::SqliteListing => "sqlite-listing",
            Self::SqliteTelemetry => "sqlite-telemetry",
            Self::RedisTrips => "redis-trips",
            Self::RedisClusterTrips => "redis-cluster-trips",
            Self::RedisMany => "redis-many",
            Self::RedisPaused => "redis-paused",
            Self::RedisListing => "redis-listing",
            Self::PostgresTrips => "postgres-trips",
            Self::PostgresMany => "postgres-many",
            Self::PostgresPaused => "postgres-paused",
            Self::PostgresListing => "postgres-listing",
        }
    }

    /// What it measures.
    pub(crate) fn store(self) -> StoreKind {
        match self.name().split('-').next() {
            Some("sqlite") => StoreKind::Sqlite,
            Some("redis") => StoreKind::Redis,
            Some("postgres") => StoreKind::Postgres,
            _ => StoreKind::Memory,
        }
    }

    /// What must run for it.
    pub(crate) fn server(self) -> Option<Server> {
        match self.store() {
            StoreKind::Memory | StoreKind::Sqlite => None,
            StoreKind::Redis if self == Self::RedisClusterTrips => Some(Server::RedisCluster),
            StoreKind::Redis => Some(Server::Redis),
            StoreKind::Postgres => Some(Server::Postgres),
        }
    }

    /// Whether it needs the program that counts what it allocates.
    pub(crate) fn is_counted(self) -> bool {
        matches!(
            self,
            Self::RedisPaused
                | Self::PostgresPaused
                | Self::MemoryAllocations
                | Self::MemoryPaused
                | Self::MemoryGrowth
                | Self::MemoryReasonAllocations
        )
    }

    /// Makes it, in this process.
    pub(crate) fn run(self, options: &Options) -> Result<Vec<Row>, Error> {
        match self {
            Self::MemoryCycles => on_one_core()?.block_on(memory::cycles(options)),
            Self::MemoryAllocations => on_one_core()?.block_on(memory::allocations(options)),
            Self::MemoryPaused => on_one_core()?.block_on(memory::paused(options)),
            Self::MemoryGrowth => on_one_core()?.block_on(memory::growth(options)),
            Self::MemoryReason => on_one_core()?.block_on(memory::reason(options)),
            Self::MemoryReasonAllocations => on_one_core()?.block_on(memory::reason_allocations(options)),
            Self::MemoryListing => on_one_core()?.block_on(listing::memory(options)),
            Self::MemoryTelemetry => on_one_core()?.block_on(reported::memory(options)),
            Self::SqliteMany => on_all_cores()?.block_on(sqlite::many(options)),
            Self::SqliteOne => on_all_cores()?.block_on(sqlite::one(options)),
            Self::SqliteListing => on_one_core()?.block_on(listing::sqlite(options)),
            Self::SqliteTelemetry => on_all_cores()?.block_on(reported::sqlite(options)),
            Self::RedisTrips => on_all_cores()?.block_on(redis::trips(options)),
            Self::RedisClusterTrips => on_all_cores()?.block_on(redis::cluster_trips(options)),
            Self::RedisMany => on_all_cores()?.block_on(redis::many(options)),
            Self::RedisPaused => on_one_core()?.block_on(redis::paused(options)),
            Self::RedisListing => on_one_core()?.block_on(listing::redis(options)),
            Self::PostgresTrips => on_all_cores()?.block_on(postgres::trips(options)),
            Self::PostgresMany => on_all_cores()?.block_on(postgres::many(options)),
            Self::PostgresPaused => on_one_core()?.block_on(postgres::paused(options)),
            Self::PostgresListing => on_one_core()?.block_on(listing::postgres(options)),
        }
    }
}

fn on_one_core() -> Result<Runtime, Error> {
    Builder::new_current_thread().enable_all().build().map_err(Error::io("start a runtime"))
}

fn on_all_cores() -> Result<Runtime, Error> {
    Builder::new_multi_thread().enable_all().build().map_err(Error::io("start a runtime"))
}
