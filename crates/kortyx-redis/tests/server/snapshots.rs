//! Snapshots of any size and content come back byte for byte, and large ones are stored compressed.

use crate::support::Server;
use bytes::Bytes;
use kortyx_protocol::{CheckpointId, RequestId, ResumeToken, RunId};
use kortyx_store::conformance::requests::{self, answering, driver, granted, new_run, suspending};
use kortyx_store::{
    ClaimRequest, NewCheckpoint, Reissue, Rollback, RollbackOutcome, RunRef, Store, Suspend, Suspended, WorkflowPin,
};

fn text(size: usize) -> Bytes {
    "{\"draft\":\"The spring release is out.\",\"urgent\":false}".bytes().cycle().take(size).collect()
}

fn snapshots() -> Vec<Bytes> {
    let noise: Vec<u8> = (0..20_000_u32).map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    vec![
        Bytes::new(),
        text(100),
        text(16_000),
        text(2_000_000),
        noise.into(),
        vec![0xff; 9].into(),
        vec![0xff; 9_000].into(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_comes_back_as_it_was_whatever_it_is() {
    let server = Server::start();
    let store = server.store().await;
    for (place, snapshot) in snapshots().into_iter().enumerate() {
        let run = new_run();
        let checkpoint = NewCheckpoint {
            id: CheckpointId::new(format!("cp-{place}")).unwrap(),
            label: None,
            nodes: Vec::new(),
            workflow: "review".to_owned(),
            workflow_version: None,
            state: Bytes::from_static(b"{}"),
            structured_stream_ids: Vec::new(),
        };
        let suspend = suspending(RunRef::New(run.clone(), driver()), vec![requests::ask("a")]);
        let plain = Suspend { snapshot: snapshot.clone(), ..suspend };
        let Suspended::Saved(open) = store.suspend(plain).await.unwrap() else { unreachable!("the run waits") };
        let claimed = granted(store.answer(answering(open.first().unwrap())).await.unwrap());
        assert_eq!(claimed.snapshot, snapshot, "answered: {place}");

        // A held run, with a checkpoint of its turn.
        let suspend = suspending(RunRef::Held(claimed.lease), vec![requests::ask("b")]);
        let turn = Suspend { snapshot: snapshot.clone(), checkpoint: Some(checkpoint), answers_seen: 1, ..suspend };
        store.suspend(turn).await.unwrap();
        let head = store.head(&run.session_id).await.unwrap().unwrap();
        assert_eq!(head.snapshot.as_ref(), Some(&snapshot), "in a checkpoint: {place}");

        // Another turn, and back: what the checkpoint holds is a run's again.
        let later =
            NewCheckpoint { id: CheckpointId::new(format!("later-{place}")).unwrap(), ..head.checkpoint.clone() };
        store.append_checkpoint(&run.session_id, later).await.unwrap();
        let reissue = head.interrupts.iter().map(|question| Reissue {
            from: question.request_id.clone(),
            request_id: RequestId::new(format!("again-{place}")).unwrap(),
            token: ResumeToken::parse(format!("token-again-{place}")).unwrap(),
        });
        let back = Rollback {
            checkpoint_id: head.checkpoint.id.clone(),
            new_run_id: RunId::new(format!("run-again-{place}")).unwrap(),
            reissue: reissue.collect(),
        };
        let RollbackOutcome::Done { interrupts, .. } = store.rollback(back).await.unwrap() else {
            unreachable!("nobody drives the session")
        };
        let claimed = granted(store.answer(answering(interrupts.first().unwrap())).await.unwrap());
        assert_eq!(claimed.snapshot, snapshot, "after a rollback: {place}");

        // A worker takes it over.
        store.release(&claimed.lease).await.unwrap();
        let workflows: Vec<WorkflowPin> = vec![requests::pin()];
        let orphans = ClaimRequest { driver: driver(), workflows, parked_before: None, limit: 10 };
        let claimed = store.claim_orphans(orphans).await.unwrap();
        assert_eq!(claimed.first().unwrap().snapshot, snapshot, "claimed: {place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_snapshot_takes_less_room_than_it_has_bytes() {
    let server = Server::start();
    let store = server.store().await;
    let suspend = suspending(RunRef::New(new_run(), driver()), vec![requests::ask("a")]);
    store.suspend(Suspend { snapshot: text(16_000), ..suspend }).await.unwrap();

    let run = server.lines(&["KEYS", &format!("kortyx:{{*}}:{}:r:run-*", "?".repeat(32))]).remove(0);
    let length: usize = server.cli(&["HSTRLEN", &run, "s"]).trim().parse().unwrap();

    assert!((10..1_000).contains(&length), "{length}");
}
