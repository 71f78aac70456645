//! What a server must be, what it is told, and what is left of it in errors.

use std::{sync::atomic::AtomicI64, time::Duration};

use crate::support::{Server, proxy::Proxy, set_up};
use bytes::Bytes;
use kortyx_redis::{RedisConfig, RedisStore};
use kortyx_store::conformance::requests::{
    answering, ask, claiming, driver, finishing, granted, new_run, opening, paused, suspending,
};
use kortyx_store::{NewInterrupt, OpenRun, RunRef, Signal, Store, StoreErrorKind};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_evicts_is_refused_with_the_reason() {
    let server = Server::with(&["--save", "", "--maxmemory-policy", "allkeys-lru"]);
    let store = RedisStore::connect(server.config()).await.unwrap();
    let error = store.setup().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Backend);
    assert!(error.to_string().contains("allkeys-lru"), "{error}");
    assert_eq!(server.cli(&["DBSIZE"]).trim(), "0", "nothing was written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_says_so_changes_nothing_and_goes_on_when_there_is_room() {
    let server = Server::start();
    let store = server.store().await;
    let waiting = paused(&store).await.unwrap();
    server.cli(&["CONFIG", "SET", "maxmemory", "1mb"]);
    let before = server.cli(&["DBSIZE"]);

    let run = new_run();
    let error = store.open(opening(run.clone())).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert_eq!(
        error.to_string(),
        "open: the server's memory is full and nothing was written: free some, or raise its maxmemory"
    );
    assert!(store.answer(answering(&waiting)).await.is_err());
    assert_eq!(server.cli(&["DBSIZE"]), before);
    assert!(store.interrupt(&waiting.request_id).await.unwrap().unwrap().answer.is_none(), "reading goes on");

    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    store.open(opening(run)).await.unwrap();
    granted(store.answer(answering(&waiting)).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_in_no_error() {
    let server = Server::with(&["--save", "", "--requirepass", "right"]);
    let url = format!("redis://:wr0ng-s3cret@127.0.0.1:{}", server.port);
    let config = RedisConfig::parse(&url).unwrap().patience(Duration::from_secs(2));
    let error = RedisStore::connect(config).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("wr0ng-s3cret"), "{error:?}");
    let url = format!("redis://:right@127.0.0.1:{}", server.port);
    let store = set_up(RedisConfig::parse(&url).unwrap()).await;
    assert!(!format!("{store:?}").contains("right"), "{store:?}");
    store.ping().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_named_without_a_wait_beyond_patience() {
    let config = RedisConfig::parse("redis://127.0.0.1:1").unwrap().patience(Duration::from_millis(500));
    let began = std::time::Instant::now();
    let error = RedisStore::connect(config).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(3));
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
}

/// The rights in `docs/redis.md` are enough.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_the_documented_rights_can_do_everything() {
    let server = Server::start();
    let rights = "on >pw resetkeys ~kortyx:* ~{kortyx:* resetchannels &kortyx:signals -@all +@read +@write +@scripting \
                  +@connection +@pubsub +info +time +cluster|info +cluster|slots";
    let set: Vec<_> = ["ACL", "SETUSER", "app"].into_iter().chain(rights.split_whitespace()).collect();
    assert_eq!(server.cli(&set).trim(), "OK");
    let url = format!("redis://app:pw@127.0.0.1:{}", server.port);
    let store = set_up(RedisConfig::parse(&url).unwrap()).await;
    let question = paused(&store).await.unwrap();
    let claimed = granted(store.answer(answering(&question)).await.unwrap());
    store.release(&claimed.lease).await.unwrap();
    let claimed = store.claim_orphans(claiming()).await.unwrap().remove(0);
    store.finish(finishing(claimed)).await.unwrap();
    store.repair().await.unwrap();
    store.now().await.unwrap();
    store.ping().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_is_one_round_trip_and_an_answer_in_another_process_with_its_end_three() {
    let server = Server::start();
    let proxy = Proxy::to(server.port).await;
    let config = || RedisConfig::parse(&proxy.url()).unwrap();
    let (asking, driving) = (set_up(config()).await, set_up(config()).await);
    // The first of each kind also sends its script.
    let warm = paused(&asking).await.unwrap();
    driving.finish(finishing(granted(driving.answer(answering(&warm)).await.unwrap()))).await.unwrap();

    proxy.trips();
    let question = paused(&asking).await.unwrap();
    assert_eq!(proxy.trips(), 1, "to pause");
    let claimed = granted(driving.answer(answering(&question)).await.unwrap());
    assert_eq!(proxy.trips(), 2, "to find and to answer");
    driving.finish(finishing(claimed)).await.unwrap();
    assert_eq!(proxy.trips(), 1, "to finish");
    let claimed = granted(asking.answer(answering(&paused(&asking).await.unwrap())).await.unwrap());
    asking.finish(finishing(claimed)).await.unwrap();
    assert_eq!(proxy.trips(), 3, "all three where the question was asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_has_a_time_to_live_and_what_waits_has_none() {
    let server = Server::start();
    let store = server.store().await;
    let mut run = new_run();
    run.context.insert("tenant".to_owned(), kortyx_store::Scalar::Int(7));
    let (waiting, ended) = (new_run(), run);
    let short = NewInterrupt { expires_in: Duration::from_secs(1), ..ask("b") };
    store.suspend(suspending(RunRef::New(waiting.clone(), driver()), vec![ask("a"), short])).await.unwrap();
    let open = store.suspend(suspending(RunRef::New(ended.clone(), driver()), vec![ask("a"), ask("b")])).await.unwrap();
    let kortyx_store::Suspended::Saved(open) = open else { unreachable!("{open:?}") };
    let claimed = granted(store.answer(answering(open.first().unwrap())).await.unwrap());
    store.finish(finishing(claimed)).await.unwrap();

    let week = 7 * 24 * 3600;
    let mut seen = 0;
    for key in server.lines(&["KEYS", "*"]) {
        let ttl: i64 = server.cli(&["TTL", &key]).trim().parse().unwrap();
        let is_index = key.starts_with("{kortyx:i:") || key == "kortyx:schema";
        let is_memo = key.contains(":m:");
        let belongs_to = |id: &str| key.contains(id);
        let ended_ids = [ended.run_id.as_str(), open[0].request_id.as_str(), open[1].request_id.as_str()];
        if is_memo {
            assert!((1..=60).contains(&ttl), "{key}: {ttl}");
        } else if ended_ids.iter().any(|id| key.ends_with(&format!(":{id}"))) {
            assert!((week - 60..=week).contains(&ttl), "{key}: {ttl}");
            seen += 1;
        } else if is_index || belongs_to(waiting.run_id.as_str()) {
            assert_eq!(ttl, -1, "{key}");
        }
    }
    assert!(seen >= 4, "the run, its locator and those of its questions: {seen}");
    let session_of = |id: &str| {
        let locator = server.lines(&["KEYS", &format!("kortyx:*:l:r:{id}")]).remove(0);
        let digest = server.cli(&["GET", &locator]).trim().to_owned();
        format!("kortyx:{{{}}}:{digest}:s", &digest[..3])
    };
    let session_ttl = |id: &str| server.cli(&["TTL", &session_of(id)]).trim().to_owned();
    assert_eq!(session_ttl(waiting.run_id.as_str()), "-1", "a session with a run that may go on stays");
    assert_ne!(session_ttl(ended.run_id.as_str()), "-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_what_may_be_under_way_fail_with_the_number_and_the_wait() {
    let server = Server::start();
    let config = server.config().in_flight(1).patience(Duration::from_millis(300)).attempt(Duration::from_secs(5));
    let store = std::sync::Arc::new(set_up(config).await);
    server.signal("STOP");
    let busy = tokio::spawn({
        let store = store.clone();
        async move { store.now().await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let error = store.now().await.unwrap_err();
    server.signal("CONT");
    assert_eq!(error.to_string(), "now: 1 calls are under way on 1 connections, none ended within 300ms");
    let _ = busy.await.unwrap();
    store.now().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_is_woken_at_once_also_after_its_connection_was_cut() {
    let server = Server::start();
    let proxy = Proxy::to(server.port).await;
    let worker = set_up(RedisConfig::parse(&proxy.url()).unwrap()).await;
    let store = server.store().await;
    let mut signals = worker.signals();
    for round in 0..2 {
        wait_for_subscribers(&server, 2).await;
        let lease = store.open(opening(new_run())).await.unwrap();
        store.release(&lease).await.unwrap();
        let woken = tokio::time::timeout(Duration::from_secs(2), signals.recv()).await;
        assert_eq!(woken.unwrap().unwrap(), Signal::Work, "round {round}");
        proxy.cut();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn wait_for_subscribers(server: &Server, count: usize) {
    for _ in 0..200 {
        let counted = server.lines(&["PUBSUB", "NUMSUB", "kortyx:signals"]);
        if counted.last().and_then(|last| last.parse().ok()) == Some(count) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(0, count, "nobody listens");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_over_the_limit_is_refused_before_it_is_sent() {
    let server = Server::start();
    let store = set_up(server.config().payload_limit(4)).await;
    let large = OpenRun { snapshot: Bytes::from_static(b"12345"), ..opening(new_run()) };
    assert_eq!(store.open(large).await.unwrap_err().kind(), StoreErrorKind::TooLarge);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_of_the_server_is_what_counts() {
    let server = Server::start();
    let ahead = std::sync::Arc::new(AtomicI64::new(3_600_000));
    let (store, later) = (server.store().await, set_up(server.config().clock_offset(ahead)).await);
    let question = paused(&store).await.unwrap();
    let status = later.interrupt(&question.request_id).await.unwrap().unwrap().status;
    assert_eq!(status, kortyx_store::InterruptStatus::Expired, "expiry is enforced when read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_connects_before_its_server_is_up_waits_for_it() {
    let mut server = Server::start();
    let config = server.config();
    server.kill();
    let connecting = tokio::spawn(async move { set_up(config).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.run();
    paused(&connecting.await.unwrap()).await.unwrap();
}
