//! What a writer knows of its own, and what another process does meanwhile.

#![expect(clippy::unwrap_used, reason = "what fails in a test panics")]

use kortyx_sqlite::SqliteStore;
use kortyx_store::{AnswerOutcome, NewRun, Refusal, Store, StoreErrorKind, TerminalStatus};

use crate::support::{Place, answering, connect, finishing, granted, new_run, opening, paused};

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
async fn a_run_that_another_process_ended_stays_ended() {
    let (place, mine, other) = two_stores().await;
    let question = paused(&mine).await.unwrap();
    let claimed = granted(&mine, &question).await;
    place.execute(&format!("UPDATE runs SET fence = fence + 1 WHERE run_id = '{}'", question.run_id)).await;

    let stale = mine.finish(finishing(claimed.clone())).await.unwrap_err();

    assert_eq!(stale.kind(), StoreErrorKind::LeaseLost);
    let lease = kortyx_store::Lease { fence: claimed.lease.fence + 1, ..claimed.lease.clone() };
    let cancelled = kortyx_store::Claimed { lease, ..claimed };
    let request = kortyx_store::Finish { status: TerminalStatus::Cancelled, ..finishing(cancelled) };
    other.finish(request).await.unwrap();
    let late = mine.answer(answering(&paused(&mine).await.unwrap())).await.unwrap();
    assert!(matches!(late, AnswerOutcome::Accepted(..)));
    assert_eq!(mine.run(&question.run_id).await.unwrap().unwrap().status, kortyx_store::RunStatus::Cancelled);
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
    let target = kortyx_store::CancelTarget::Run(question.run_id.clone());
    mine.cancel(kortyx_store::CancelRequest { target, reason: None, outcome: None }).await.unwrap();

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
