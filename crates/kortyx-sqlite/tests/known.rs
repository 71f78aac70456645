//! What a writer knows of its own, and what another process does meanwhile.

#![expect(clippy::unwrap_used, reason = "what fails in a test panics")]

use bytes::Bytes;
use kortyx_sqlite::SqliteStore;
use kortyx_store::conformance::requests::{answering, finishing, new_run, opening, paused, recording};
use kortyx_store::{
    AnswerOutcome, CancelRequest, CancelTarget, NewRun, Record, Refusal, RunStatus, Store, StoreErrorKind,
};

use crate::support::{Place, connect, granted};

mod support;

/// Another store on the file stands for another process. The first one has written often enough alone to decide by what it
/// wrote itself.
async fn two_stores() -> (Place, SqliteStore, SqliteStore) {
    let place = Place::new();
    let (mine, other) = (place.store().await, place.store().await);
    for _ in 0..4 {
        paused(&mine).await.unwrap();
    }
    (place, mine, other)
}

#[tokio::test]
async fn a_question_that_another_process_had_answered_is_not_answered_again() {
    let (_place, mine, other) = two_stores().await;
    let question = paused(&mine).await.unwrap();
    let elsewhere = granted(&other, &question).await;

    let again = mine.answer(answering(&question)).await.unwrap();

    let AnswerOutcome::Duplicate(_, run) = again else { panic!("it was answered twice: {again:?}") };
    assert_eq!(run.fence, elsewhere.lease.fence);
    other.finish(finishing(elsewhere)).await.unwrap();
}

#[tokio::test]
async fn a_lease_that_another_process_took_over_is_lost() {
    let (place, mine, _other) = two_stores().await;
    let question = paused(&mine).await.unwrap();
    let claimed = granted(&mine, &question).await;
    mine.record(Record { entries: vec![Bytes::from_static(b"step")], answers_seen: 1, ..recording(&claimed.lease) })
        .await
        .unwrap();
    place.execute(&format!("UPDATE runs SET fence = fence + 1 WHERE run_id = '{}'", question.run_id)).await;

    let late = mine.finish(finishing(claimed)).await.unwrap_err();

    assert_eq!(late.kind(), StoreErrorKind::LeaseLost);
    assert_eq!(mine.run(&question.run_id).await.unwrap().unwrap().status, RunStatus::Running);
}

#[tokio::test]
async fn an_id_and_a_key_that_another_process_took_are_taken() {
    let (place, mine, other) = two_stores().await;
    let (theirs, ours) = (new_run(), new_run());
    other.open(opening(theirs.clone())).await.unwrap();

    mine.open(opening(ours.clone())).await.unwrap();
    let taken = mine.open(opening(NewRun { run_id: theirs.run_id.clone(), ..new_run() })).await.unwrap_err();

    assert_eq!(taken.kind(), StoreErrorKind::AlreadyExists);
    for run in [&theirs, &ours] {
        assert_eq!(mine.run(&run.run_id).await.unwrap().unwrap().session_id, run.session_id);
    }
    let mut connection = connect(&place.path()).await;
    let runs: i64 = sqlx::query_scalar("SELECT count(*) FROM runs").fetch_one(&mut connection).await.unwrap();
    assert_eq!(runs, 6);
}

#[tokio::test]
async fn an_id_that_this_process_took_before_is_refused_however_often() {
    let (_place, mine, _other) = two_stores().await;
    let first = new_run();
    mine.open(opening(first.clone())).await.unwrap();
    for _ in 0..3 {
        let again = NewRun { run_id: first.run_id.clone(), ..new_run() };
        assert_eq!(mine.open(opening(again)).await.unwrap_err().kind(), StoreErrorKind::AlreadyExists);
        paused(&mine).await.unwrap();
    }
}

#[tokio::test]
async fn what_this_process_cancels_is_not_answered_by_what_it_knew() {
    let (_place, mine, _other) = two_stores().await;
    let question = paused(&mine).await.unwrap();
    let target = CancelTarget::Run(question.run_id.clone());
    mine.cancel(CancelRequest { target, scope: None, reason: None }).await.unwrap();

    let refused = mine.answer(answering(&question)).await.unwrap();

    let AnswerOutcome::Refused(refusals) = refused else { panic!("it was answered: {refused:?}") };
    assert!(matches!(refusals.as_slice(), [(_, Refusal::Cancelled)]), "{refusals:?}");
}

#[tokio::test]
async fn more_runs_than_are_kept_are_answered_all_the_same() {
    let (_place, mine, _other) = two_stores().await;
    let mut questions = Vec::new();
    for _ in 0..300 {
        questions.push(paused(&mine).await.unwrap());
    }
    for question in &questions {
        let claimed = granted(&mine, question).await;
        assert_eq!((claimed.run.run_id.clone(), claimed.answers.len()), (question.run_id.clone(), 1));
        mine.finish(finishing(claimed)).await.unwrap();
    }
}
