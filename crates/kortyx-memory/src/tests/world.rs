//! A store on a clock that stands still, to which anything may happen.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use kortyx_protocol::{CheckpointId, RequestId, ResumeToken, RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, AskKey, CancelRequest, CancelTarget, ClaimRequest, Claimed, Drive, ExpireRequest,
    Finish, Fork, Lease, ManualClock, NewAnswer, NewCheckpoint, NewInterrupt, NewRun, OpenRun, Park, Record, Reissue,
    Retention, Rollback, RunRef, Scalar, Store, Suspend, Suspended, TerminalStatus, WorkflowPin,
};
use tokio::runtime::{Builder, Runtime};

use super::requests::{TTL, answer, ask, checkpoint, driver, pin};
use crate::MemoryStore;

pub(super) const NOTHING_KEPT: Retention = Retention {
    finished_runs: Duration::ZERO,
    checkpoints_per_session: 1,
    checkpoint_age: Duration::ZERO,
    idle_sessions: Duration::ZERO,
};

/// A store on a clock that stands still, with names that count.
pub(super) struct World {
    pub(super) clock: Arc<ManualClock>,
    pub(super) store: MemoryStore,
    pub(super) runtime: Runtime,
    pub(super) names: u64,
    /// A xorshift generator (Marsaglia 2003).
    random: u64,
    pub(super) leases: Vec<(Lease, u64)>,
    asked: Vec<(RequestId, ResumeToken)>,
    checkpoints: Vec<CheckpointId>,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_000_000)));
        Self {
            store: MemoryStore::builder().with_clock(clock.clone()).build(),
            clock,
            runtime: Builder::new_current_thread().build().unwrap(),
            names: 0,
            random: seed,
            leases: Vec::new(),
            asked: Vec::new(),
            checkpoints: Vec::new(),
        }
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % end
    }

    pub(super) fn name(&mut self, kind: &str) -> String {
        self.names += 1;
        format!("{kind}-{}", self.names)
    }

    pub(super) fn pin(&mut self) -> WorkflowPin {
        pin(self.below(3))
    }

    pub(super) fn new_run(&mut self) -> NewRun {
        let session_id = SessionId::new(format!("session-{}", self.below(4))).unwrap();
        let tenant = ("tenant".to_owned(), Scalar::Int(i64::from(self.below(2) == 0)));
        let context = if self.below(2) == 0 { BTreeMap::new() } else { BTreeMap::from([tenant]) };
        NewRun {
            run_id: RunId::new(self.name("run")).unwrap(),
            session_id,
            workflow: self.pin(),
            context,
            follows: None,
        }
    }

    pub(super) fn questions(&mut self) -> Vec<NewInterrupt> {
        let count = self.below(3);
        (0..count)
            .map(|_| {
                let seconds = [0, 20, 60, 600][usize::try_from(self.below(4)).unwrap()];
                let mut asked = ask(&self.name("q"), Duration::from_secs(seconds));
                asked.optional_cancel = self.below(2) == 0;
                asked.default = (self.below(3) == 0).then(|| Bytes::from_static(b"default"));
                self.asked.push((asked.request_id.clone(), asked.token.clone()));
                asked
            })
            .collect()
    }

    pub(super) fn new_checkpoint(&mut self) -> Option<NewCheckpoint> {
        if self.below(3) > 0 {
            return None;
        }
        let checkpoint = checkpoint(&self.name("cp"));
        self.checkpoints.push(checkpoint.id.clone());
        Some(checkpoint)
    }

    pub(super) fn run_ref(&mut self) -> (RunRef, u64) {
        let count = self.leases.len() as u64;
        if count == 0 || self.below(3) == 0 {
            return (RunRef::New(self.new_run(), driver()), 0);
        }
        let at = usize::try_from(self.below(count)).unwrap();
        let (lease, seen) = self.leases.swap_remove(at);
        (RunRef::Held(lease), seen)
    }

    pub(super) fn keep(&mut self, claimed: Claimed) {
        let seen = claimed.run.answers;
        self.leases.push((claimed.lease, seen));
    }

    /// Does something, wanted or not; what is refused must change nothing that the indexes depend on.
    pub(super) fn act(&mut self) {
        match self.below(14) {
            0 => self.open(),
            1 | 2 => self.suspend(),
            3..=5 => self.answer(),
            6 => self.finish(),
            7 => self.give_up(),
            8 => self.record(),
            9 => self.claim(),
            10 => self.expire(),
            11 => self.cancel(),
            12 => self.go_back(),
            _ => {
                let seconds = self.below(25);
                self.clock.advance(Duration::from_secs(seconds));
                let limit = u32::try_from(self.below(4)).unwrap();
                self.runtime.block_on(self.store.prune(&NOTHING_KEPT, limit)).unwrap();
            }
        }
    }

    pub(super) fn open(&mut self) {
        let request = OpenRun { run: self.new_run(), driver: driver(), snapshot: Bytes::new(), chunks: Vec::new() };
        let lease = self.runtime.block_on(self.store.open(request)).unwrap();
        self.leases.push((lease, 0));
    }

    pub(super) fn suspend(&mut self) {
        let (run, answers_seen) = self.run_ref();
        let (workflow, publish, checkpoint) = (self.pin(), self.questions(), self.new_checkpoint());
        let withdraw = vec![AskKey(format!("q-{}", self.below(self.names + 1)))];
        let held = if let RunRef::Held(lease) = &run { Some(lease.clone()) } else { None };
        let snapshot = Bytes::new();
        let request =
            Suspend { run, workflow, snapshot, publish, withdraw, chunks: Vec::new(), answers_seen, checkpoint };
        if let (Ok(Suspended::Answered(answers)), Some(lease)) =
            (self.runtime.block_on(self.store.suspend(request)), held)
        {
            self.leases.push((lease, answers.last().unwrap().seq));
        }
    }

    pub(super) fn answer(&mut self) {
        let count = self.asked.len() as u64;
        if count == 0 {
            return;
        }
        let at = usize::try_from(self.below(count)).unwrap();
        let (request_id, token) = self.asked[at].clone();
        let answer = NewAnswer { cancel: self.below(4) == 0, ..answer(request_id, token) };
        let driver = (self.below(2) == 0).then(driver);
        let request = AnswerRequest { answers: vec![answer], driver };
        let outcome = self.runtime.block_on(self.store.answer(request)).unwrap();
        if let AnswerOutcome::Accepted(_, Drive::Granted(claimed)) = outcome {
            self.keep(*claimed);
        }
    }

    pub(super) fn finish(&mut self) {
        let (run, answers_seen) = self.run_ref();
        let (workflow, checkpoint) = (self.pin(), self.new_checkpoint());
        let (status, outcome) = (TerminalStatus::Completed, Bytes::new());
        let request =
            Finish { run, workflow, status, outcome, reason: None, chunks: Vec::new(), answers_seen, checkpoint };
        // An old lease may be refused.
        let _ = self.runtime.block_on(self.store.finish(request));
    }

    pub(super) fn give_up(&mut self) {
        let Some((lease, _)) = self.leases.pop() else { return };
        // An old lease may be refused.
        let _ = match self.below(2) {
            0 => self.runtime.block_on(self.store.release(&lease)),
            _ => self.runtime.block_on(self.store.park(Park { lease, reason: "changed".to_owned() })),
        };
    }

    pub(super) fn record(&mut self) {
        let Some((lease, answers_seen)) = self.leases.pop() else { return };
        let (entries, publish) = (vec![Bytes::new()], self.questions());
        let request = Record {
            lease: lease.clone(),
            entries,
            publish,
            withdraw: Vec::new(),
            chunks: Vec::new(),
            answers_seen,
            response: None,
        };
        if self.runtime.block_on(self.store.record(request)).is_ok() {
            let renewed = self.runtime.block_on(self.store.renew(&lease, TTL * 2, answers_seen)).unwrap();
            self.leases.push((renewed.lease, answers_seen));
        }
    }

    pub(super) fn claim(&mut self) {
        let parked_before = (self.below(2) == 0).then_some(Timestamp::MAX);
        let workflows = vec![self.pin(), self.pin()];
        let request = ClaimRequest { driver: driver(), workflows, parked_before, limit: 2 };
        for claimed in self.runtime.block_on(self.store.claim_orphans(request)).unwrap() {
            self.keep(claimed);
        }
    }

    pub(super) fn expire(&mut self) {
        let request = ExpireRequest { driver: driver(), workflows: vec![self.pin()], limit: 2 };
        for claimed in self.runtime.block_on(self.store.expire_due(request)).unwrap().claimed {
            self.keep(claimed);
        }
    }

    pub(super) fn cancel(&mut self) {
        let target = match self.below(4) {
            0 => CancelTarget::Session(SessionId::new(format!("session-{}", self.below(4))).unwrap()),
            _ => CancelTarget::Run(RunId::new(format!("run-{}", self.below(self.names + 1))).unwrap()),
        };
        self.runtime.block_on(self.store.cancel(CancelRequest { target, scope: None, reason: None })).unwrap();
    }

    pub(super) fn go_back(&mut self) {
        let count = self.checkpoints.len() as u64;
        if count == 0 {
            return;
        }
        let at = usize::try_from(self.below(count)).unwrap();
        let checkpoint_id = self.checkpoints[at].clone();
        let Some(checkpoint) = self.runtime.block_on(self.store.checkpoint(&checkpoint_id)).unwrap() else { return };
        let reissue = checkpoint.interrupts.iter().map(|question| {
            let fresh = ask(&self.name("q"), TTL);
            self.asked.push((fresh.request_id.clone(), fresh.token.clone()));
            Reissue { from: question.request_id.clone(), request_id: fresh.request_id, token: fresh.token }
        });
        let reissue = reissue.collect();
        let new_run_id = RunId::new(self.name("run")).unwrap();
        if self.below(2) == 0 {
            let request = Rollback { checkpoint_id, new_run_id, reissue };
            self.runtime.block_on(self.store.rollback(request)).unwrap();
            return;
        }
        let new_checkpoint_id = CheckpointId::new(self.name("cp")).unwrap();
        self.checkpoints.push(new_checkpoint_id.clone());
        let new_session_id = SessionId::new(self.name("session")).unwrap();
        let request = Fork { checkpoint_id, new_session_id, new_checkpoint_id, new_run_id, reissue };
        self.runtime.block_on(self.store.fork(request)).unwrap();
    }

    pub(super) fn held(&self) -> usize {
        self.store.inspect(crate::state::State::len).unwrap()
    }
}
