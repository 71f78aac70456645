//! The conformance suite: what every store promises, as a list of named cases.
//!
//! An adapter implements [`Backend`] in its tests and asserts that the whole list passes. There is no list of
//! exceptions: a case that fails, panics, hangs or did not run fails the [`Report`].
//!
//! ```
//! use kortyx_store::conformance::{Backend, run_all};
//!
//! // #[tokio::test(flavor = "multi_thread")]
//! async fn the_store_keeps_every_promise(backend: impl Backend) {
//!     let report = run_all(&backend).await;
//!     assert!(report.is_success(), "{report}");
//! }
//! ```
//!
//! Cases run one after another, because they share the backend's clock. Run them without a paused tokio clock: a
//! case that takes longer than five minutes has failed.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "cases are tests: what fails in one panics, and the runner reports it"
)]

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::{Store, StoreError};

mod answering;
mod batches;
mod cancelling;
mod case;
mod chains;
mod checkpoints;
mod crowds;
mod expiry;
mod finishing;
mod following;
mod forking;
mod identities;
mod inspecting;
mod leases;
mod listing;
mod living;
mod opening;
mod orphans;
mod outcome;
mod payloads;
mod pruning;
mod racing;
mod recording;
mod report;
pub mod requests;
mod responding;
mod rolling_back;
mod speaking;
mod suspending;
mod world;

pub use case::{Case, cases};
pub use report::{Failure, Report, run_all, run_cases};

/// A kind of store under test: where fresh ones come from, and their clock.
#[async_trait]
pub trait Backend: Send + Sync {
    /// A store over a new, empty place, set up.
    async fn store(&self) -> Result<Arc<dyn Store>, StoreError>;

    /// This many stores over one new, empty place, none of them set up. Where a place cannot be shared, the same
    /// store several times.
    async fn unprepared(&self, count: usize) -> Result<Vec<Arc<dyn Store>>, StoreError>;

    /// Another instance (connection, pool) over the place that [`store`](Self::store) or
    /// [`unprepared`](Self::unprepared) made last, not set up; `None` where there can be only one.
    async fn reopen(&self) -> Option<Arc<dyn Store>>;

    /// Moves the clock of every store of this backend forward. It should otherwise stand still, or tick as the
    /// server's does.
    fn advance(&self, by: Duration);

    /// Marks the place made last as written by a later version of the schema; `false` where there is no schema.
    async fn make_schema_newer(&self) -> bool;
}
