//! Transitions that take a cache of snapshots into account.

use async_trait::async_trait;
use futures_util::future::join_all;
use kortyx_protocol::{RunId, Timestamp};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, CacheableStore, ClaimRequest, Claimed, Drive, ExpireRequest, ExpiredBatch,
    InterruptRecord, Lease, OpenRun, Proof, Revision, RunRef, Scope, SnapshotCache, StoreError, StoreErrorKind,
    Suspend, Suspended,
};
use serde_json::{Value, json};

use crate::{
    PostgresStore, drafts,
    encoding::hex,
    reply::Claim,
    request::{Draft, bounded},
    row::Reading,
    store::{empty_scope, published, said, state, unexpected},
};

/// A cache, where there is one.
pub(crate) type Beside<'a> = Option<&'a dyn SnapshotCache>;

impl PostgresStore {
    pub(crate) async fn open_run(&self, cache: Beside<'_>, request: OpenRun) -> Result<Lease, StoreError> {
        const NAME: &str = "open";
        self.check(NAME, said(&request.chunks).chain([("a snapshot", &request.snapshot)]))?;
        let revision = cache.and_then(|cache| cache.revision(&request.snapshot));
        let head = self.transit(NAME, "open", drafts::open(&request).with("revision", text(revision))).await?.head;
        let run_id = request.run.run_id;
        keep(cache, &run_id, revision, request.snapshot);
        Ok(Lease { run_id, fence: head.fence, until: Timestamp::from_millis(head.until) })
    }

    pub(crate) async fn suspend_run(&self, cache: Beside<'_>, request: Suspend) -> Result<Suspended, StoreError> {
        const NAME: &str = "suspend";
        let payloads =
            published(&request.publish).chain(state(request.checkpoint.as_ref())).chain(said(&request.chunks));
        self.check(NAME, payloads.chain([("a snapshot", &request.snapshot)]))?;
        if matches!(request.run, RunRef::New(..)) && request.publish.is_empty() {
            let message = "a new run that asks nothing cannot wait";
            return Err(StoreError::new(StoreErrorKind::InvalidRequest, NAME, message));
        }
        let revision = cache.and_then(|cache| cache.revision(&request.snapshot));
        let draft = drafts::suspend(&request).with("revision", text(revision));
        let mut reply = self.transit(NAME, "suspend", draft).await?;
        match reply.head.kind.as_str() {
            "saved" => {
                let run_id = match &request.run {
                    RunRef::New(run, _) => &run.run_id,
                    RunRef::Held(lease) => &lease.run_id,
                };
                let published = reply.published(run_id, request.publish).map_err(|malformed| malformed.told(NAME))?;
                keep(cache, run_id, revision, request.snapshot);
                // What is past its time at once, without a default, is open for nobody.
                let waits = |new: &InterruptRecord| new.default.is_some() || new.expires_at > new.created_at;
                let mut open = reply.open;
                open.extend(published.into_iter().filter(waits));
                Ok(Suspended::Saved(open))
            }
            "answered" => Ok(Suspended::Answered(reply.answers)),
            "cancelled" => Ok(Suspended::Cancelled),
            "expired" => Ok(Suspended::Expired),
            other => Err(unexpected(other).told(NAME)),
        }
    }

    pub(crate) async fn accept(&self, cache: Beside<'_>, request: AnswerRequest) -> Result<AnswerOutcome, StoreError> {
        const NAME: &str = "answer";
        self.check(NAME, request.answers.iter().map(|answer| ("an answer", &answer.answer)))?;
        if request.answers.iter().any(|answer| matches!(&answer.proof, Proof::Scope(scope) if Scope::is_empty(scope))) {
            return Err(empty_scope(NAME, "an answer by scope needs a session or a context"));
        }
        if request.answers.is_empty() {
            return Err(StoreError::new(StoreErrorKind::InvalidRequest, NAME, "there is no answer"));
        }
        let mut reply = self.transit(NAME, "answer", drafts::answer(&request).with("detached", asks(cache))).await?;
        let claim = match std::mem::take(&mut reply.claims).into_iter().next() {
            Some(claim) => Some(claim.map_err(|malformed| malformed.told(NAME))?),
            None => None,
        };
        let was_granted = claim.is_some();
        let granted = self.complete(cache, claim).await.pop();
        let mut outcome = reply.into_answer().map_err(|malformed| malformed.told(NAME))?;
        if let AnswerOutcome::Accepted(_, drive) = &mut outcome {
            match granted {
                Some(claimed) => *drive = Drive::Granted(Box::new(claimed)),
                // What was accepted is accepted, and a worker drives it.
                None if was_granted => *drive = Drive::Left,
                None => {}
            }
        }
        Ok(outcome)
    }

    pub(crate) async fn claim(&self, cache: Beside<'_>, request: ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        let draft = drafts::claim(&request).with("detached", asks(cache));
        let reply = self.transit("claim orphans", "claim", draft).await?;
        Ok(self.complete(cache, readable(reply.claims)).await)
    }

    pub(crate) async fn expire(&self, cache: Beside<'_>, request: ExpireRequest) -> Result<ExpiredBatch, StoreError> {
        let draft = drafts::expire(&request).with("detached", asks(cache));
        let reply = self.transit("expire due", "expire", draft).await?;
        Ok(ExpiredBatch {
            interrupts: reply.questions,
            ended: reply.head.ended,
            claimed: self.complete(cache, readable(reply.claims)).await,
            more: reply.head.more,
        })
    }

    /// Adds the snapshots that stayed behind: from the cache, all at once, and those that it does not have in one reading. A run
    /// whose snapshot cannot be had is left alone until its lease runs out.
    async fn complete(&self, cache: Beside<'_>, claims: impl IntoIterator<Item = Claim>) -> Vec<Claimed> {
        let mut claims: Vec<Claim> = claims.into_iter().collect();
        if let Some(cache) = cache {
            join_all(claims.iter_mut().map(|claim| find(cache, claim))).await;
        }
        let leases = claims.iter().filter(|claim| claim.behind.is_some()).map(|claim| &claim.claimed.lease);
        let leases: Vec<Value> =
            leases.map(|lease| json!({"run_id": lease.run_id.as_str(), "fence": bounded(lease.fence)})).collect();
        if !leases.is_empty() {
            match self.read("read snapshots", "snapshots", Draft::new().with("leases", leases)).await {
                Ok(reply) => {
                    for (run_id, snapshot) in reply.snapshots {
                        if let Some(claim) = claims.iter_mut().find(|claim| claim.claimed.run.run_id == run_id) {
                            claim.fill(snapshot);
                        }
                    }
                }
                Err(error) => tracing::warn!(%error, "runs are left alone whose snapshots cannot be read"),
            }
        }
        claims.into_iter().filter(|claim| claim.behind.is_none()).map(|claim| claim.claimed).collect()
    }
}

async fn find(cache: &dyn SnapshotCache, claim: &mut Claim) {
    if let Some(revision) = claim.behind
        && let Some(snapshot) = cache.find(&claim.claimed.run.run_id, &revision).await
    {
        claim.fill(snapshot);
    }
}

fn asks(cache: Beside<'_>) -> bool {
    cache.is_some_and(SnapshotCache::is_asked)
}

fn text(revision: Option<Revision>) -> Option<String> {
    revision.map(|revision| hex(revision.as_bytes()))
}

fn keep(cache: Beside<'_>, run_id: &RunId, revision: Option<Revision>, snapshot: kortyx_store::Bytes) {
    if let (Some(cache), Some(revision)) = (cache, revision) {
        cache.keep(run_id, revision, snapshot);
    }
}

/// The runs that are handed out; what does not read back is left alone until its lease runs out.
fn readable(claims: Vec<Reading<Claim>>) -> Vec<Claim> {
    let read = claims.into_iter().filter_map(|claim| match claim {
        Ok(claim) => Some(claim),
        Err(malformed) => {
            tracing::error!(reason = malformed.0, "a run that does not read back is left alone");
            None
        }
    });
    read.collect()
}

#[async_trait]
impl CacheableStore for PostgresStore {
    async fn open_beside(&self, cache: &dyn SnapshotCache, request: OpenRun) -> Result<Lease, StoreError> {
        self.open_run(Some(cache), request).await
    }

    async fn suspend_beside(&self, cache: &dyn SnapshotCache, request: Suspend) -> Result<Suspended, StoreError> {
        self.suspend_run(Some(cache), request).await
    }

    async fn answer_beside(
        &self,
        cache: &dyn SnapshotCache,
        request: AnswerRequest,
    ) -> Result<AnswerOutcome, StoreError> {
        self.accept(Some(cache), request).await
    }

    async fn claim_orphans_beside(
        &self,
        cache: &dyn SnapshotCache,
        request: ClaimRequest,
    ) -> Result<Vec<Claimed>, StoreError> {
        self.claim(Some(cache), request).await
    }

    async fn expire_due_beside(
        &self,
        cache: &dyn SnapshotCache,
        request: ExpireRequest,
    ) -> Result<ExpiredBatch, StoreError> {
        self.expire(Some(cache), request).await
    }
}
