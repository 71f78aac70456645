//! What the conformance suite cannot see: the indexes, the lock, the clock and the limit.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use kortyx_protocol::{CheckpointId, RequestId, ResumeToken, RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, AskKey, CancelRequest, CancelTarget, ClaimRequest, Claimed, Clock, Drive, Driver,
    ExpireRequest, Finish, Fork, Lease, ManualClock, NewAnswer, NewCheckpoint, NewInterrupt, NewResponse, NewRun,
    OpenRun, Park, Proof, Record, Reissue, Retention, Rollback, RunRef, Scalar, Signal, Store, StoreErrorKind, Suspend,
    Suspended, TerminalStatus, WorkflowPin,
};
use tokio::runtime::{Builder, Runtime};

use crate::MemoryStore;

const TTL: Duration = Duration::from_secs(30);
const NOTHING_KEPT: Retention = Retention {
    finished_runs: Duration::ZERO,
    checkpoints_per_session: 1,
    checkpoint_age: Duration::ZERO,
    idle_sessions: Duration::ZERO,
};

/// A store on a clock that stands still, with names that count.
struct World {
    clock: Arc<ManualClock>,
    store: MemoryStore,
    runtime: Runtime,
    names: u64,
    /// A xorshift generator (Marsaglia 2003).
    random: u64,
    leases: Vec<(Lease, u64)>,
    asked: Vec<(RequestId, ResumeToken)>,
    checkpoints: Vec<CheckpointId>,
}

impl World {
    fn new(seed: u64) -> Self {
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

    fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % end
    }

    fn name(&mut self, kind: &str) -> String {
        self.names += 1;
        format!("{kind}-{}", self.names)
    }

    fn pin(&mut self) -> WorkflowPin {
        pin(self.below(3))
    }

    fn new_run(&mut self) -> NewRun {
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

    fn questions(&mut self) -> Vec<NewInterrupt> {
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

    fn new_checkpoint(&mut self) -> Option<NewCheckpoint> {
        if self.below(3) > 0 {
            return None;
        }
        let checkpoint = checkpoint(&self.name("cp"));
        self.checkpoints.push(checkpoint.id.clone());
        Some(checkpoint)
    }

    fn run_ref(&mut self) -> (RunRef, u64) {
        let count = self.leases.len() as u64;
        if count == 0 || self.below(3) == 0 {
            return (RunRef::New(self.new_run(), driver()), 0);
        }
        let at = usize::try_from(self.below(count)).unwrap();
        let (lease, seen) = self.leases.swap_remove(at);
        (RunRef::Held(lease), seen)
    }

    fn keep(&mut self, claimed: Claimed) {
        let seen = claimed.run.answers;
        self.leases.push((claimed.lease, seen));
    }

    /// Does something, wanted or not; what is refused must change nothing that the indexes depend on.
    fn act(&mut self) {
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

    fn open(&mut self) {
        let request = OpenRun { run: self.new_run(), driver: driver(), snapshot: Bytes::new(), chunks: Vec::new() };
        let lease = self.runtime.block_on(self.store.open(request)).unwrap();
        self.leases.push((lease, 0));
    }

    fn suspend(&mut self) {
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

    fn answer(&mut self) {
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

    fn finish(&mut self) {
        let (run, answers_seen) = self.run_ref();
        let (workflow, checkpoint) = (self.pin(), self.new_checkpoint());
        let (status, outcome) = (TerminalStatus::Completed, Bytes::new());
        let request =
            Finish { run, workflow, status, outcome, reason: None, chunks: Vec::new(), answers_seen, checkpoint };
        // An old lease may be refused.
        let _ = self.runtime.block_on(self.store.finish(request));
    }

    fn give_up(&mut self) {
        let Some((lease, _)) = self.leases.pop() else { return };
        // An old lease may be refused.
        let _ = match self.below(2) {
            0 => self.runtime.block_on(self.store.release(&lease)),
            _ => self.runtime.block_on(self.store.park(Park { lease, reason: "changed".to_owned() })),
        };
    }

    fn record(&mut self) {
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

    fn claim(&mut self) {
        let parked_before = (self.below(2) == 0).then_some(Timestamp::MAX);
        let workflows = vec![self.pin(), self.pin()];
        let request = ClaimRequest { driver: driver(), workflows, parked_before, limit: 2 };
        for claimed in self.runtime.block_on(self.store.claim_orphans(request)).unwrap() {
            self.keep(claimed);
        }
    }

    fn expire(&mut self) {
        let request = ExpireRequest { driver: driver(), workflows: vec![self.pin()], limit: 2 };
        for claimed in self.runtime.block_on(self.store.expire_due(request)).unwrap().claimed {
            self.keep(claimed);
        }
    }

    fn cancel(&mut self) {
        let target = match self.below(4) {
            0 => CancelTarget::Session(SessionId::new(format!("session-{}", self.below(4))).unwrap()),
            _ => CancelTarget::Run(RunId::new(format!("run-{}", self.below(self.names + 1))).unwrap()),
        };
        self.runtime.block_on(self.store.cancel(CancelRequest { target, scope: None, reason: None })).unwrap();
    }

    fn go_back(&mut self) {
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

    fn held(&self) -> usize {
        self.store.inspect(crate::state::State::len).unwrap()
    }
}

fn pin(version: u64) -> WorkflowPin {
    WorkflowPin { id: "review".into(), version: version.to_string().into(), fingerprint: "0a".into() }
}

fn driver() -> Driver {
    Driver { id: "driver".to_owned(), ttl: TTL }
}

fn ask(name: &str, expires_in: Duration) -> NewInterrupt {
    NewInterrupt {
        request_id: RequestId::new(name).unwrap(),
        token: ResumeToken::parse(format!("token of {name}")).unwrap(),
        ask: AskKey(name.to_owned()),
        workflow: "review".to_owned(),
        node: "approve".to_owned(),
        question: Bytes::from_static(b"{}"),
        expires_in,
        default: None,
        optional_cancel: false,
        after_response_completed: false,
    }
}

fn answer(request_id: RequestId, token: ResumeToken) -> NewAnswer {
    NewAnswer {
        request_id,
        proof: Proof::Token(token),
        session_id: None,
        run_id: None,
        answer: Bytes::from_static(b"answer"),
        cancel: false,
        actor: None,
    }
}

fn checkpoint(name: &str) -> NewCheckpoint {
    NewCheckpoint {
        id: CheckpointId::new(name).unwrap(),
        label: None,
        nodes: Vec::new(),
        workflow: "review".to_owned(),
        workflow_version: None,
        state: Bytes::new(),
        structured_stream_ids: Vec::new(),
    }
}

#[test]
fn the_indexes_agree_with_what_is_stored_after_any_transitions() {
    for seed in 1..=40 {
        let mut world = World::new(seed * 0x9e37_79b9);
        for _ in 0..250 {
            world.act();
            world.store.inspect(crate::state::State::check).unwrap();
        }
    }
}

#[test]
fn nothing_is_left_once_everything_ended_and_was_pruned() {
    for seed in 1..=20 {
        let mut world = World::new(seed * 0x51_7cc1);
        for _ in 0..200 {
            world.act();
        }
        assert!(world.held() > 0);

        world.clock.advance(Duration::from_hours(1));
        for session in 0..=world.names {
            let target = CancelTarget::Session(SessionId::new(format!("session-{session}")).unwrap());
            let request = CancelRequest { target, scope: None, reason: None };
            world.runtime.block_on(world.store.cancel(request)).unwrap();
        }
        while world.runtime.block_on(world.store.prune(&NOTHING_KEPT, 7)).unwrap().more {}

        assert_eq!(world.held(), 0, "seed {seed}");
    }
}

/// A clock that panics when it is told to.
#[derive(Default)]
struct Faulty(AtomicBool);

impl Clock for Faulty {
    fn now(&self) -> Timestamp {
        assert!(!self.0.load(Ordering::SeqCst), "the clock fails");
        Timestamp::from_millis(1)
    }
}

#[test]
fn a_panic_under_the_lock_does_not_spread() {
    let clock = Arc::new(Faulty::default());
    let store = MemoryStore::builder().with_clock(clock.clone()).build();
    let runtime = Builder::new_current_thread().build().unwrap();
    clock.0.store(true, Ordering::SeqCst);
    assert!(catch_unwind(AssertUnwindSafe(|| runtime.block_on(store.now()))).is_err());
    clock.0.store(false, Ordering::SeqCst);
    assert_eq!(runtime.block_on(store.now()).unwrap(), Timestamp::from_millis(1));
    runtime.block_on(store.close());
    assert_eq!(runtime.block_on(store.now()).unwrap_err().kind(), StoreErrorKind::Closed);
}

#[test]
fn a_clock_that_goes_back_neither_hides_an_orphan_nor_takes_a_lease_away() {
    let mut world = World::new(1);
    world.open();
    world.open();
    let (leased, released) = (world.leases[0].0.clone(), world.leases[1].0.clone());
    world.runtime.block_on(world.store.release(&released)).unwrap();
    world.clock.advance(TTL);
    // It notes that the lease ran out, and hands out nothing.
    let workflows = vec![pin(0), pin(1), pin(2)];
    let request = ClaimRequest { driver: driver(), workflows, parked_before: None, limit: 0 };
    assert!(world.runtime.block_on(world.store.claim_orphans(request.clone())).unwrap().is_empty());

    world.clock.set(Timestamp::from_millis(500_000));

    let all = ClaimRequest { limit: 10, ..request };
    let claimed = world.runtime.block_on(world.store.claim_orphans(all.clone())).unwrap();
    let ids = |claimed: Vec<Claimed>| claimed.into_iter().map(|claimed| claimed.lease.run_id).collect::<Vec<_>>();
    assert_eq!(ids(claimed), [released.run_id]);
    world.clock.set(leased.until);
    let claimed = world.runtime.block_on(world.store.claim_orphans(all)).unwrap();
    assert!(ids(claimed).contains(&leased.run_id));
}

#[test]
fn the_limit_holds_for_every_payload() {
    let world = World::new(1);
    let clock = world.clock.clone();
    let store = MemoryStore::builder().with_clock(clock).with_payload_limit(4).build();
    let (fits, over) = (Bytes::from_static(b"1234"), Bytes::from_static(b"12345"));
    let run = |name: &str| NewRun {
        run_id: RunId::new(name).unwrap(),
        session_id: SessionId::new("s").unwrap(),
        workflow: pin(0),
        context: BTreeMap::new(),
        follows: None,
    };
    world.runtime.block_on(async {
        let open = |snapshot: &Bytes| OpenRun {
            run: run("a"),
            driver: driver(),
            snapshot: snapshot.clone(),
            chunks: Vec::new(),
        };
        assert_eq!(store.open(open(&over)).await.unwrap_err().kind(), StoreErrorKind::TooLarge);
        let lease = store.open(open(&fits)).await.unwrap();
        let record = Record {
            lease: lease.clone(),
            entries: vec![fits.clone()],
            publish: vec![ask("q", TTL)],
            withdraw: Vec::new(),
            chunks: Vec::new(),
            answers_seen: 0,
            response: None,
        };
        let question = NewInterrupt { question: over.clone(), ..ask("q", TTL) };
        let default = NewInterrupt { default: Some(over.clone()), ..ask("q", TTL) };
        for refused in [
            Record { entries: vec![fits.clone(), over.clone()], ..record.clone() },
            Record { publish: vec![question], ..record.clone() },
            Record { publish: vec![default], ..record.clone() },
            Record { response: Some(NewResponse { outcome: over.clone(), checkpoint: None }), ..record.clone() },
        ] {
            assert_eq!(store.record(refused).await.unwrap_err().kind(), StoreErrorKind::TooLarge);
        }
        let published = store.record(record).await.unwrap().published.remove(0);
        let answered = NewAnswer { answer: over.clone(), ..answer(published.request_id, published.token) };
        let request = AnswerRequest { answers: vec![answered], driver: None };
        assert_eq!(store.answer(request).await.unwrap_err().kind(), StoreErrorKind::TooLarge);
        let finish = Finish {
            run: RunRef::Held(lease),
            workflow: pin(0),
            status: TerminalStatus::Completed,
            outcome: fits,
            reason: None,
            chunks: Vec::new(),
            answers_seen: 0,
            checkpoint: None,
        };
        let state = NewCheckpoint { state: over.clone(), ..checkpoint("cp") };
        for refused in
            [Finish { outcome: over, ..finish.clone() }, Finish { checkpoint: Some(state), ..finish.clone() }]
        {
            assert_eq!(store.finish(refused).await.unwrap_err().kind(), StoreErrorKind::TooLarge);
        }
        store.finish(finish).await.unwrap();
    });
}

#[test]
fn drivers_and_workers_are_told_what_concerns_them() {
    let mut world = World::new(1);
    let mut signals = world.store.signals();
    world.open();
    let (lease, _) = world.leases[0].clone();
    let publish = vec![ask("q1", TTL), ask("q2", TTL)];
    let request = Record {
        lease: lease.clone(),
        entries: Vec::new(),
        publish,
        withdraw: Vec::new(),
        chunks: Vec::new(),
        answers_seen: 0,
        response: None,
    };
    world.runtime.block_on(async {
        let published = world.store.record(request).await.unwrap().published;
        let give = |question: &kortyx_store::InterruptRecord| {
            let answers = vec![answer(question.request_id.clone(), question.token.clone())];
            AnswerRequest { answers, driver: None }
        };
        world.store.answer(give(&published[0])).await.unwrap();
        world.store.release(&lease).await.unwrap();
        world.store.answer(give(&published[1])).await.unwrap();
    });
    let attention = Signal::Attention(lease.run_id);
    assert_eq!([(); 3].map(|()| signals.try_recv().unwrap()), [attention, Signal::Work, Signal::Work]);
    assert!(signals.try_recv().is_err());
}
