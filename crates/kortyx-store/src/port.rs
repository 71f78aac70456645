//! The storage port.

use std::time::Duration;

use async_trait::async_trait;
use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId, Timestamp};

use crate::{
    AnswerOutcome, AnswerRequest, CancelOutcome, CancelRequest, CheckpointRecord, ChunkPage, ClaimRequest, Claimed,
    ExpireRequest, ExpiredBatch, Finish, Finished, Fork, ForkOutcome, InterruptPage, InterruptQuery, InterruptRecord,
    Lease, NewCheckpoint, OpenRun, Park, Placement, Pruned, Record, Recorded, Renewed, Retention, Rollback,
    RollbackOutcome, RunHistory, RunPage, RunQuery, RunRecord, SessionPage, SessionQuery, Signals, StoreError,
    StoreStats, Suspend, Suspended,
};

/// A place where runs, questions and checkpoints live.
///
/// Every method that writes is one atomic transition: after an error nothing of it happened, and after a crash
/// either all of it happened or nothing. Time is the store's clock; a deadline and a lease's end are past from their
/// very moment on. Writes under a [`Lease`] are refused with [`LeaseLost`](crate::StoreErrorKind::LeaseLost) when
/// another was granted since, it was given up, or the run is terminal or gone; a lease whose time ran out but that nobody
/// took over still writes.
///
/// Ids are validated by their types; one that a transition brings and that is taken is refused with
/// [`AlreadyExists`](crate::StoreErrorKind::AlreadyExists). Texts and payloads are kept byte for byte. What is refused
/// changes nothing.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Atomically creates or upgrades the schema; idempotent, from any number of processes at once. Refuses a schema
    /// newer than this code knows.
    async fn setup(&self) -> Result<(), StoreError>;

    /// The store's clock.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// Atomically stores a new run with its first snapshot and chunks and grants its first lease. An existing id is refused with
    /// [`AlreadyExists`](crate::StoreErrorKind::AlreadyExists). Here and in the other transitions that create runs, one that
    /// [follows](crate::NewRun::follows) a turn which was taken back is refused with [`Abandoned`](crate::StoreErrorKind::Abandoned).
    async fn open(&self, request: OpenRun) -> Result<Lease, StoreError>;

    /// Atomically appends journal entries and chunks, publishes and withdraws questions, and reads answers that the driver has
    /// not seen. The lease stays as it is, and the answers stay undelivered until a snapshot holds them.
    ///
    /// Withdrawing comes first; keys that are not open are ignored. A key whose question is open takes no second one:
    /// [`InvalidRequest`](crate::StoreErrorKind::InvalidRequest).
    ///
    /// With a response, the run's response is complete, and its checkpoint is appended to the session. A run completes its
    /// response once: a second one is refused with [`InvalidRequest`](crate::StoreErrorKind::InvalidRequest), whatever it says.
    async fn record(&self, request: Record) -> Result<Recorded, StoreError>;

    /// Atomically stores the snapshot, publishes and withdraws questions, appends the checkpoint and gives up the
    /// lease; or, when answers above `answers_seen` exist, does nothing and returns them.
    ///
    /// A run that was asked to stop ends as cancelled instead, its answers seen or not; its chunks are appended all the same. One
    /// left without an open question
    /// (all expired meanwhile) ends as expired; a question past its time that has a default counts as open, until
    /// [`expire_due`](Self::expire_due) applies it. Publishing and withdrawing go as in [`record`](Self::record); a new
    /// run that publishes nothing is refused with [`InvalidRequest`](crate::StoreErrorKind::InvalidRequest).
    async fn suspend(&self, request: Suspend) -> Result<Suspended, StoreError>;

    /// Atomically decides over answers to one run's questions: all or none. Accepts only pending, unexpired questions
    /// and, when nobody holds a live lease and a driver is given, also grants the lease and returns what it needs.
    ///
    /// The accepted run is `running` from then on. A repeat of an accepted answer (equal bytes) is a duplicate, whoever
    /// repeats it; one among answers that are new is accepted with them, under its first receipt. An answer to a parked
    /// run is accepted, and its lease granted, as for a suspended one.
    ///
    /// Each answer is checked in this order: the question is known and the proof fits, else
    /// [`Unknown`](crate::Refusal::Unknown); the session is the caller's, else
    /// [`WrongSession`](crate::Refusal::WrongSession); then the question's status. Once a run was asked to stop, its
    /// pending questions refuse as [`Cancelled`](crate::Refusal::Cancelled).
    ///
    /// A [cancellation](crate::NewAnswer::cancel) of a question without `optional_cancel` closes it as cancelled, with a
    /// receipt but nothing to deliver, and ends the run, or asks its driver to stop.
    ///
    /// Without an answer, with a question twice, with questions of different runs that the caller all may answer, or with
    /// such a cancellation beside other answers: [`InvalidRequest`](crate::StoreErrorKind::InvalidRequest). With a
    /// scope that restricts nothing: [`ScopeRequired`](crate::StoreErrorKind::ScopeRequired).
    async fn answer(&self, request: AnswerRequest) -> Result<AnswerOutcome, StoreError>;

    /// Atomically ends the run, closes its questions, appends the checkpoint and gives up the lease; or, when answers
    /// above `answers_seen` exist, does nothing and returns them. A driver that was asked to stop may end the run as it
    /// must.
    async fn finish(&self, request: Finish) -> Result<Finished, StoreError>;

    /// Atomically sets the run aside: snapshot, entries, questions and answers stay, the lease is given up. The reason
    /// stays until it is driven again.
    async fn park(&self, request: Park) -> Result<(), StoreError>;

    /// Atomically extends the lease to `ttl` from now and reads what the driver has not seen: answers above
    /// `answers_seen`, and a request to stop.
    async fn renew(&self, lease: &Lease, ttl: Duration, answers_seen: u64) -> Result<Renewed, StoreError>;

    /// Atomically gives up the lease; the run is an orphan that any worker may claim at once.
    async fn release(&self, lease: &Lease) -> Result<(), StoreError>;

    /// Atomically grants leases on runs that should be driven and are not: `running` without a live lease, oldest
    /// first; and, when asked, `parked` ones. Those among them that were asked to stop are ended as cancelled instead.
    async fn claim_orphans(&self, request: ClaimRequest) -> Result<Vec<Claimed>, StoreError>;

    /// Atomically, run by run: closes pending questions past their deadline. A default becomes an answer, and its run,
    /// unless driven, is leased to the caller; a run left without an open question, an undelivered answer or a driver
    /// ends as expired. A parked run keeps its defaults and stays parked; one that was asked to stop is never handed out.
    async fn expire_due(&self, request: ExpireRequest) -> Result<ExpiredBatch, StoreError>;

    /// Atomically, run by run: ends a run that nobody drives and closes its questions, or asks its driver to stop.
    /// Unknown runs, and runs outside the scope, yield nothing. A scope that restricts nothing is refused with
    /// [`ScopeRequired`](crate::StoreErrorKind::ScopeRequired).
    async fn cancel(&self, request: CancelRequest) -> Result<Vec<CancelOutcome>, StoreError>;

    /// Reads a run.
    async fn run(&self, run_id: &RunId) -> Result<Option<RunRecord>, StoreError>;

    /// Reads a run's chunks above a number, in order, at most `limit` of them (none for 0), with the run's status at that moment and
    /// whether its response is complete. `None`: no such run. Chunks live as long as their run.
    async fn chunks(&self, run_id: &RunId, after: u64, limit: u32) -> Result<Option<ChunkPage>, StoreError>;

    /// Reads a question, whatever its status. One that is pending but past its deadline reads as `Expired`, and whatever
    /// closes it later, it stays so.
    async fn interrupt(&self, request_id: &RequestId) -> Result<Option<InterruptRecord>, StoreError>;

    /// Reads a page of pending, unexpired questions through an index, oldest first. Refuses a query without session,
    /// run or context with [`ScopeRequired`](crate::StoreErrorKind::ScopeRequired), and a cursor that no page gave with
    /// [`InvalidRequest`](crate::StoreErrorKind::InvalidRequest). Over the pages of a listing no question comes twice, and
    /// none is missing that was open from the first page to the last.
    async fn list_interrupts(&self, query: InterruptQuery) -> Result<InterruptPage, StoreError>;

    /// Atomically appends a checkpoint to a session, which is created when new.
    async fn append_checkpoint(
        &self,
        session_id: &SessionId,
        checkpoint: NewCheckpoint,
    ) -> Result<CheckpointRecord, StoreError>;

    /// Reads a session's newest checkpoint that is not abandoned.
    async fn head(&self, session_id: &SessionId) -> Result<Option<CheckpointRecord>, StoreError>;

    /// Reads a session's checkpoints in turn order, without abandoned ones.
    async fn list_checkpoints(&self, session_id: &SessionId) -> Result<Vec<CheckpointRecord>, StoreError>;

    /// Reads a checkpoint that is not abandoned.
    async fn checkpoint(&self, id: &CheckpointId) -> Result<Option<CheckpointRecord>, StoreError>;

    /// Atomically makes a checkpoint the head: later ones are abandoned, runs of the session that are not terminal are
    /// cancelled with their pending questions superseded, and the checkpoint's open questions are open again, under new
    /// ids, in a new run with its snapshot and their original deadlines, bound to the definition that the snapshot was
    /// bound to. Rolling back to the head changes nothing and returns the questions that are open.
    async fn rollback(&self, request: Rollback) -> Result<RollbackOutcome, StoreError>;

    /// Atomically starts a new session from a checkpoint, with a copy of its snapshot in a new run and its open
    /// questions under new ids, as the new session's first checkpoint holds them. The original is untouched, and may be
    /// driven meanwhile.
    async fn fork(&self, request: Fork) -> Result<ForkOutcome, StoreError>;

    /// Atomically, in small batches: removes at most `limit` things that retention allows to go. Never an open question,
    /// a run that is not terminal, or a session's head while the session lives.
    async fn prune(&self, retention: &Retention, limit: u32) -> Result<Pruned, StoreError>;

    /// Reads a page of runs, whoever they belong to: for operators. In an order of the store's own. A cursor that no page gave is
    /// refused with [`InvalidRequest`](crate::StoreErrorKind::InvalidRequest). Over the pages of a listing no run comes twice, and
    /// none is missing that was stored, and asked for, from the first page to the last.
    ///
    /// A call looks at a bounded number of runs, so that a page of a query which few runs match may be short, or empty, and the
    /// listing go on. What else it costs is for the store to say.
    async fn list_runs(&self, query: RunQuery) -> Result<RunPage, StoreError>;

    /// Reads all that is kept of a run but its [`chunks`](Self::chunks), as it was at one moment: without a lease, whoever drives it,
    /// and changing nothing. For operators. `None`: no such run.
    async fn history(&self, run_id: &RunId) -> Result<Option<RunHistory>, StoreError>;

    /// Reads a page of sessions that have checkpoints, whoever they belong to: for operators. With the order, the cursors and the
    /// promises of [`list_runs`](Self::list_runs).
    async fn list_sessions(&self, query: SessionQuery) -> Result<SessionPage, StoreError>;

    /// Counts what is stored: for operators. It looks at all of it, and takes its time where that is much. A store that cannot count
    /// at one moment may miss, or count twice, what changes meanwhile.
    async fn stats(&self) -> Result<StoreStats, StoreError>;

    /// Where a session lives, for the ids of runs, questions and checkpoints that are made for it. A store finds an id that is
    /// [marked](Placement::mark) with it by the id alone; any other id it takes as well, and looks it up. The same for the same
    /// session at all times, without I/O. `None`, as by default: ids need no mark here.
    fn placement(&self, session_id: &SessionId) -> Option<Placement> {
        let _ = session_id;
        None
    }

    /// Hints that something changed, from this process and, where the store can, from others. Any may be lost.
    fn signals(&self) -> Signals;

    /// Finishes what is under way and frees what the store holds. Later calls fail with
    /// [`Closed`](crate::StoreErrorKind::Closed).
    async fn close(&self);
}
