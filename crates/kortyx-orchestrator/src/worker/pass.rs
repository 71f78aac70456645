//! One pass of a worker.

use std::sync::Arc;

use kortyx_protocol::Timestamp;
use kortyx_store::{ClaimRequest, Claimed, ExpireRequest, ExpiredBatch, RunStatus};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use super::WorkerConfig;
use crate::{
    OrchestratorError,
    agent::Inner,
    telemetry::{Fact, ResumeReason},
};

/// How many batches one pass works off before others get their turn.
const BATCHES: u32 = 16;

/// What a pass did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerPass {
    /// Runs that go on: their driver was gone, or they had been set aside.
    pub recovered: usize,
    /// Questions closed because their time ran out.
    pub expired: usize,
    /// Runs that go on with a default.
    pub defaulted: usize,
    /// Runs that ended, because nothing of theirs is open any more.
    pub ended: usize,
    /// Runs, checkpoints and sessions removed.
    pub pruned: u64,
    /// There is more to do now.
    pub is_more: bool,
}

/// What a worker remembers from pass to pass.
#[derive(Debug)]
pub(super) struct Rounds {
    permits: Arc<Semaphore>,
    /// The store's time when the worker began: runs that were parked before get one more chance.
    began: Option<Timestamp>,
    pruned: Option<Instant>,
    /// Work was left because too many runs are being driven.
    is_full: bool,
}

impl Rounds {
    pub(super) fn new(config: &WorkerConfig) -> Self {
        Self { permits: Arc::new(Semaphore::new(config.concurrency)), began: None, pruned: None, is_full: false }
    }

    /// Waits until there is room again, when there was none.
    pub(super) async fn freed(&self) {
        if self.is_full {
            drop(self.permits.acquire().await);
        } else {
            std::future::pending::<()>().await;
        }
    }

    fn room(&self) -> u32 {
        u32::try_from(self.permits.available_permits()).unwrap_or(u32::MAX)
    }

    fn permit(&self) -> Option<OwnedSemaphorePermit> {
        self.permits.clone().try_acquire_owned().ok()
    }
}

impl Inner {
    pub(super) async fn pass(self: &Arc<Self>, rounds: &mut Rounds) -> Result<WorkerPass, OrchestratorError> {
        self.check_running()?;
        let mut pass = WorkerPass::default();
        let began = match rounds.began {
            Some(began) => began,
            None => *rounds.began.insert(self.store.now().await?),
        };
        self.expire(rounds, &mut pass).await?;
        self.recover(rounds, began, &mut pass).await?;
        if rounds.pruned.is_none_or(|last| last.elapsed() >= self.worker.prune_every) {
            self.prune(&mut pass).await?;
            rounds.pruned = Some(Instant::now());
        }
        Ok(pass)
    }

    async fn expire(self: &Arc<Self>, rounds: &mut Rounds, pass: &mut WorkerPass) -> Result<(), OrchestratorError> {
        for _ in 0..BATCHES {
            let limit = self.worker.expire_batch.min(rounds.room());
            rounds.is_full = limit == 0;
            if limit == 0 {
                return Ok(());
            }
            let request = ExpireRequest { driver: self.driver(), workflows: self.pins.clone(), limit };
            let ExpiredBatch { interrupts, ended, claimed, more } = self.store.expire_due(request).await?;
            pass.expired += interrupts.len();
            pass.ended += ended.len();
            pass.defaulted += claimed.len();
            for record in &interrupts {
                self.tell_expired(record, false);
            }
            for run_id in ended {
                let known = interrupts
                    .iter()
                    .find(|record| record.run_id == run_id)
                    .map(|record| self.telemetry.of_question(record));
                self.tell_ended(&run_id, RunStatus::Expired, known).await;
            }
            for claimed in claimed {
                self.drive_claimed(claimed, ResumeReason::Defaulted, rounds);
            }
            if !more {
                return Ok(());
            }
        }
        pass.is_more = true;
        Ok(())
    }

    async fn recover(
        self: &Arc<Self>,
        rounds: &mut Rounds,
        began: Timestamp,
        pass: &mut WorkerPass,
    ) -> Result<(), OrchestratorError> {
        if self.pins.is_empty() {
            return Ok(());
        }
        for _ in 0..BATCHES {
            let limit = self.worker.claim_batch.min(rounds.room());
            rounds.is_full = limit == 0;
            if limit == 0 {
                return Ok(());
            }
            let claimed = self.store.claim_orphans(ClaimRequest {
                driver: self.driver(),
                workflows: self.pins.clone(),
                parked_before: Some(began),
                limit,
            });
            let claimed = claimed.await?;
            let is_last = claimed.len() < limit as usize;
            pass.recovered += claimed.len();
            for claimed in claimed {
                self.take_over(claimed, rounds);
            }
            if is_last {
                return Ok(());
            }
        }
        pass.is_more = true;
        Ok(())
    }

    fn take_over(self: &Arc<Self>, claimed: Claimed, rounds: &Rounds) {
        self.telemetry.record(|| Fact::RunRecovered { about: self.telemetry.of_run(&claimed.run) });
        self.drive_claimed(claimed, ResumeReason::Recovered, rounds);
    }

    fn drive_claimed(self: &Arc<Self>, claimed: Claimed, reason: ResumeReason, rounds: &Rounds) {
        drop(self.spawn(self.granted(Box::new(claimed), reason, None), rounds.permit()));
    }

    async fn prune(&self, pass: &mut WorkerPass) -> Result<(), OrchestratorError> {
        for _ in 0..BATCHES {
            let pruned = self.store.prune(&self.worker.retention, self.worker.prune_batch).await?;
            pass.pruned += pruned.runs + pruned.checkpoints + pruned.sessions;
            if !pruned.more {
                return Ok(());
            }
        }
        Ok(())
    }
}
