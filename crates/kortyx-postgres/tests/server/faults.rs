//! Connections that break in the middle of a transition, and servers that crash: everything takes effect once.

use std::{
    fs,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use kortyx_postgres::{ClockShift, PostgresStore};
use kortyx_store::{
    AnswerOutcome, Finish, Finished, Park, Record, RunRef, RunStatus, Store, StoreErrorKind, conformance::requests,
};

use crate::{
    proxy::{Cut, Proxy},
    support::{Server, config_at, fresh_schema, url},
    world::{
        World, answer, ask, at_port, checkpoint, finish, granted, new_run, open_run, paused, port_of, record, saved,
        set_up, suspend,
    },
};

#[tokio::test]
async fn a_transition_whose_reply_was_lost_says_its_first_reply_again() {
    let (world, proxy) = (World::new(), Proxy::start(port_of(&url())).await);
    let store = world.behind(&proxy).await;
    store.now().await.unwrap();

    for cut in [Cut::Reply, Cut::Request, Cut::Reply] {
        paused(&store).await;
        proxy.cut(cut);
        let lease = store.open(open_run(new_run())).await.unwrap();
        assert_eq!(lease.fence, 1, "{cut:?}");
        proxy.cut(cut);
        let recorded = store.record(Record { publish: vec![ask("q")], ..record(&lease) }).await.unwrap();
        assert_eq!(recorded.published.len(), 1, "{cut:?}");
        proxy.cut(cut);
        let request = suspend(RunRef::Held(lease.clone()), vec![ask("a")], 0);
        let open = saved(store.suspend(request).await.unwrap());
        assert_eq!(open.len(), 2, "{cut:?}");
        proxy.cut(cut);
        let claimed = granted(store.answer(answer(&open[0], "yes")).await.unwrap());
        assert_eq!((claimed.answers.len(), claimed.lease.fence), (1, 2), "{cut:?}");
        proxy.cut(cut);
        assert_eq!(store.finish(finish(&claimed.lease, 1)).await.unwrap(), Finished::Done, "{cut:?}");
        let run = store.run(&lease.run_id).await.unwrap().unwrap();
        assert_eq!((run.status, run.answers, run.fence), (RunStatus::Completed, 1, 2), "{cut:?}");
        assert_eq!(store.list_checkpoints(&run.session_id).await.unwrap().len(), 2, "{cut:?}");
    }
}

#[tokio::test]
async fn entries_chunks_and_checkpoints_are_stored_once_however_often_their_connection_breaks() {
    let (world, proxy) = (World::new(), Proxy::start(port_of(&url())).await);
    let store = world.behind(&proxy).await;
    let lease = store.open(open_run(new_run())).await.unwrap();
    let run = store.run(&lease.run_id).await.unwrap().unwrap();
    for round in 0..20 {
        proxy.cut(if round % 2 == 0 { Cut::Reply } else { Cut::Request });
        store.record(record(&lease)).await.unwrap();
        proxy.cut(if round % 2 == 0 { Cut::Reply } else { Cut::Request });
        let said = vec![Bytes::from(round.to_string())];
        store.record(Record { chunks: said, ..requests::recording(&lease) }).await.unwrap();
        proxy.cut(if round % 3 == 0 { Cut::Reply } else { Cut::Request });
        assert_eq!(store.append_checkpoint(&run.session_id, checkpoint()).await.unwrap().turn_index, round);
    }
    assert_eq!(world.number("SELECT count(*) FROM kortyx.entries").await, 20);
    let page = store.chunks(&run.run_id, 0, 100).await.unwrap().unwrap();
    let said: Vec<_> = page.chunks.into_iter().map(|chunk| (chunk.number, chunk.chunk)).collect();
    let expected: Vec<_> = (0..20).map(|round| (round + 1, Bytes::from(round.to_string()))).collect();
    assert_eq!((said, page.last), (expected, 20));
    proxy.cut(Cut::Reply);
    store.park(Park { lease, reason: "changed".to_owned() }).await.unwrap();
    assert_eq!(store.run(&run.run_id).await.unwrap().unwrap().status, RunStatus::Parked);
}

#[tokio::test]
async fn a_granted_run_that_was_taken_over_meanwhile_is_not_handed_out_again() {
    let (world, proxy) = (World::new(), Proxy::start(port_of(&url())).await);
    let (store, other) = (world.behind(&proxy).await, world.store().await);
    let question = paused(&store).await;
    let claimed = granted(store.answer(answer(&question, "yes")).await.unwrap());
    world.shift.advance(Duration::from_mins(10));
    let request = kortyx_store::ClaimRequest {
        driver: crate::world::driver(),
        workflows: vec![crate::world::pin()],
        parked_before: None,
        limit: 1,
    };
    assert_eq!(other.claim_orphans(request).await.unwrap().len(), 1);
    let again = world
        .number(
            "SELECT count(*) FROM kortyx.transitions AS t, \
        LATERAL kortyx.expand_v1(t.reply, FALSE) AS e WHERE e.tag = 'claim'",
        )
        .await;
    assert_eq!(again, 1, "only the newer grant");
    assert_eq!(
        store.renew(&claimed.lease, Duration::from_secs(1), 1).await.unwrap_err().kind(),
        StoreErrorKind::LeaseLost
    );
}

/// Pauses, answers, says something and finishes until told to stop; gives how many runs it completed. No error may reach it.
pub(crate) async fn work(store: Arc<PostgresStore>, stop: Arc<AtomicBool>) -> u64 {
    let mut completed = 0;
    while !stop.load(Ordering::SeqCst) {
        let question = paused(store.as_ref()).await;
        match store.answer(answer(&question, "yes")).await.unwrap() {
            AnswerOutcome::Accepted(..) => {}
            other => panic!("an answer that was given once is {other:?}"),
        }
        let run = store.run(&question.run_id).await.unwrap().unwrap();
        let lease = kortyx_store::Lease { run_id: run.run_id, fence: run.fence, until: run.created_at };
        let chunks = |texts: &[&'static str]| texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect();
        let said = Record { chunks: chunks(&["1", "2"]), ..requests::recording(&lease) };
        store.record(said).await.unwrap();
        let end = Finish { chunks: chunks(&["3"]), ..finish(&lease, 1) };
        assert_eq!(store.finish(end).await.unwrap(), Finished::Done);
        let page = store.chunks(&lease.run_id, 0, 10).await.unwrap().unwrap();
        assert_eq!(page.chunks.into_iter().map(|chunk| chunk.chunk).collect::<Vec<_>>(), ["1", "2", "3"]);
        completed += 1;
    }
    completed
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_cut_under_load_lose_nothing_and_repeat_nothing() {
    let (world, proxy) = (World::new(), Proxy::start(port_of(&url())).await);
    let store = Arc::new(world.behind(&proxy).await);
    let stop = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..8).map(|_| tokio::spawn(work(store.clone(), stop.clone()))).collect();
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        proxy.cut_all();
        proxy.cut(Cut::Reply);
    }
    stop.store(true, Ordering::SeqCst);
    let mut completed = 0;
    for worker in workers {
        completed += worker.await.unwrap();
    }
    assert!(completed > 0);
    assert_eq!(world.number("SELECT count(*) FROM kortyx.runs").await, i64::try_from(completed).unwrap());
    assert_eq!(world.number("SELECT count(*) FROM kortyx.runs WHERE status <> 'completed' OR answers <> 1").await, 0);
    assert_eq!(world.number("SELECT count(*) FROM kortyx.checkpoints").await, i64::try_from(completed).unwrap() * 2);
}

impl Server {
    /// Ends the server's processes at once, as a crash would, and starts it again.
    fn crash_and_restart(&mut self) {
        let pid = fs::read_to_string(self.directory.join("data/postmaster.pid")).unwrap();
        let pid = pid.lines().next().unwrap().to_owned();
        assert!(Command::new("kill").args(["-QUIT", &pid]).status().unwrap().success());
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.directory.join("data/postmaster.pid").exists() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
        }
        // Its keeper would remove the directory: it is let go without its end.
        if let Some(mut earlier) = self.keeper.take() {
            let _ = earlier.kill();
            let _ = earlier.wait();
        }
        self.run();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashes_under_load_is_met_again_without_an_error() {
    let mut server = tokio::task::spawn_blocking(Server::start).await.unwrap();
    let schema = fresh_schema();
    let config = config_at(&server.url(), &schema, &ClockShift::default()).retry_for(Duration::from_mins(1));
    let store = Arc::new(set_up(config).await);
    let stop = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..8).map(|_| tokio::spawn(work(store.clone(), stop.clone()))).collect();
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        server = tokio::task::spawn_blocking(|| {
            server.crash_and_restart();
            server
        })
        .await
        .unwrap();
    }
    let up = Instant::now();
    store.ping().await.unwrap();
    assert!(up.elapsed() < Duration::from_secs(5), "it took {:?}", up.elapsed());
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.store(true, Ordering::SeqCst);
    for worker in workers {
        assert!(worker.await.unwrap() > 0);
    }
    store.close().await;
}

#[tokio::test]
async fn a_server_that_stays_away_is_an_error_after_the_time_for_trying_again() {
    let (world, proxy) = (World::new(), Proxy::start(port_of(&url())).await);
    drop(world.store().await);
    let address = at_port(&url(), proxy.port);
    let store = PostgresStore::open(world.config_at(&address).retry_for(Duration::from_millis(300))).await.unwrap();
    let question = paused(&store).await;
    let cutting = tokio::spawn(async move {
        loop {
            proxy.cut_all();
            proxy.cut(Cut::Request);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    let error = store.answer(answer(&question, "yes")).await.unwrap_err();
    cutting.abort();
    assert_eq!((error.kind(), error.is_retryable()), (StoreErrorKind::Unavailable, true));
    assert!(error.to_string().contains("of trying again"), "{error}");
}
