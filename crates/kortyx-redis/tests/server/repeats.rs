//! Transitions whose reply is lost: each took effect once, and its caller is told what it did.

use std::time::Duration;

use crate::support::{Server, proxy::Proxy, set_up};
use bytes::Bytes;
use kortyx_protocol::{CheckpointId, RequestId, ResumeToken, RunId, SessionId};
use kortyx_redis::{RedisConfig, RedisStore};
use kortyx_store::conformance::requests::{
    answering, ask, claiming, driver, finishing, granted, new_run, opening, paused, paused_run, pin, suspending, unique,
};
use kortyx_store::{
    AnswerOutcome, CancelOutcome, CancelRequest, CancelTarget, CheckpointRecord, ExpireRequest, Finish, Finished, Fork,
    ForkOutcome, NewCheckpoint, NewInterrupt, NewResponse, OpenRun, Record, Reissue, Retention, Rollback,
    RollbackOutcome, RunRef, RunStatus, Store, StoreExt as _, Suspend,
};

/// A store whose replies can be swallowed.
struct World {
    server: Server,
    proxy: Proxy,
    store: RedisStore,
}

impl World {
    async fn new() -> Self {
        let server = Server::start();
        let proxy = Proxy::to(server.port).await;
        let store = set_up(RedisConfig::parse(&proxy.url()).unwrap()).await;
        Self { server, proxy, store }
    }

    /// Runs a transition whose reply is lost on its way.
    async fn losing<T>(&self, transition: impl Future<Output = T>) -> T {
        self.losing_after(0, transition).await
    }

    /// The same where the transition's script comes after so many that only read.
    async fn losing_after<T>(&self, others: usize, transition: impl Future<Output = T>) -> T {
        let before = self.proxy.swallowed();
        self.proxy.swallow_after(others);
        let done = transition.await;
        assert_eq!(self.proxy.swallowed(), before + 1, "a reply was lost");
        done
    }
}

fn checkpoint(label: &str) -> NewCheckpoint {
    NewCheckpoint {
        id: CheckpointId::new(unique("cp")).unwrap(),
        label: Some(label.to_owned()),
        nodes: Vec::new(),
        workflow: "review".to_owned(),
        workflow_version: None,
        state: Bytes::from_static(b"{}"),
        structured_stream_ids: Vec::new(),
    }
}

fn reissue(to: &CheckpointRecord) -> Vec<Reissue> {
    let new = |from: &RequestId| Reissue {
        from: from.clone(),
        request_id: RequestId::new(unique("human")).unwrap(),
        token: ResumeToken::parse(unique("token")).unwrap(),
    };
    to.interrupts.iter().map(|question| new(&question.request_id)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_lost_replies_drove_once() {
    let w = World::new().await;
    let run = new_run();
    let open = OpenRun { chunks: vec![Bytes::from_static(b"c0")], ..opening(run.clone()) };
    let lease = w.losing(w.store.open(open)).await.unwrap();
    assert_eq!(lease.fence, 1);
    let record = Record {
        lease: lease.clone(),
        entries: vec![Bytes::from_static(b"e1")],
        publish: vec![ask("a")],
        withdraw: Vec::new(),
        chunks: vec![Bytes::from_static(b"c1")],
        answers_seen: 0,
        // A second one would be refused.
        response: Some(NewResponse { outcome: Bytes::from_static(b"thanks"), checkpoint: None }),
    };
    let recorded = w.losing(w.store.record(record)).await.unwrap();
    assert_eq!(recorded.published.len(), 1);
    assert!(w.losing(w.store.renew(&lease, Duration::from_mins(1), 0)).await.unwrap().lease.until > lease.until);
    w.losing(w.store.release(&lease)).await.unwrap();

    // Before it come the repair of the only session, and a look at the index.
    let claimed = w.losing_after(2, w.store.claim_orphans(claiming())).await.unwrap();
    assert_eq!(claimed.iter().map(|claimed| claimed.lease.fence).collect::<Vec<_>>(), [2]);
    assert_eq!(claimed.first().unwrap().entries, [Bytes::from_static(b"e1")]);

    let claimed = claimed.into_iter().next().unwrap();
    let suspend = Suspend {
        checkpoint: Some(checkpoint("turn")),
        chunks: vec![Bytes::from_static(b"c2"), Bytes::from_static(b"c3")],
        ..suspending(RunRef::Held(claimed.lease), vec![ask("b")])
    };
    let saved = w.losing(w.store.suspend(suspend)).await.unwrap();
    let kortyx_store::Suspended::Saved(open) = saved else { panic!("{saved:?}") };
    assert_eq!(open.len(), 2);
    assert_eq!(w.store.list_checkpoints(&run.session_id).await.unwrap().len(), 1);

    let first = open.first().unwrap();
    let claimed = granted(w.losing(w.store.answer(answering(first))).await.unwrap());
    assert_eq!((claimed.lease.fence, claimed.answers.len(), claimed.run.answers), (3, 1, 1));
    let finish = Finish { chunks: vec![Bytes::from_static(b"c4")], ..finishing(claimed) };
    assert_eq!(w.losing(w.store.finish(finish)).await.unwrap(), Finished::Done);
    let page = w.store.chunks(&run.run_id, 0, 10).await.unwrap().unwrap();
    assert_eq!(page.chunks.into_iter().map(|chunk| chunk.chunk).collect::<Vec<_>>(), ["c0", "c1", "c2", "c3", "c4"]);
    let stored = w.store.run(&run.run_id).await.unwrap().unwrap();
    assert_eq!((stored.status, stored.fence, stored.answers), (RunStatus::Completed, 3, 1));
    assert!(matches!(w.store.answer(answering(first)).await.unwrap(), AnswerOutcome::Duplicate(..)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_run_that_waits_is_stored_once() {
    let w = World::new().await;
    let run = new_run();
    let open = w.losing(paused_run(&w.store, run.clone())).await.unwrap();
    assert_eq!(w.store.open_questions(&run.run_id).await.unwrap().first().unwrap().request_id, open.request_id);
    let (lease, park) = (granted(w.store.answer(answering(&open)).await.unwrap()).lease, "changed".to_owned());
    w.losing(w.store.park(kortyx_store::Park { lease, reason: park })).await.unwrap();
    assert_eq!(w.store.run(&run.run_id).await.unwrap().unwrap().status, RunStatus::Parked);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_whose_reply_is_lost_says_that_it_cancelled() {
    let w = World::new().await;
    let question = paused(&w.store).await.unwrap();
    let target = CancelTarget::Run(question.run_id.clone());
    let cancelled = w.losing(w.store.cancel(CancelRequest { target, scope: None, reason: None })).await.unwrap();
    assert_eq!(cancelled, [CancelOutcome::Cancelled(question.run_id)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_default_that_expired_unheard_is_handed_out_once() {
    let w = World::new().await;
    let now = NewInterrupt { expires_in: Duration::from_millis(1), default: Some("no".into()), ..ask("a") };
    w.store.suspend(suspending(RunRef::New(new_run(), driver()), vec![now])).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let expire = || ExpireRequest { driver: driver(), workflows: vec![pin()], limit: 10 };
    // Before it comes a look at the index.
    let batch = w.losing_after(1, w.store.expire_due(expire())).await.unwrap();
    assert_eq!((batch.interrupts.len(), batch.claimed.len()), (1, 1));
    assert_eq!(batch.claimed.first().unwrap().run.answers, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_go_back_and_fork_once() {
    let w = World::new().await;
    let run = new_run();
    let session = run.session_id.clone();
    w.losing(w.store.append_checkpoint(&session, checkpoint("start"))).await.unwrap();
    let turn =
        Suspend { checkpoint: Some(checkpoint("asked")), ..suspending(RunRef::New(run, driver()), vec![ask("a")]) };
    w.store.suspend(turn).await.unwrap();
    let asked = w.store.head(&session).await.unwrap().unwrap();
    w.store.append_checkpoint(&session, checkpoint("later")).await.unwrap();

    let rollback = Rollback {
        checkpoint_id: asked.checkpoint.id.clone(),
        new_run_id: RunId::new(unique("run")).unwrap(),
        reissue: reissue(&asked),
    };
    let outcome = w.losing(w.store.rollback(rollback)).await.unwrap();
    let RollbackOutcome::Done { interrupts, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(interrupts.len(), 1);
    let fork = Fork {
        checkpoint_id: asked.checkpoint.id.clone(),
        new_session_id: SessionId::new(unique("session")).unwrap(),
        new_checkpoint_id: CheckpointId::new(unique("cp")).unwrap(),
        new_run_id: RunId::new(unique("run")).unwrap(),
        reissue: reissue(&asked),
    };
    let outcome = w.losing(w.store.fork(fork)).await.unwrap();
    assert!(matches!(outcome, ForkOutcome::Done { .. }), "{outcome:?}");
    assert_eq!(w.store.list_checkpoints(&session).await.unwrap().len(), 2);
    assert!(w.server.cli(&["DBSIZE"]).trim().parse::<u32>().is_ok());
}

/// Every script in turn loses its reply, whatever transition it belongs to.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_reply_is_lost_a_run_is_driven_from_start_to_end() {
    let w = World::new().await;
    for lost in 0..12 {
        let mut call = 0;
        let mut next = || {
            if call == lost {
                w.proxy.swallow_next();
            }
            call += 1;
        };
        next();
        let question = paused(&w.store).await.unwrap();
        next();
        let claimed = granted(w.store.answer(answering(&question)).await.unwrap());
        next();
        w.store.release(&claimed.lease).await.unwrap();
        next();
        let claimed = w.store.claim_orphans(claiming()).await.unwrap().remove(0);
        next();
        w.store.finish(finishing(claimed)).await.unwrap();
        next();
        let keep = Retention { finished_runs: Duration::ZERO, ..Retention::default() };
        assert_eq!(w.store.prune(&keep, 100).await.unwrap().runs, 1, "reply {lost} was lost");
        assert_eq!(w.store.run(&question.run_id).await.unwrap(), None);
    }
}
