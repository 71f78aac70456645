//! What the conformance suite cannot see: the indexes, the lock, the clock and the limit.

mod check;
mod requests;
mod world;

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
use kortyx_protocol::{RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerRequest, CancelRequest, CancelTarget, ClaimRequest, Claimed, Clock, Finish, NewAnswer, NewCheckpoint,
    NewInterrupt, NewResponse, NewRun, OpenRun, Record, RunRef, Signal, Store, StoreErrorKind, TerminalStatus,
};
use tokio::runtime::Builder;

use self::{
    requests::{TTL, answer, ask, checkpoint, driver, pin},
    world::{NOTHING_KEPT, World},
};
use crate::MemoryStore;

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
