//! Every transition and every reading goes through indexes, at 100,000 rows in each table.
//!
//! The statements are inside of functions, where `EXPLAIN` does not look, so the server explains each as it runs it; and it counts
//! the sequential scans that it in fact made. Everything runs often enough for a statement to get its generic plan.

use std::{collections::BTreeSet, time::Duration};

use kortyx_store::{
    CancelRequest, CancelTarget, ClaimRequest, ExpireRequest, Finish, Fork, InterruptQuery, NewRun, OpenRun, Park,
    Reissue, Retention, Rollback, RunQuery, RunRef, Scalar, Scope, SessionQuery, Store, Suspend,
};

use crate::explained::Explained;
use crate::world::{
    World, answer, ask, checkpoint, connect, driver, finish, granted, new_run, new_run_in, open_run, pin, record,
    saved, suspend,
};

/// How often a statement is planned for its values before the server considers a plan for all.
const ROUNDS: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_scans_a_table_of_a_hundred_thousand_rows() {
    let world = World::new();
    // What ran on empty tables keeps its plans: a new store begins with new connections.
    world.store().await.close().await;
    world.execute(include_str!("crowd.sql")).await;
    let (before, read_before) = (scans(&world).await, rows_read(&world).await);

    let user = Explained::user(&world).await;
    let store = crate::world::set_up(world.config_at(&user.url()).pool_size(1)).await;
    for _ in 0..ROUNDS {
        drive(&store).await;
        sweep(&store).await;
        go_back(&store).await;
        read(&store).await;
    }
    store.close().await;

    let plans = user.plans().await;
    let of_store =
        |tables: BTreeSet<String>| tables.into_iter().filter(|table| table != "versions").collect::<Vec<_>>();
    for plan in &plans {
        let scanned = of_store(plan.tables(|node| node == "Seq Scan"));
        assert!(scanned.is_empty(), "{scanned:?} would be scanned from end to end by: {}", plan.statement());
    }
    let indexed = |node: &str| matches!(node, "Index Scan" | "Index Only Scan" | "Bitmap Heap Scan");
    let reached: BTreeSet<String> = plans.iter().flat_map(|plan| of_store(plan.tables(indexed))).collect();
    assert_eq!(reached.len(), 9, "tables that an index led to: {reached:?}");

    // A server process tells its numbers when it ends.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let after = scans(&world).await;
    assert_eq!(after, before, "tables that were scanned from end to end, and how often");
    let rows = rows_read(&world).await - read_before;
    assert!(rows < 50_000, "{rows} rows were read: an index was scanned from end to end");
    world.execute("TRUNCATE kortyx.transitions").await;
}

/// The sequential scans of each table so far.
async fn scans(world: &World) -> Vec<(String, i64)> {
    let sql = "SELECT relname::text, seq_scan FROM pg_stat_user_tables WHERE schemaname = $1 AND relname <> 'versions' \
        ORDER BY relname";
    let rows: Vec<(String, i64)> =
        sqlx::query_as(sql).bind(&world.schema).fetch_all(&mut connect().await).await.unwrap();
    assert_eq!(rows.len(), 9, "{rows:?}");
    rows
}

/// The rows that indexes gave so far. A whole index read once would give more than all that runs here.
async fn rows_read(world: &World) -> i64 {
    let sql = "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE schemaname = ";
    world.number(&format!("{sql}'{}'", world.schema)).await
}

async fn drive(store: &dyn Store) {
    let chunks = || vec![b"said".as_slice().into(), b"said again".as_slice().into()];
    let lease = store.open(OpenRun { chunks: chunks(), ..open_run(new_run()) }).await.unwrap();
    let published = kortyx_store::Record { publish: vec![ask("early")], ..record(&lease) };
    store.record(published).await.unwrap();
    let withdrawn = kortyx_store::Record { withdraw: vec![ask("early").ask], ..record(&lease) };
    store.record(withdrawn).await.unwrap();
    store.renew(&lease, Duration::from_mins(1), 0).await.unwrap();
    store.record(kortyx_store::Record { chunks: chunks(), ..record(&lease) }).await.unwrap();
    let pause = suspend(RunRef::Held(lease), vec![ask("a"), ask("b")], 0);
    let open = saved(store.suspend(Suspend { chunks: chunks(), ..pause }).await.unwrap());
    let claimed = granted(store.answer(answer(&open[0], "yes")).await.unwrap());
    store.answer(answer(&open[0], "yes")).await.unwrap();
    store.finish(Finish { chunks: chunks(), ..finish(&claimed.lease, 1) }).await.unwrap();
    let page = store.chunks(&claimed.lease.run_id, 2, 3).await.unwrap().unwrap();
    assert_eq!((page.chunks.len(), page.last), (3, 8));
    let lease = store.open(open_run(new_run())).await.unwrap();
    store.park(Park { lease, reason: "changed".to_owned() }).await.unwrap();
    let lease = store.open(open_run(new_run())).await.unwrap();
    store.release(&lease).await.unwrap();
}

async fn sweep(store: &dyn Store) {
    let now = store.now().await.unwrap();
    let parked_before = Some(now.saturating_add(Duration::from_secs(1)));
    let request = ClaimRequest { driver: driver(), workflows: vec![pin()], parked_before, limit: 50 };
    for claimed in store.claim_orphans(request).await.unwrap() {
        store.finish(finish(&claimed.lease, 0)).await.unwrap();
    }
    let expired = kortyx_store::NewInterrupt { expires_in: Duration::ZERO, ..ask("a") };
    let open = suspend(RunRef::New(new_run(), driver()), vec![expired, ask("b")], 0);
    saved(store.suspend(open).await.unwrap());
    let request = ExpireRequest { driver: driver(), workflows: vec![pin()], limit: 50 };
    assert_eq!(store.expire_due(request).await.unwrap().interrupts.len(), 1);
    let retention = Retention {
        finished_runs: Duration::ZERO,
        checkpoints_per_session: 2,
        checkpoint_age: Duration::from_hours(1),
        idle_sessions: Duration::from_hours(1),
    };
    store.prune(&retention, 50).await.unwrap();
}

async fn go_back(store: &dyn Store) {
    let run = new_run();
    let session = run.session_id.clone();
    let open = saved(store.suspend(suspend(RunRef::New(run.clone(), driver()), vec![ask("a")], 0)).await.unwrap());
    let turn = store.head(&session).await.unwrap().unwrap();
    store.append_checkpoint(&session, checkpoint()).await.unwrap();
    let reissue = || {
        let new = ask("a");
        vec![Reissue { from: open[0].request_id.clone(), request_id: new.request_id, token: new.token }]
    };
    let copy = new_run();
    let request = Fork {
        checkpoint_id: turn.checkpoint.id.clone(),
        new_session_id: copy.session_id.clone(),
        new_checkpoint_id: checkpoint().id,
        new_run_id: copy.run_id.clone(),
        reissue: reissue(),
    };
    assert!(matches!(store.fork(request).await.unwrap(), kortyx_store::ForkOutcome::Done { .. }));
    let request = Rollback { checkpoint_id: turn.checkpoint.id, new_run_id: new_run().run_id, reissue: reissue() };
    assert!(matches!(store.rollback(request).await.unwrap(), kortyx_store::RollbackOutcome::Done { .. }));
    for target in [CancelTarget::Session(session), CancelTarget::Run(copy.run_id)] {
        let outcome = store.cancel(CancelRequest { target, scope: None, reason: None }).await.unwrap();
        assert_eq!(outcome.len(), 1);
    }
}

async fn read(store: &dyn Store) {
    let run = new_run_in("old-session-7");
    let open = saved(store.suspend(suspend(RunRef::New(run.clone(), driver()), vec![ask("a")], 0)).await.unwrap());
    store.run(&run.run_id).await.unwrap().unwrap();
    store.interrupt(&open[0].request_id).await.unwrap().unwrap();
    let turns = store.list_checkpoints(&run.session_id).await.unwrap();
    store.checkpoint(&turns[0].checkpoint.id).await.unwrap().unwrap();
    store.head(&run.session_id).await.unwrap().unwrap();
    let session = Scope::session(run.session_id.clone());
    let tenant = Scope::default().with("tenant", Scalar::Text("acme".into()));
    let both = session.clone().with("tenant", Scalar::Text("acme".into()));
    for (scope, run_id) in [
        (session, None),
        (tenant.clone(), None),
        (both.clone(), None),
        (both, Some(run.run_id.clone())),
        (tenant, None),
    ] {
        let query = InterruptQuery { scope, run_id, limit: 1, ..InterruptQuery::default() };
        let page = store.list_interrupts(query.clone()).await.unwrap();
        assert!(!page.interrupts.is_empty());
        if page.next.is_some() {
            store.list_interrupts(InterruptQuery { cursor: page.next, ..query }).await.unwrap();
        }
    }
    inspect(store, &run).await;
    store.cancel(CancelRequest { target: CancelTarget::Run(run.run_id), scope: None, reason: None }).await.unwrap();
}

/// What operators read page by page; counting everything looks at everything.
async fn inspect(store: &dyn Store, run: &NewRun) {
    assert_eq!(store.history(&run.run_id).await.unwrap().unwrap().questions.len(), 1);
    for session_id in [None, Some(run.session_id.clone())] {
        let query = RunQuery { session_id, limit: 1, ..RunQuery::default() };
        let page = store.list_runs(query.clone()).await.unwrap();
        assert_eq!(page.runs[0].run_id, run.run_id, "the newest comes first");
        store.list_runs(RunQuery { cursor: page.next, ..query }).await.unwrap();
    }
    let page = store.list_sessions(SessionQuery { limit: 3, cursor: None }).await.unwrap();
    assert_eq!(page.sessions.len(), 3);
    store.list_sessions(SessionQuery { limit: 3, cursor: page.next }).await.unwrap();
}
