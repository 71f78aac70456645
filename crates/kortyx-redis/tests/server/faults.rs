//! Servers that lose scripts, keys, connections or their life under load.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::support::{Cluster, Server, Watched, proxy::Proxy, set_up};
use bytes::Bytes;
use kortyx_redis::{RedisConfig, RedisStore};
use kortyx_store::conformance::requests::{
    answering, ask, claiming, driver, finishing, granted, new_run, opening, paused, paused_run, pin, recording,
    suspending,
};
use kortyx_store::{
    ExpireRequest, Finish, InterruptQuery, NewInterrupt, Record, RunRef, RunStatus, Scalar, Scope, Store, StoreError,
    StoreErrorKind,
};

/// Drives runs from pause to end until told to stop; counts those that ended, and passes on every error.
struct Load {
    stop: Arc<AtomicBool>,
    ended: Arc<AtomicUsize>,
    drivers: Vec<tokio::task::JoinHandle<Result<(), StoreError>>>,
}

impl Load {
    fn on(store: &Arc<RedisStore>, drivers: usize) -> Self {
        let (stop, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let drivers = (0..drivers).map(|_| {
            let (store, stop, ended) = (store.clone(), stop.clone(), ended.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    drive(&store).await?;
                    ended.fetch_add(1, Ordering::SeqCst);
                }
                Ok(())
            })
        });
        Self { drivers: drivers.collect(), stop, ended }
    }

    fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }

    /// Waits until this many more ended.
    async fn progress(&self, count: usize) {
        let (from, until) = (self.ended(), Instant::now() + Duration::from_secs(20));
        while self.ended() < from + count {
            assert!(Instant::now() < until, "the load stands still at {}", self.ended());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn stop(self) -> usize {
        self.stop.store(true, Ordering::SeqCst);
        for driver in self.drivers {
            driver.await.unwrap().unwrap();
        }
        self.ended.load(Ordering::SeqCst)
    }
}

/// One run from its pause to its end, with exactly one answer. Every other one says something, once.
async fn drive(store: &RedisStore) -> Result<(), StoreError> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let chunks =
        |texts: &[&'static str]| texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect::<Vec<_>>();
    let speaks = NEXT.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
    let question = paused(store).await?;
    let claimed = granted(store.answer(answering(&question)).await?);
    assert_eq!((claimed.answers.len(), claimed.lease.fence), (1, 1));
    if speaks {
        store.record(Record { chunks: chunks(&["1", "2"]), ..recording(&claimed.lease) }).await?;
        store.finish(Finish { chunks: chunks(&["3"]), ..finishing(claimed) }).await?;
    } else {
        store.finish(finishing(claimed)).await?;
    }
    let run = store.run(&question.run_id).await?.unwrap();
    assert_eq!((run.status, run.answers, run.fence), (RunStatus::Completed, 1, 1));
    let page = store.chunks(&question.run_id, 0, 10).await?.unwrap();
    let said: Vec<_> = page.chunks.into_iter().map(|chunk| chunk.chunk).collect();
    assert_eq!(said, if speaks { chunks(&["1", "2", "3"]) } else { Vec::new() });
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_that_a_server_forgot_are_sent_again_without_an_error() {
    let server = Server::start();
    let store = Arc::new(server.store().await);
    let load = Load::on(&store, 4);
    for _ in 0..20 {
        assert_eq!(server.cli(&["SCRIPT", "FLUSH"]).trim(), "OK");
        load.progress(3).await;
    }
    assert!(load.stop().await >= 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_cut_under_load_cost_no_error_and_nothing_twice() {
    let server = Server::start();
    let proxy = Proxy::to(server.port).await;
    let store = Arc::new(set_up(RedisConfig::parse(&proxy.url()).unwrap()).await);
    let load = Load::on(&store, 8);
    for round in 0..30 {
        load.progress(5).await;
        if round % 2 == 0 { proxy.cut() } else { proxy.swallow_next() }
    }
    load.progress(20).await;
    let ended = load.stop().await;
    assert!(ended >= 150, "{ended}");
    assert!(proxy.swallowed() >= 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_under_load_comes_back_with_all_that_it_acknowledged() {
    let mut server = Server::with(&["--save", "", "--appendonly", "yes", "--appendfsync", "always"]);
    let store = Arc::new(server.store().await);
    let waiting = paused(&*store).await.unwrap();
    let load = Load::on(&store, 8);
    for _ in 0..3 {
        load.progress(20).await;
        server.kill();
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.run();
    }
    load.progress(50).await;
    load.stop().await;
    drive(&store).await.unwrap();
    granted(store.answer(answering(&waiting)).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stands_still_for_less_than_patience_costs_no_error() {
    let server = Server::start();
    let store = Arc::new(set_up(server.config().attempt(Duration::from_millis(500))).await);
    let load = Load::on(&store, 8);
    for _ in 0..2 {
        load.progress(20).await;
        server.signal("STOP");
        tokio::time::sleep(Duration::from_secs(3)).await;
        server.signal("CONT");
    }
    load.progress(50).await;
    load.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_server_stood_still_for_longer_errors_end_within_five_seconds_and_nothing_is_half_done() {
    let server = Server::start();
    let patience = Duration::from_secs(1);
    let store = Arc::new(set_up(server.config().patience(patience).attempt(Duration::from_millis(300))).await);
    let question = paused(&*store).await.unwrap();
    server.signal("STOP");
    let began = Instant::now();
    let error = store.answer(answering(&question)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    tokio::time::sleep(Duration::from_secs(3)).await;
    server.signal("CONT");

    let until = Instant::now() + Duration::from_secs(5);
    while drive(&store).await.is_err() {
        assert!(Instant::now() < until, "errors do not end");
    }
    // The call that failed may have reached the server: then the answer stands, and a repeat is told so.
    let again = store.answer(answering(&question)).await.unwrap();
    let run = store.run(&question.run_id).await.unwrap().unwrap();
    assert_eq!((run.status, run.answers), (RunStatus::Running, 1), "{again:?}");
}

/// Deletes every key that this pattern names.
fn lose(server: &Server, pattern: &str) -> usize {
    let keys = server.lines(&["KEYS", pattern]);
    for key in &keys {
        server.cli(&["DEL", key]);
    }
    keys.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_indexes_and_locators_are_rebuilt_and_no_question_is_hidden_for_good() {
    let server = Server::start();
    let store = server.store().await;
    let mut run = new_run();
    run.context.insert("tenant".to_owned(), Scalar::Text("acme".into()));
    let question = paused_run(&store, run.clone()).await.unwrap();
    let orphan = store.open(opening(new_run())).await.unwrap();
    store.release(&orphan).await.unwrap();
    let soon = NewInterrupt { expires_in: Duration::from_millis(100), ..ask("a") };
    store.suspend(suspending(RunRef::New(new_run(), driver()), vec![soon])).await.unwrap();
    let checkpoint = kortyx_store::NewCheckpoint {
        id: kortyx_protocol::CheckpointId::new("cp-lost").unwrap(),
        label: None,
        nodes: Vec::new(),
        workflow: "review".to_owned(),
        workflow_version: None,
        state: "{}".into(),
        structured_stream_ids: Vec::new(),
    };
    store.append_checkpoint(&run.session_id, checkpoint.clone()).await.unwrap();

    assert!(lose(&server, "kortyx:*:l:*") >= 6);
    assert!(lose(&server, "{kortyx:i:*") >= 3);
    let fresh = server.store().await;
    let by_tenant = || InterruptQuery {
        scope: Scope::default().with("tenant", Scalar::Text("acme".into())),
        limit: 10,
        ..InterruptQuery::default()
    };
    assert!(fresh.interrupt(&question.request_id).await.unwrap().is_none(), "lost, for now");
    assert!(fresh.list_interrupts(by_tenant()).await.unwrap().interrupts.is_empty());

    // A worker that polls brings them back, bit by bit.
    let mut claimed = Vec::new();
    for _ in 0..50 {
        claimed.extend(fresh.claim_orphans(claiming()).await.unwrap());
    }
    assert_eq!(claimed.iter().map(|claimed| &claimed.run.run_id).collect::<Vec<_>>(), [&orphan.run_id]);
    assert!(fresh.interrupt(&question.request_id).await.unwrap().is_some());
    assert_eq!(fresh.list_interrupts(by_tenant()).await.unwrap().interrupts.len(), 1);
    assert!(fresh.checkpoint(&checkpoint.id).await.unwrap().is_some());
    tokio::time::sleep(Duration::from_millis(100)).await;
    let expire = ExpireRequest { driver: driver(), workflows: vec![pin()], limit: 10 };
    assert_eq!(fresh.expire_due(expire).await.unwrap().ended.len(), 1);
    granted(fresh.answer(answering(&question)).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn stale_entries_of_an_index_are_taken_out_when_read() {
    let server = Server::start();
    let store = server.store().await;
    let mut run = new_run();
    run.context.insert("tenant".to_owned(), Scalar::Int(1));
    let question = paused_run(&store, run).await.unwrap();
    let index = server.lines(&["KEYS", "{kortyx:i:x:*"]).remove(0);
    let member = server.lines(&["ZRANGE", &index, "0", "-1"]).remove(0);
    granted(store.answer(answering(&question)).await.unwrap());
    assert_eq!(server.cli(&["ZCARD", &index]).trim(), "0");
    server.cli(&["ZADD", &index, "0", &member]);
    server.cli(&["ZADD", "{kortyx:i:due}", "1", &member]);

    let scope = Scope::default().with("tenant", Scalar::Int(1));
    let page = store.list_interrupts(InterruptQuery { scope, limit: 10, ..InterruptQuery::default() }).await.unwrap();
    let expire = ExpireRequest { driver: driver(), workflows: vec![pin()], limit: 10 };
    let batch = store.expire_due(expire).await.unwrap();

    assert!(page.interrupts.is_empty() && batch.interrupts.is_empty());
    assert_eq!((server.cli(&["ZCARD", &index]).trim(), server.cli(&["ZCARD", "{kortyx:i:due}"]).trim()), ("0", "0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_that_move_under_load_cost_no_error_and_nothing_twice() {
    let cluster = Cluster::start();
    let store = Arc::new(set_up(RedisConfig::parse(&cluster.url()).unwrap()).await);
    let mut waiting = Vec::new();
    for _ in 0..100 {
        waiting.push(paused(&*store).await.unwrap());
    }
    let load = Load::on(&store, 8);
    load.progress(20).await;
    let first = cluster.servers.first().unwrap();
    let ids: Vec<_> = cluster.servers.iter().map(|server| server.cli(&["CLUSTER", "MYID"]).trim().to_owned()).collect();
    let address = format!("127.0.0.1:{}", first.port);
    let moved = tokio::task::spawn_blocking({
        let (from, to) = (ids.first().unwrap().clone(), ids.last().unwrap().clone());
        move || {
            let args = ["--cluster", "reshard", &address, "--cluster-from", &from, "--cluster-to", &to];
            let mut command = std::process::Command::new("redis-cli");
            command.args(args).args(["--cluster-slots", "1000", "--cluster-yes"]).output().unwrap()
        }
    });
    let moved = moved.await.unwrap();
    assert!(moved.status.success(), "{}", String::from_utf8_lossy(&moved.stdout));
    load.progress(50).await;
    load.stop().await;
    for question in waiting {
        assert_eq!(granted(store.answer(answering(&question)).await.unwrap()).run.answers, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_takes_over_goes_on_with_what_it_has_and_nobody_sees_an_error() {
    let mut watched = Watched::start();
    let config = RedisConfig::parse(&watched.url()).unwrap().patience(Duration::from_secs(30));
    let store = Arc::new(set_up(config).await);
    let waiting = paused(&*store).await.unwrap();
    drive(&store).await.unwrap();
    watched.catch_up();

    watched.master.kill();
    let answered = granted(store.answer(answering(&waiting)).await.unwrap());
    store.finish(finishing(answered)).await.unwrap();

    let load = Load::on(&store, 4);
    load.progress(20).await;
    load.stop().await;
}
