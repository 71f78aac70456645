//! A store with a kill switch at every durable point.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, CancelOutcome, CancelRequest, CheckpointRecord, ChunkPage, ClaimRequest, Claimed,
    ExpireRequest, ExpiredBatch, Finish, Finished, Fork, ForkOutcome, InterruptPage, InterruptQuery, InterruptRecord,
    Lease, NewCheckpoint, NewRun, OpenRun, Park, Placement, Pruned, Record, Recorded, Renewed, Retention, Rollback,
    RollbackOutcome, RunHistory, RunPage, RunQuery, RunRecord, RunRef, SessionPage, SessionQuery, Signals, Store,
    StoreError, StoreErrorKind, StoreStats, Suspend, Suspended,
};

use crate::{
    Event, Kill, Log,
    kill::{die, stand_still},
};

/// A store that counts the durable points that this process passes.
///
/// What a worker tries every few milliseconds counts only when it changed something, and so only afterwards. Renewing a lease
/// does not count: it changes nothing but a time.
pub(crate) struct Switched {
    store: Arc<dyn Store>,
    log: Log,
    kill: Kill,
    points: AtomicU64,
    under_way: AtomicUsize,
}

/// A durable point that is being passed.
struct Passing<'a>(&'a AtomicUsize);

impl Drop for Passing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Switched {
    pub(crate) fn new(store: Arc<dyn Store>, log: Log, kill: Kill) -> Self {
        Self { store, log, kill, points: AtomicU64::new(0), under_way: AtomicUsize::new(0) }
    }

    /// How many durable points were passed.
    pub(crate) fn points(&self) -> u64 {
        self.points.load(Ordering::Relaxed)
    }

    /// Whether the log has all that this process made durable: others may read it in storage a moment before.
    pub(crate) fn has_told_all(&self) -> bool {
        self.under_way.load(Ordering::SeqCst) == 0
    }

    fn pass(&self) -> Passing<'_> {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        Passing(&self.under_way)
    }

    /// Whether the process stood still and was told to go on.
    pub(crate) fn has_stood_still(&self) -> bool {
        matches!(self.kill, Kill::Stop(point) if point <= self.points())
    }

    /// Passes a durable point; the log hears of what is known before the switch may fire.
    async fn point<T>(
        &self,
        transition: &str,
        work: impl Future<Output = Result<T, StoreError>> + Send,
        told: impl FnOnce(&T) -> Vec<Event> + Send,
    ) -> Result<T, StoreError> {
        let _passing = self.pass();
        let point = self.points.fetch_add(1, Ordering::Relaxed) + 1;
        if self.kill == Kill::Before(point) {
            self.fire(point, transition).await?;
        }
        if self.kill == Kill::Stop(point) {
            // Readers see a commit a little before its writer lets the file go, and a process that stands still in between
            // would hold up everybody. This waits for the writer.
            self.store.setup().await?;
            self.tell([Event::Fired { point, transition: transition.into() }])?;
            stand_still(&self.log.signal());
        }
        let outcome = self.watched(transition, work).await?;
        self.tell(told(&outcome))?;
        if self.kill == Kill::After(point) {
            self.fire(point, transition).await?;
        }
        Ok(outcome)
    }

    /// Tells the log of a failure, unless it only says that the run is somebody else's now.
    async fn watched<T>(
        &self,
        call: &str,
        work: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let outcome = work.await;
        if let Err(error) = &outcome
            && !matches!(error.kind(), StoreErrorKind::LeaseLost | StoreErrorKind::Closed)
        {
            self.tell([Event::Failed { call: call.to_owned(), reason: error.to_string() }])?;
        }
        outcome
    }

    /// Passes a durable point if something changed.
    async fn point_if(&self, transition: &str, has_changed: bool) -> Result<(), StoreError> {
        if !has_changed || matches!(self.kill, Kill::Before(_) | Kill::Stop(_)) {
            return Ok(());
        }
        let point = self.points.fetch_add(1, Ordering::Relaxed) + 1;
        if self.kill == Kill::After(point) { self.fire(point, transition).await } else { Ok(()) }
    }

    async fn fire(&self, point: u64, transition: &str) -> Result<(), StoreError> {
        self.tell([Event::Fired { point, transition: transition.into() }])?;
        die().await
    }

    fn tell(&self, events: impl IntoIterator<Item = Event>) -> Result<(), StoreError> {
        events.into_iter().try_for_each(|event| self.log.append(event)).map_err(|error| {
            StoreError::new(StoreErrorKind::Backend, "log", "the log cannot be written").with_source(error)
        })
    }

    fn tell_new(&self, run: &NewRun) -> Result<(), StoreError> {
        self.tell([Event::Began { run_id: run.run_id.clone() }])
    }

    fn tell_ref(&self, run: &RunRef) -> Result<RunId, StoreError> {
        match run {
            RunRef::New(run, _) => self.tell_new(run).map(|()| run.run_id.clone()),
            RunRef::Held(lease) => Ok(lease.run_id.clone()),
        }
    }
}

fn published(questions: &[InterruptRecord]) -> Vec<Event> {
    questions.iter().map(|question| Event::Published { request_id: question.request_id.clone() }).collect()
}

#[async_trait]
impl Store for Switched {
    async fn setup(&self) -> Result<(), StoreError> {
        self.store.setup().await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.watched("now", self.store.now()).await
    }

    async fn open(&self, request: OpenRun) -> Result<Lease, StoreError> {
        self.tell_new(&request.run)?;
        self.point("open", self.store.open(request), |_| Vec::new()).await
    }

    async fn record(&self, request: Record) -> Result<Recorded, StoreError> {
        let run_id = request.lease.run_id.clone();
        let entries = request.entries.clone();
        let told = |recorded: &Recorded| {
            let mut events = published(&recorded.published);
            events.extend(self.log.recorded_in(&entries));
            events.push(Event::Stored { run_id });
            events
        };
        self.point("record", self.store.record(request), told).await
    }

    async fn suspend(&self, request: Suspend) -> Result<Suspended, StoreError> {
        let run_id = self.tell_ref(&request.run)?;
        let told = |suspended: &Suspended| match suspended {
            Suspended::Saved(open) => {
                let mut events = published(open);
                events.push(Event::Stored { run_id });
                events
            }
            _ => Vec::new(),
        };
        self.point("suspend", self.store.suspend(request), told).await
    }

    async fn answer(&self, request: AnswerRequest) -> Result<AnswerOutcome, StoreError> {
        let outcome = self.point("answer", self.store.answer(request), |_| Vec::new()).await?;
        if self.kill == Kill::Accepted && matches!(outcome, AnswerOutcome::Accepted(..)) {
            self.fire(self.points(), "answer").await?;
        }
        Ok(outcome)
    }

    async fn finish(&self, request: Finish) -> Result<Finished, StoreError> {
        let run_id = self.tell_ref(&request.run)?;
        let told = |finished: &Finished| match finished {
            Finished::Done => vec![Event::Stored { run_id }],
            Finished::Answered(_) => Vec::new(),
        };
        self.point("finish", self.store.finish(request), told).await
    }

    async fn park(&self, request: Park) -> Result<(), StoreError> {
        self.point("park", self.store.park(request), |()| Vec::new()).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration, answers_seen: u64) -> Result<Renewed, StoreError> {
        self.watched("renew", self.store.renew(lease, ttl, answers_seen)).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.point("release", self.store.release(lease), |()| Vec::new()).await
    }

    async fn claim_orphans(&self, request: ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        let claimed = self.watched("claim orphans", self.store.claim_orphans(request)).await?;
        self.point_if("claim orphans", !claimed.is_empty()).await?;
        Ok(claimed)
    }

    async fn expire_due(&self, request: ExpireRequest) -> Result<ExpiredBatch, StoreError> {
        let expired = self.watched("expire due", self.store.expire_due(request)).await?;
        self.point_if("expire due", !expired.interrupts.is_empty()).await?;
        Ok(expired)
    }

    async fn cancel(&self, request: CancelRequest) -> Result<Vec<CancelOutcome>, StoreError> {
        self.point("cancel", self.store.cancel(request), |_| Vec::new()).await
    }

    async fn run(&self, run_id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        self.watched("run", self.store.run(run_id)).await
    }

    async fn chunks(&self, run_id: &RunId, after: u64, limit: u32) -> Result<Option<ChunkPage>, StoreError> {
        self.watched("chunks", self.store.chunks(run_id, after, limit)).await
    }

    async fn interrupt(&self, request_id: &RequestId) -> Result<Option<InterruptRecord>, StoreError> {
        self.watched("interrupt", self.store.interrupt(request_id)).await
    }

    async fn list_interrupts(&self, query: InterruptQuery) -> Result<InterruptPage, StoreError> {
        self.watched("list interrupts", self.store.list_interrupts(query)).await
    }

    async fn list_runs(&self, query: RunQuery) -> Result<RunPage, StoreError> {
        self.watched("list runs", self.store.list_runs(query)).await
    }

    async fn history(&self, run_id: &RunId) -> Result<Option<RunHistory>, StoreError> {
        self.watched("history", self.store.history(run_id)).await
    }

    async fn list_sessions(&self, query: SessionQuery) -> Result<SessionPage, StoreError> {
        self.watched("list sessions", self.store.list_sessions(query)).await
    }

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        self.watched("stats", self.store.stats()).await
    }

    async fn append_checkpoint(
        &self,
        session_id: &SessionId,
        checkpoint: NewCheckpoint,
    ) -> Result<CheckpointRecord, StoreError> {
        self.point("append checkpoint", self.store.append_checkpoint(session_id, checkpoint), |_| Vec::new()).await
    }

    async fn head(&self, session_id: &SessionId) -> Result<Option<CheckpointRecord>, StoreError> {
        self.watched("head", self.store.head(session_id)).await
    }

    async fn list_checkpoints(&self, session_id: &SessionId) -> Result<Vec<CheckpointRecord>, StoreError> {
        self.watched("list checkpoints", self.store.list_checkpoints(session_id)).await
    }

    async fn checkpoint(&self, id: &CheckpointId) -> Result<Option<CheckpointRecord>, StoreError> {
        self.watched("checkpoint", self.store.checkpoint(id)).await
    }

    async fn rollback(&self, request: Rollback) -> Result<RollbackOutcome, StoreError> {
        self.point("rollback", self.store.rollback(request), |_| Vec::new()).await
    }

    async fn fork(&self, request: Fork) -> Result<ForkOutcome, StoreError> {
        self.point("fork", self.store.fork(request), |_| Vec::new()).await
    }

    async fn prune(&self, retention: &Retention, limit: u32) -> Result<Pruned, StoreError> {
        let pruned = self.watched("prune", self.store.prune(retention, limit)).await?;
        self.point_if("prune", pruned.runs + pruned.checkpoints + pruned.sessions > 0).await?;
        Ok(pruned)
    }

    fn placement(&self, session_id: &SessionId) -> Option<Placement> {
        self.store.placement(session_id)
    }

    fn signals(&self) -> Signals {
        self.store.signals()
    }

    async fn close(&self) {
        self.store.close().await;
    }
}
