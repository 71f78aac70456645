//! Many writers at once.

use std::sync::Arc;

use kortyx_store::{
    AnswerOutcome, CancelRequest, CancelTarget, ClaimRequest, ExpireRequest, Retention, RunRef, Store, StoreErrorKind,
};

use crate::world::{World, answer, ask, checkpoint, driver, finish, new_run_in, open_run, pin, record, saved, suspend};

/// One writer's part: runs of a few sessions that all writers share, in every way that takes locks.
async fn write(store: Arc<dyn Store>, writer: usize) {
    for round in 0..25 {
        let session = format!("shared-{}", (writer + round) % 3);
        let run = new_run_in(&session);
        let session_id = run.session_id.clone();
        let open =
            saved(store.suspend(suspend(RunRef::New(run, driver()), vec![ask("a"), ask("b")], 0)).await.unwrap());
        let outcome = store.answer(answer(&open[0], "yes")).await.unwrap();
        if let AnswerOutcome::Accepted(_, kortyx_store::Drive::Granted(claimed)) = outcome {
            lost_or_done(store.record(record(&claimed.lease)).await);
            lost_or_done(store.finish(finish(&claimed.lease, 1)).await);
        }
        store.append_checkpoint(&session_id, checkpoint()).await.unwrap();
        match round % 5 {
            0 => {
                let target = CancelTarget::Session(session_id.clone());
                store.cancel(CancelRequest { target, scope: None, reason: None }).await.unwrap();
            }
            1 => {
                let turns = store.list_checkpoints(&session_id).await.unwrap();
                let request = kortyx_store::Rollback {
                    checkpoint_id: turns[turns.len() / 2].checkpoint.id.clone(),
                    new_run_id: new_run_in(&session).run_id,
                    reissue: Vec::new(),
                };
                store.rollback(request).await.unwrap();
            }
            2 => {
                let lease = store.open(open_run(new_run_in(&session))).await.unwrap();
                lost_or_done(store.release(&lease).await);
                let request = ClaimRequest { driver: driver(), workflows: vec![pin()], parked_before: None, limit: 5 };
                store.claim_orphans(request).await.unwrap();
            }
            3 => {
                let retention = Retention { checkpoints_per_session: 5, ..Retention::default() };
                store.prune(&retention, 50).await.unwrap();
            }
            _ => {
                let request = ExpireRequest { driver: driver(), workflows: vec![pin()], limit: 50 };
                store.expire_due(request).await.unwrap();
            }
        }
    }
}

/// Another writer may have cancelled the run.
fn lost_or_done<T>(result: Result<T, kortyx_store::StoreError>) {
    if let Err(error) = result {
        assert_eq!(error.kind(), StoreErrorKind::LeaseLost, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_writers_on_shared_sessions_never_deadlock() {
    let world = World::new();
    let count = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let before = world.number(count).await;
    let store: Arc<dyn Store> = Arc::new(crate::world::set_up(world.config().pool_size(16)).await);
    let writers: Vec<_> = (0..16).map(|writer| tokio::spawn(write(store.clone(), writer))).collect();
    for writer in writers {
        writer.await.unwrap();
    }
    store.close().await;
    // A server process tells its numbers when it ends.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(world.number(count).await, before, "deadlocks were found and tried again");
    let heads = "SELECT count(*) FROM kortyx.sessions AS s WHERE s.checkpoints <> \
        (SELECT count(*) FROM kortyx.checkpoints AS c WHERE c.session = s.id AND c.abandoned_at IS NULL) \
        OR 1 <> (SELECT count(*) FROM kortyx.checkpoints AS c WHERE c.session = s.id AND c.is_head)";
    assert_eq!(world.number(heads).await, 0, "every session knows its head and its number of checkpoints");
    let stray = "SELECT count(*) FROM kortyx.pending_context AS p \
        WHERE NOT EXISTS (SELECT 1 FROM kortyx.interrupts AS i WHERE i.id = p.interrupt AND i.status = 'pending')";
    assert_eq!(world.number(stray).await, 0, "the index by context holds pending questions only");
}
