//! The Kortyx storage port: records, state transitions and the conformance suite.
//!
#![doc = include_str!("../README.md")]

mod cache;
mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod extension;
mod inspect;
mod interrupt;
mod output;
mod placement;
mod port;
mod run;
mod session;
mod signal;
mod transition;

pub use bytes::Bytes;
pub use cache::{CacheableStore, PayloadCache, Revision, SnapshotCache};
pub use clock::{Clock, ManualClock, SystemClock};
pub use error::{StoreError, StoreErrorKind};
pub use extension::StoreExt;
pub use inspect::{RunCounts, RunHistory, RunPage, RunQuery, SessionPage, SessionQuery, SessionRecord, StoreStats};
pub use interrupt::{
    AnswerRecord, AskKey, InterruptPage, InterruptQuery, InterruptRecord, InterruptStatus, NewInterrupt, Receipt,
    Reissue, Scalar, Scope,
};
pub use output::{ChunkPage, ChunkRecord};
pub use placement::Placement;
pub use port::Store;
pub use run::{Claimed, Driver, Lease, NewRun, RunRecord, RunRef, RunStatus, TerminalStatus, TurnRef, WorkflowPin};
pub use session::{CheckpointRecord, Fork, ForkOutcome, NewCheckpoint, Rollback, RollbackOutcome};
pub use signal::{Signal, Signals};
pub use transition::{
    AnswerOutcome, AnswerRequest, CancelOutcome, CancelRequest, CancelTarget, ClaimRequest, Drive, ExpireRequest,
    ExpiredBatch, Finish, Finished, NewAnswer, NewResponse, OpenRun, Park, Proof, Pruned, Record, Recorded, Refusal,
    Renewed, Retention, Suspend, Suspended,
};
