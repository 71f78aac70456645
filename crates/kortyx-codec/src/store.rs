//! The store that encodes what another one keeps.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use kortyx_protocol::{CheckpointId, Failure, FailureCode, RequestId, RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, CancelOutcome, CancelRequest, CheckpointRecord, ChunkPage, ClaimRequest, Claimed,
    Drive, ExpireRequest, ExpiredBatch, Finish, Finished, Fork, ForkOutcome, InterruptPage, InterruptQuery,
    InterruptRecord, Lease, NewCheckpoint, OpenRun, Park, Placement, Pruned, Record, Recorded, Refusal, Renewed,
    Retention, Rollback, RollbackOutcome, RunHistory, RunPage, RunQuery, RunRecord, SessionPage, SessionQuery, Signals,
    Store, StoreError, StoreStats, Suspend, Suspended,
};

use crate::{PayloadCodec, opened::Opener, sealed::Sealer};

/// A store whose payloads pass through a codec.
///
/// What the codec sees: snapshots, journal entries, chunks, questions, answers with their defaults, outcomes, checkpoint states. What
/// it does not: ids, tokens, the names of workflows, nodes and checkpoints, context values, actors, reasons, times.
///
/// A run whose payload does not read when a lease on it is granted is parked with the reason, and its answers are kept: it goes on
/// in a process that can read it.
pub struct CodecStore<S: ?Sized> {
    codec: Arc<dyn PayloadCodec>,
    inner: Arc<S>,
}

impl<S: Store> CodecStore<S> {
    /// Passes the payloads of a store through a codec.
    pub fn new(store: S, codec: impl PayloadCodec) -> Self {
        Self::over(Arc::new(store), Arc::new(codec))
    }
}

impl<S: Store + ?Sized> CodecStore<S> {
    /// As [`new`](CodecStore::new), with what others use too.
    pub fn over(store: Arc<S>, codec: Arc<dyn PayloadCodec>) -> Self {
        Self { codec, inner: store }
    }

    fn sealer(&self, operation: &'static str) -> Sealer<'_> {
        Sealer { codec: &*self.codec, operation }
    }

    fn opener(&self, operation: &'static str) -> Opener<'_> {
        Opener { codec: &*self.codec, operation }
    }

    /// What a driver receives; a run that does not read is parked, and yields nothing.
    async fn claimed(&self, opener: &Opener<'_>, claimed: Claimed) -> Result<Option<Claimed>, StoreError> {
        let (lease, run_id) = (claimed.lease.clone(), claimed.run.run_id.clone());
        let error = match opener.claimed(claimed) {
            Ok(claimed) => return Ok(Some(claimed)),
            Err(error) => error,
        };
        tracing::error!(run = run_id.as_str(), %error, "a run does not read and is set aside");
        let failure = Failure::new(FailureCode::PersistenceError, error.to_string());
        let reason = serde_json::to_string(&failure).unwrap_or_else(|_| failure.to_string());
        self.inner.park(Park { lease, reason }).await?;
        Ok(None)
    }

    async fn all_claimed(&self, opener: &Opener<'_>, all: Vec<Claimed>) -> Result<Vec<Claimed>, StoreError> {
        let mut read = Vec::with_capacity(all.len());
        for claimed in all {
            read.extend(self.claimed(opener, claimed).await?);
        }
        Ok(read)
    }

    /// Replaces answers that repeat the accepted one by its stored form: encoding may give other bytes each time, and the store
    /// compares bytes. Whether there was one.
    async fn repeat(
        &self,
        plain: &[(RequestId, Bytes)],
        request: &mut AnswerRequest,
        refusals: &[(RequestId, Refusal)],
    ) -> Result<bool, StoreError> {
        let mut is_changed = false;
        for (request_id, refusal) in refusals {
            // A cancellation that ended the run counts as an answer, too.
            if !matches!(refusal, Refusal::Conflict(_) | Refusal::Cancelled) {
                continue;
            }
            let given = plain.iter().find(|(id, _)| id == request_id).map(|(_, answer)| answer);
            let stored = self.inner.interrupt(request_id).await?.and_then(|record| record.answer);
            let (Some(given), Some(stored)) = (given, stored) else { continue };
            let answer = request.answers.iter_mut().find(|answer| answer.request_id == *request_id);
            let Some(answer) = answer.filter(|answer| answer.answer != stored) else { continue };
            if self.opener("answer").answer(stored.clone(), request_id)? == *given {
                answer.answer = stored;
                is_changed = true;
            }
        }
        Ok(is_changed)
    }

    async fn accepted(&self, outcome: AnswerOutcome) -> Result<AnswerOutcome, StoreError> {
        let opener = self.opener("answer");
        Ok(match outcome {
            AnswerOutcome::Accepted(receipts, Drive::Granted(claimed)) => {
                let drive = match self.claimed(&opener, *claimed).await? {
                    Some(claimed) => Drive::Granted(Box::new(claimed)),
                    None => Drive::Left,
                };
                AnswerOutcome::Accepted(receipts, drive)
            }
            AnswerOutcome::Duplicate(receipts, run) => AnswerOutcome::Duplicate(receipts, Box::new(opener.run(*run)?)),
            other => other,
        })
    }
}

#[async_trait]
impl<S: Store + ?Sized> Store for CodecStore<S> {
    async fn setup(&self) -> Result<(), StoreError> {
        self.inner.setup().await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.inner.now().await
    }

    async fn open(&self, request: OpenRun) -> Result<Lease, StoreError> {
        self.inner.open(self.sealer("open").open(request)?).await
    }

    async fn record(&self, request: Record) -> Result<Recorded, StoreError> {
        let recorded = self.inner.record(self.sealer("record").record(request)?).await?;
        let opener = self.opener("record");
        Ok(Recorded {
            answers: opener.answers(recorded.answers)?,
            published: opener.interrupts(recorded.published)?,
            cancel_requested: recorded.cancel_requested,
        })
    }

    async fn suspend(&self, request: Suspend) -> Result<Suspended, StoreError> {
        let opener = self.opener("suspend");
        Ok(match self.inner.suspend(self.sealer("suspend").suspend(request)?).await? {
            Suspended::Saved(open) => Suspended::Saved(opener.interrupts(open)?),
            Suspended::Answered(answers) => Suspended::Answered(opener.answers(answers)?),
            other => other,
        })
    }

    async fn answer(&self, request: AnswerRequest) -> Result<AnswerOutcome, StoreError> {
        let plain: Vec<_> =
            request.answers.iter().map(|answer| (answer.request_id.clone(), answer.answer.clone())).collect();
        let mut request = self.sealer("answer").answer(request)?;
        let mut outcome = self.inner.answer(request.clone()).await?;
        // An accepted answer never changes, so each round settles at least one question for good.
        while let AnswerOutcome::Refused(refusals) = &outcome {
            if !self.repeat(&plain, &mut request, refusals).await? {
                break;
            }
            outcome = self.inner.answer(request.clone()).await?;
        }
        self.accepted(outcome).await
    }

    async fn finish(&self, request: Finish) -> Result<Finished, StoreError> {
        Ok(match self.inner.finish(self.sealer("finish").finish(request)?).await? {
            Finished::Answered(answers) => Finished::Answered(self.opener("finish").answers(answers)?),
            Finished::Done => Finished::Done,
        })
    }

    async fn park(&self, request: Park) -> Result<(), StoreError> {
        self.inner.park(request).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration, answers_seen: u64) -> Result<Renewed, StoreError> {
        let renewed = self.inner.renew(lease, ttl, answers_seen).await?;
        Ok(Renewed { answers: self.opener("renew").answers(renewed.answers)?, ..renewed })
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.inner.release(lease).await
    }

    async fn claim_orphans(&self, request: ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        let claimed = self.inner.claim_orphans(request).await?;
        self.all_claimed(&self.opener("claim_orphans"), claimed).await
    }

    async fn expire_due(&self, request: ExpireRequest) -> Result<ExpiredBatch, StoreError> {
        let batch = self.inner.expire_due(request).await?;
        let opener = self.opener("expire_due");
        // What is closed is closed: one that does not read is handed on without its content.
        let read =
            |record: InterruptRecord| opener.interrupt(record.clone()).unwrap_or_else(|_| without_content(record));
        Ok(ExpiredBatch {
            interrupts: batch.interrupts.into_iter().map(read).collect(),
            claimed: self.all_claimed(&opener, batch.claimed).await?,
            ended: batch.ended,
            more: batch.more,
        })
    }

    async fn cancel(&self, request: CancelRequest) -> Result<Vec<CancelOutcome>, StoreError> {
        self.inner.cancel(request).await
    }

    async fn run(&self, run_id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        self.inner.run(run_id).await?.map(|run| self.opener("run").run(run)).transpose()
    }

    async fn chunks(&self, run_id: &RunId, after: u64, limit: u32) -> Result<Option<ChunkPage>, StoreError> {
        let page = self.inner.chunks(run_id, after, limit).await?;
        page.map(|page| self.opener("chunks").chunks(page, run_id)).transpose()
    }

    async fn interrupt(&self, request_id: &RequestId) -> Result<Option<InterruptRecord>, StoreError> {
        let record = self.inner.interrupt(request_id).await?;
        record.map(|record| self.opener("interrupt").interrupt(record)).transpose()
    }

    async fn list_interrupts(&self, query: InterruptQuery) -> Result<InterruptPage, StoreError> {
        let page = self.inner.list_interrupts(query).await?;
        let interrupts = self.opener("list_interrupts").interrupts(page.interrupts)?;
        Ok(InterruptPage { interrupts, next: page.next })
    }

    async fn list_runs(&self, query: RunQuery) -> Result<RunPage, StoreError> {
        self.inner.list_runs(query).await
    }

    async fn history(&self, run_id: &RunId) -> Result<Option<RunHistory>, StoreError> {
        self.inner.history(run_id).await?.map(|history| self.opener("history").history(history)).transpose()
    }

    async fn list_sessions(&self, query: SessionQuery) -> Result<SessionPage, StoreError> {
        self.inner.list_sessions(query).await
    }

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        self.inner.stats().await
    }

    async fn append_checkpoint(
        &self,
        session_id: &SessionId,
        checkpoint: NewCheckpoint,
    ) -> Result<CheckpointRecord, StoreError> {
        let checkpoint = self.sealer("append_checkpoint").checkpoint(checkpoint)?;
        let record = self.inner.append_checkpoint(session_id, checkpoint).await?;
        self.opener("append_checkpoint").checkpoint(record)
    }

    async fn head(&self, session_id: &SessionId) -> Result<Option<CheckpointRecord>, StoreError> {
        let head = self.inner.head(session_id).await?;
        head.map(|record| self.opener("head").checkpoint(record)).transpose()
    }

    async fn list_checkpoints(&self, session_id: &SessionId) -> Result<Vec<CheckpointRecord>, StoreError> {
        self.opener("list_checkpoints").checkpoints(self.inner.list_checkpoints(session_id).await?)
    }

    async fn checkpoint(&self, id: &CheckpointId) -> Result<Option<CheckpointRecord>, StoreError> {
        let record = self.inner.checkpoint(id).await?;
        record.map(|record| self.opener("checkpoint").checkpoint(record)).transpose()
    }

    async fn rollback(&self, request: Rollback) -> Result<RollbackOutcome, StoreError> {
        let opener = self.opener("rollback");
        Ok(match self.inner.rollback(request).await? {
            RollbackOutcome::Done { head, abandoned, superseded, interrupts } => RollbackOutcome::Done {
                head: Box::new(opener.checkpoint(*head)?),
                abandoned: opener.checkpoints(abandoned)?,
                superseded: opener.interrupts(superseded)?,
                interrupts: opener.interrupts(interrupts)?,
            },
            other => other,
        })
    }

    async fn fork(&self, request: Fork) -> Result<ForkOutcome, StoreError> {
        let opener = self.opener("fork");
        Ok(match self.inner.fork(request).await? {
            ForkOutcome::Done { checkpoint, interrupts } => ForkOutcome::Done {
                checkpoint: Box::new(opener.checkpoint(*checkpoint)?),
                interrupts: opener.interrupts(interrupts)?,
            },
            other => other,
        })
    }

    async fn prune(&self, retention: &Retention, limit: u32) -> Result<Pruned, StoreError> {
        self.inner.prune(retention, limit).await
    }

    fn placement(&self, session_id: &SessionId) -> Option<Placement> {
        self.inner.placement(session_id)
    }

    fn signals(&self) -> Signals {
        self.inner.signals()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

fn without_content(mut record: InterruptRecord) -> InterruptRecord {
    record.question = Bytes::new();
    record.answer = None;
    record.default = None;
    record
}
