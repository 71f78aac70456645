//! Setting up, waiting for connections, saying what is wrong without telling secrets.

use std::{sync::Arc, time::Duration};

use kortyx_postgres::PostgresStore;
use kortyx_store::{RunRef, Signal, Store, StoreErrorKind};

use crate::{
    support::{fresh_schema, url},
    world::{World, answer, ask, connect, driver, new_run, paused, record, set_up, suspend},
};

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_processes_that_set_up_at_once_make_one_schema() {
    let world = World::new();
    let mut stores = Vec::new();
    for _ in 0..16 {
        stores.push(Arc::new(PostgresStore::open(world.config()).await.unwrap()));
    }
    let setups: Vec<_> = stores.iter().cloned().map(|store| tokio::spawn(async move { store.setup().await })).collect();
    for setup in setups {
        setup.await.unwrap().unwrap();
    }
    assert_eq!(world.number("SELECT count(*) FROM kortyx.versions").await, 2);
    for store in stores {
        paused(store.as_ref()).await;
    }
}

#[tokio::test]
async fn an_edited_schema_is_refused_and_a_missing_one_is_named() {
    let world = World::new();
    let store = PostgresStore::open(world.config()).await.unwrap();
    let missing = store.open(crate::world::open_run(new_run())).await.unwrap_err();
    assert_eq!(missing.kind(), StoreErrorKind::Schema);
    assert!(missing.to_string().contains("call setup first"), "{missing}");
    store.setup().await.unwrap();
    world.execute("UPDATE kortyx.versions SET checksum = 'edited'").await;
    let error = store.setup().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Schema);
    assert!(error.to_string().contains("checksum differs"), "{error}");
}

#[tokio::test]
async fn a_schema_one_version_ahead_that_works_with_this_one_is_taken() {
    let world = World::new();
    let store = world.store().await;
    world.execute("INSERT INTO kortyx.versions VALUES (3, 2, 'the next')").await;
    store.setup().await.unwrap();
    paused(&store).await;
    world.execute("UPDATE kortyx.versions SET works_with = 3 WHERE version = 3").await;
    let error = store.setup().await.unwrap_err();
    assert!(error.kind() == StoreErrorKind::Schema && error.to_string().contains("upgrade the program"), "{error}");
}

#[tokio::test]
async fn another_setup_is_waited_for_only_so_long() {
    let world = World::new();
    let store = PostgresStore::open(world.config().setup_timeout(Duration::from_millis(200))).await.unwrap();
    let mut other = connect().await;
    let lock = format!("SELECT pg_advisory_lock(hashtextextended('setup of {}_', 0))", world.schema);
    sqlx::raw_sql(sqlx::AssertSqlSafe(lock)).execute(&mut other).await.unwrap();
    let error = store.setup().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("another process has been setting up for 200ms"), "{error}");
    drop(other);
}

#[tokio::test]
async fn a_full_pool_says_its_size_and_how_long_it_was_waited_for() {
    let world = World::new();
    let config = world.config().pool_size(1).acquire_timeout(Duration::from_millis(50));
    let store = Arc::new(set_up(config).await);
    let lease = store.open(crate::world::open_run(new_run())).await.unwrap();
    let mut blocker = connect().await;
    let lock = format!("BEGIN; SELECT 1 FROM {}.runs FOR UPDATE", world.schema);
    sqlx::raw_sql(sqlx::AssertSqlSafe(lock)).execute(&mut blocker).await.unwrap();
    let waiting = tokio::spawn({
        let (store, lease) = (store.clone(), lease.clone());
        async move { store.record(record(&lease)).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let error = store.now().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert_eq!(error.to_string(), "now: all 1 connections of the pool stayed in use for 50ms");
    sqlx::raw_sql("ROLLBACK").execute(&mut blocker).await.unwrap();
    waiting.await.unwrap().unwrap();
    store.now().await.unwrap();
}

#[tokio::test]
async fn closing_waits_for_what_is_under_way() {
    let world = World::new();
    let store = Arc::new(world.store().await);
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(
                async move { store.open(crate::world::open_run(new_run())).await.map_err(|error| error.kind()) },
            )
        })
        .collect();
    tokio::task::yield_now().await;
    store.close().await;
    let mut done = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(_) => done += 1,
            Err(kind) => assert_eq!(kind, StoreErrorKind::Closed),
        }
    }
    assert_eq!(world.number("SELECT count(*) FROM kortyx.runs").await, done);
    assert_eq!(store.ping().await.unwrap_err().kind(), StoreErrorKind::Closed);
}

#[tokio::test]
async fn no_error_and_no_debug_output_tells_a_password() {
    let port = crate::support::free_port();
    let address = format!("postgres://app:s3cr3t@127.0.0.1:{port}/app?sslmode=disable");
    let config = World::new().config_at(&address).retry_for(Duration::from_millis(50));
    assert!(!format!("{config:?}").contains("s3cr3t"));
    let error = PostgresStore::open(config).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    let told = format!("{error} {error:?}");
    assert!(told.contains("app:***@") && !told.contains("s3cr3t"), "{told}");
}

#[tokio::test]
async fn another_process_is_told_at_once_where_it_listens() {
    let world = World::new();
    let store = world.store().await;
    let listening = PostgresStore::open(world.config().listen(&url()).unwrap()).await.unwrap();
    let mut signals = listening.signals();
    let question = paused(&store).await;
    let mut request = answer(&question, "yes");
    request.driver = None;
    // The connection that listens is made in the background.
    let mut heard = false;
    for _ in 0..50 {
        store.answer(request.clone()).await.unwrap();
        let lease = store.open(crate::world::open_run(new_run())).await.unwrap();
        store.release(&lease).await.unwrap();
        let waited = tokio::time::timeout(Duration::from_millis(100), signals.recv()).await;
        if let Ok(Ok(signal)) = waited {
            assert_eq!(signal, Signal::Work);
            heard = true;
            break;
        }
    }
    assert!(heard, "a notification of another process was heard");
    listening.close().await;
}

#[tokio::test]
async fn two_prefixes_share_a_schema_and_nothing_else() {
    let world = World::new();
    let one = set_up(world.config().table_prefix("one_").unwrap()).await;
    let two = set_up(world.config().table_prefix("two_").unwrap()).await;
    let run = new_run();
    let request = suspend(RunRef::New(run.clone(), driver()), vec![ask("a")], 0);
    one.suspend(request).await.unwrap();
    assert!(one.run(&run.run_id).await.unwrap().is_some());
    assert!(two.run(&run.run_id).await.unwrap().is_none());
    assert_ne!(fresh_schema(), world.schema);
}
