//! The file: who may read it, what it must hold, and what happens when it does not.

use std::time::Duration;

use bytes::Bytes;
use kortyx_sqlite::{SqliteConfig, SqliteStore};
use kortyx_store::conformance::requests::{
    answering, ask, driver, finishing, new_run, opening, paused, pin, recording,
};
use kortyx_store::{ClaimRequest, Record, Store, StoreErrorKind};

use crate::support::{Place, connect, granted};

mod support;

#[tokio::test]
async fn what_was_acknowledged_is_there_after_reopening() {
    let place = Place::new();
    let store = place.store().await;
    let question = paused(&store).await.unwrap();
    store.close().await;

    let store = place.store().await;

    let claimed = granted(&store, &question).await;
    assert_eq!(claimed.snapshot, Bytes::from_static(b"suspended"));
    store.finish(finishing(claimed)).await.unwrap();
}

#[tokio::test]
async fn directories_are_created_and_a_path_that_cannot_be_says_so() {
    let place = Place::new();
    let nested = place.directory.path().join("a/b/kortyx.db");
    SqliteStore::open(SqliteConfig::new(&nested)).await.unwrap().close().await;
    assert!(nested.exists());

    let error = SqliteStore::open(SqliteConfig::new(nested.join("under a file.db"))).await.unwrap_err();

    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("kortyx.db cannot be created"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_and_its_log_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::new();
    let store = place.store().await;
    paused(&store).await.unwrap();
    for suffix in ["", "-wal", "-shm"] {
        let path = place.directory.path().join(format!("kortyx.db{suffix}"));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let place = Place::new();
    let content = b"a letter to my grandmother ".repeat(200);
    std::fs::write(place.path(), &content).unwrap();

    let error = SqliteStore::open(place.config()).await.unwrap_err();

    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    assert_eq!(std::fs::read(place.path()).unwrap(), content);
}

#[tokio::test]
async fn a_store_that_was_not_set_up_says_what_to_do() {
    let place = Place::new();
    let store = SqliteStore::open(place.config()).await.unwrap();
    let run = new_run();
    for error in [store.open(opening(run.clone())).await.unwrap_err(), store.run(&run.run_id).await.unwrap_err()] {
        assert_eq!(error.kind(), StoreErrorKind::Schema);
        assert!(error.to_string().contains("call setup first"), "{error}");
    }
    store.setup().await.unwrap();
    store.open(opening(run)).await.unwrap();
}

#[tokio::test]
async fn a_schema_that_was_edited_is_refused() {
    let place = Place::new();
    place.store().await.close().await;
    place.execute("UPDATE kortyx_schema SET checksum = 'another'").await;
    let store = SqliteStore::open(place.config()).await.unwrap();
    assert_eq!(store.setup().await.unwrap_err().kind(), StoreErrorKind::Schema);
}

#[tokio::test]
async fn a_file_of_the_version_before_is_upgraded_with_what_it_holds() {
    let place = Place::new();
    let store = place.store().await;
    let question = paused(&store).await.unwrap();
    store.close().await;
    place.execute("DROP TABLE responses; DROP TABLE chunks").await;
    place.execute("DELETE FROM kortyx_schema WHERE version > 1").await;

    let store = place.store().await;
    let said = Record { chunks: vec!["Hello".into()], ..recording(&granted(&store, &question).await.lease) };
    store.record(said).await.unwrap();
    let page = store.chunks(&question.run_id, 0, 10).await.unwrap().unwrap();
    assert_eq!((page.last, &*page.chunks[0].chunk), (1, &b"Hello"[..]));
}

#[tokio::test]
async fn b116_rows_that_do_not_read_back_are_refused_and_left_alone() {
    let place = Place::new();
    let store = place.store().await;
    let (status, id, whole) =
        (paused(&store).await.unwrap(), paused(&store).await.unwrap(), paused(&store).await.unwrap());
    place.execute(&format!("UPDATE runs SET status = 'odd' WHERE run_id = '{}'", status.run_id)).await;
    place.execute(&format!("UPDATE interrupts SET token = '' WHERE request_id = '{}'", id.request_id)).await;

    for question in [&status, &id] {
        assert_eq!(store.answer(answering(question)).await.unwrap_err().kind(), StoreErrorKind::Corrupt);
    }
    assert_eq!(store.run(&status.run_id).await.unwrap_err().kind(), StoreErrorKind::Corrupt);
    assert_eq!(store.interrupt(&id.request_id).await.unwrap_err().kind(), StoreErrorKind::Corrupt);
    granted(&store, &whole).await;

    let mut connection = connect(&place.path()).await;
    let sql = "SELECT count(*) FROM runs AS r JOIN interrupts AS i ON i.run = r.id \
               WHERE (r.status = 'odd' OR i.token = '') AND i.status = 'pending'";
    let untouched: i64 = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
    assert_eq!(untouched, 2);
}

#[tokio::test]
async fn a_damaged_orphan_does_not_keep_the_others_from_their_workers() {
    let place = Place::new();
    let store = place.store().await;
    let mut leases = Vec::new();
    for _ in 0..3 {
        leases.push(store.open(opening(new_run())).await.unwrap());
    }
    for lease in &leases {
        store.release(lease).await.unwrap();
    }
    place.execute(&format!("UPDATE runs SET context = '[]' WHERE run_id = '{}'", leases[0].run_id)).await;
    let damaged = format!("(SELECT id FROM runs WHERE run_id = '{}')", leases[1].run_id);
    place.execute(&format!("DELETE FROM snapshots WHERE run = {damaged}")).await;

    let request = ClaimRequest { driver: driver(), workflows: vec![pin()], parked_before: None, limit: 10 };
    let claimed = store.claim_orphans(request).await.unwrap();

    assert_eq!(claimed.iter().map(|claimed| &claimed.run.run_id).collect::<Vec<_>>(), [&leases[2].run_id]);
}

#[tokio::test]
async fn a_payload_over_the_limit_is_refused_with_its_size() {
    let place = Place::new();
    let store = SqliteStore::open(place.config().payload_limit(100)).await.unwrap();
    store.setup().await.unwrap();
    let mut request = opening(new_run());
    request.snapshot = Bytes::from(vec![b'x'; 100]);
    let lease = store.open(request.clone()).await.unwrap();

    request.run = new_run();
    request.snapshot = Bytes::from(vec![b'x'; 101]);
    let error = store.open(request.clone()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::TooLarge);
    assert!(error.to_string().contains("a snapshot of 101 bytes is over the limit of 100"), "{error}");
    assert_eq!(store.run(&request.run.run_id).await.unwrap(), None);

    let large = kortyx_store::NewInterrupt { question: Bytes::from(vec![b'x'; 101]), ..ask("a") };
    let record = kortyx_store::Record { publish: vec![large], ..recording(&lease) };
    assert_eq!(store.record(record).await.unwrap_err().kind(), StoreErrorKind::TooLarge);
}

#[tokio::test]
async fn a_file_that_stays_locked_fails_with_the_wait_and_works_again_afterwards() {
    let place = Place::new();
    let store = SqliteStore::open(place.config().busy_timeout(Duration::from_millis(40))).await.unwrap();
    store.setup().await.unwrap();
    let question = paused(&store).await.unwrap();
    let mut other = connect(&place.path()).await;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();

    let error = store.answer(answering(&question)).await.unwrap_err();

    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.is_retryable());
    assert!(error.to_string().contains("locked for 40ms"), "{error}");
    assert!(store.interrupt(&question.request_id).await.unwrap().is_some(), "reading goes on");
    sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
    granted(&store, &question).await;
}
