//! Commits: how many there are, who shares one, and who is spared when one fails.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails in a test panics")]

use std::{path::Path, sync::Arc};

use kortyx_protocol::RunId;
use kortyx_sqlite::SqliteStore;
use kortyx_store::conformance::requests::{answering, ask, finishing, new_run, opening, paused, recording, suspending};
use kortyx_store::{AnswerOutcome, Drive, NewRun, Record, Signal, Store, StoreErrorKind};

use crate::support::{Place, connect, granted};

mod support;

/// How many commits the write-ahead log holds: frames that end one say how large the database is then.
/// <https://www.sqlite.org/fileformat2.html#walformat>
fn commits(path: &Path) -> usize {
    let log = std::fs::read(path.with_extension("db-wal")).unwrap();
    let word = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
    let frame = 24 + word(8) as usize;
    let salt = &log[16..24];
    let frames = log[32..].chunks_exact(frame);
    let current = frames.take_while(|frame| &frame[8..16] == salt);
    current.filter(|frame| frame[4..8] != [0; 4]).count()
}

#[tokio::test]
async fn a_cycle_takes_three_commits() {
    let place = Place::new();
    let store = place.store().await;
    let before = commits(&place.path());

    let question = paused(&store).await.unwrap();
    let claimed = granted(&store, &question).await;
    store.finish(finishing(claimed)).await.unwrap();

    assert_eq!(commits(&place.path()) - before, 3);
}

#[tokio::test]
async fn what_is_refused_or_only_read_takes_no_commit() {
    let place = Place::new();
    let store = place.store().await;
    let question = paused(&store).await.unwrap();
    let claimed = granted(&store, &question).await;
    let before = commits(&place.path());

    store.answer(answering(&question)).await.unwrap();
    let stale = kortyx_store::Lease { fence: 9, ..claimed.lease.clone() };
    store.release(&stale).await.unwrap_err();
    store.run(&question.run_id).await.unwrap();
    store.setup().await.unwrap();

    assert_eq!(commits(&place.path()), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn transitions_of_concurrent_runs_share_commits() {
    let place = Place::new();
    let store = Arc::new(place.store().await);
    let before = commits(&place.path());
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { paused(&*store).await.unwrap() })
        })
        .collect();
    for task in tasks {
        let question = task.await.unwrap();
        assert!(store.interrupt(&question.request_id).await.unwrap().is_some());
    }
    let shared = commits(&place.path()) - before;
    assert!(shared < 48, "64 transitions took {shared} commits");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transition_that_fails_takes_none_of_its_companions_down() {
    let place = Place::new();
    let store = Arc::new(place.store().await);
    place
        .execute(
            "CREATE TRIGGER spoiler BEFORE INSERT ON runs WHEN NEW.run_id LIKE 'bad-%' \
             BEGIN SELECT RAISE(ABORT, 'spoiled'); END",
        )
        .await;
    let tasks: Vec<_> = (0..60)
        .map(|i| {
            let name = if i % 10 == 3 { format!("bad-{i}") } else { format!("good-{i}") };
            let run = NewRun { run_id: RunId::new(name).unwrap(), ..new_run() };
            let store = Arc::clone(&store);
            tokio::spawn(async move { (run.run_id.clone(), store.open(opening(run)).await) })
        })
        .collect();
    for task in tasks {
        let (run_id, result) = task.await.unwrap();
        let is_good = run_id.as_str().starts_with("good");
        assert_eq!(
            result.map(drop).map_err(|error| error.kind()),
            if is_good { Ok(()) } else { Err(StoreErrorKind::Backend) }
        );
        assert_eq!(store.run(&run_id).await.unwrap().is_some(), is_good);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_stores_on_one_file_take_turns() {
    let place = Place::new();
    let stores = [Arc::new(place.store().await), Arc::new(place.store().await)];
    let tasks: Vec<_> = (0..16)
        .map(|i| {
            let (mine, other) = (Arc::clone(&stores[i % 2]), Arc::clone(&stores[(i + 1) % 2]));
            tokio::spawn(async move {
                for _ in 0..10 {
                    let question = paused(&*mine).await.unwrap();
                    let claimed = granted(&other, &question).await;
                    mine.finish(finishing(claimed)).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_finishes_what_was_taken_in() {
    let place = Place::new();
    let store = Arc::new(place.store().await);
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let (run, store) = (new_run(), Arc::clone(&store));
            tokio::spawn(async move { (run.run_id.clone(), store.open(opening(run)).await) })
        })
        .collect();
    store.close().await;

    let reopened = place.store().await;
    for task in tasks {
        let (run_id, result) = task.await.unwrap();
        let is_stored = reopened.run(&run_id).await.unwrap().is_some();
        assert_eq!(
            result.map(drop).map_err(|error| error.kind()),
            if is_stored { Ok(()) } else { Err(StoreErrorKind::Closed) }
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_given_up_and_answered_in_one_commit_goes_to_who_answers() {
    let place = Place::new();
    let store = place.store().await;
    for _ in 0..10 {
        let question = paused(&store).await.unwrap();
        let claimed = granted(&store, &question).await;
        let record = Record { publish: vec![ask("b")], answers_seen: 1, ..recording(&claimed.lease) };
        let published = store.record(record).await.unwrap().published;
        let mut other = connect(&place.path()).await;
        sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();

        let unlock = async { sqlx::query("ROLLBACK").execute(&mut other).await.unwrap() };
        let first = store.open(opening(new_run()));
        let (first, released, answered, _) =
            tokio::join!(first, store.release(&claimed.lease), store.answer(answering(&published[0])), unlock);

        first.unwrap();
        released.unwrap();
        let AnswerOutcome::Accepted(_, Drive::Granted(again)) = answered.unwrap() else { panic!("nobody drives") };
        assert_eq!((again.lease.fence, again.answers.len()), (claimed.lease.fence + 1, 2));
    }
}

#[tokio::test]
async fn hints_tell_drivers_and_workers_of_this_process() {
    let place = Place::new();
    let store: SqliteStore = place.store().await;
    let mut signals = store.signals();
    let question = paused(&store).await.unwrap();
    let claimed = granted(&store, &question).await;
    let record = Record { publish: vec![ask("b"), ask("c")], answers_seen: 1, ..recording(&claimed.lease) };
    let published = store.record(record).await.unwrap().published;

    store.answer(answering(&published[0])).await.unwrap();
    assert_eq!(signals.try_recv().unwrap(), Signal::Attention(question.run_id.clone()));
    let held = kortyx_store::RunRef::Held(claimed.lease);
    let request = kortyx_store::Suspend { answers_seen: 2, ..suspending(held, Vec::new()) };
    store.suspend(request).await.unwrap();
    let left = kortyx_store::AnswerRequest { driver: None, ..answering(&published[1]) };
    store.answer(left).await.unwrap();
    assert_eq!(signals.try_recv().unwrap(), Signal::Work);
}
