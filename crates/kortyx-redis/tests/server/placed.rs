//! Ids that say where they live: what they save on a Cluster, and what they are worth when others say the same.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::{Arc, atomic::AtomicI64},
    time::{Duration, Instant},
};

use crate::support::{Cluster, Server, relay::Relays, set_up};
use bytes::Bytes;
use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId};
use kortyx_redis::{RedisConfig, RedisStore};
use kortyx_store::conformance::requests::{
    answering, ask, claiming, driver, finishing, granted, new_run, opening, paused_run, pin, suspending,
};
use kortyx_store::{
    AskKey, ExpireRequest, InterruptQuery, InterruptRecord, InterruptStatus, NewCheckpoint, NewInterrupt, NewRun,
    Placement, RunRef, Scalar, Scope, Store, StoreErrorKind, Suspend, Suspended,
};

/// How long each reply takes: far longer than what a call does beside waiting.
const DELAY: Duration = Duration::from_millis(50);

/// An id of this session, as those who mint ids make it.
fn placed(store: &RedisStore, session_id: &SessionId, number: u64) -> [u8; 16] {
    store.placement(session_id).unwrap().mark((u128::from(number) << 64).to_be_bytes())
}

/// A run that says where it lives, with a value that it can be listed by.
fn placed_run(store: &RedisStore, number: u64) -> NewRun {
    let mut run = new_run();
    run.session_id = SessionId::new(format!("placed-{number}")).unwrap();
    run.run_id = RunId::from_random(placed(store, &run.session_id, number));
    run.context.insert("tenant".to_owned(), Scalar::Text("acme".into()));
    run
}

fn placed_ask(store: &RedisStore, run: &NewRun, number: u64) -> NewInterrupt {
    NewInterrupt { request_id: RequestId::from_random(placed(store, &run.session_id, number)), ..ask("a") }
}

/// The first pause of a run, with the turn that it ends.
pub(crate) fn pausing(store: &RedisStore, number: u64) -> Suspend {
    let run = placed_run(store, number);
    let checkpoint = NewCheckpoint {
        id: CheckpointId::from_random(placed(store, &run.session_id, number)),
        label: None,
        nodes: Vec::new(),
        workflow: "review".to_owned(),
        workflow_version: None,
        state: Bytes::from_static(b"{}"),
        structured_stream_ids: Vec::new(),
    };
    let publish = vec![placed_ask(store, &run, number)];
    Suspend { checkpoint: Some(checkpoint), ..suspending(RunRef::New(run, driver()), publish) }
}

pub(crate) fn saved(suspended: Suspended) -> InterruptRecord {
    let Suspended::Saved(mut open) = suspended else { unreachable!("expected a saved suspension, got {suspended:?}") };
    open.remove(0)
}

fn by_tenant() -> InterruptQuery {
    let scope = Scope::default().with("tenant", Scalar::Text("acme".into()));
    InterruptQuery { scope, limit: 100, ..InterruptQuery::default() }
}

/// How many replies were waited for, one after another.
fn trips(since: Instant) -> u128 {
    since.elapsed().as_millis() / DELAY.as_millis()
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_cluster_a_pause_is_one_round_trip_and_an_answer_in_another_process_with_its_end_three() {
    let cluster = Cluster::start();
    let near = set_up(RedisConfig::parse(&cluster.url()).unwrap()).await;
    // Every server gets every script.
    for number in 0..40 {
        let question = saved(near.suspend(pausing(&near, number)).await.unwrap());
        set_up(RedisConfig::parse(&cluster.url()).unwrap()).await.interrupt(&question.request_id).await.unwrap();
        near.finish(finishing(granted(near.answer(answering(&question)).await.unwrap()))).await.unwrap();
    }
    let relays = Relays::to(&cluster, DELAY).await;
    let config = || RedisConfig::parse(&relays.url()).unwrap();
    let (asking, driving) = (set_up(config()).await, set_up(config()).await);

    // The machine may be busy at one time or another, but it saves no round trip.
    let mut fewest = [u128::MAX; 4];
    for number in 100..106 {
        let mut counts = [0; 4];
        let pause = pausing(&asking, number);
        let began = Instant::now();
        let question = saved(asking.suspend(pause).await.unwrap());
        counts[0] = trips(began);
        let began = Instant::now();
        assert_eq!(driving.interrupt(&question.request_id).await.unwrap().unwrap().status, InterruptStatus::Pending);
        counts[1] = trips(began);
        let began = Instant::now();
        let claimed = granted(driving.answer(answering(&question)).await.unwrap());
        counts[2] = trips(began);
        let began = Instant::now();
        driving.finish(finishing(claimed)).await.unwrap();
        counts[3] = trips(began);
        fewest.iter_mut().zip(counts).for_each(|(fewest, count)| *fewest = count.min(*fewest));
    }
    assert_eq!(fewest, [1; 4], "to pause, to read, to answer, to finish");
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_cluster_a_process_reads_in_indexes_what_it_did_itself_and_closing_tells_the_rest() {
    let cluster = Cluster::start();
    let relays = Relays::to(&cluster, DELAY).await;
    let store = set_up(RedisConfig::parse(&relays.url()).unwrap()).await;
    let beside = set_up(RedisConfig::parse(&relays.url()).unwrap()).await;
    let other = set_up(RedisConfig::parse(&cluster.url()).unwrap()).await;
    for number in 0..10 {
        store.suspend(pausing(&store, number)).await.unwrap();
        let listed = beside.list_interrupts(by_tenant()).await.unwrap().interrupts.len();
        assert_eq!(listed as u64, 2 * number + 1, "another store of this process");
        store.suspend(pausing(&store, number + 1_000)).await.unwrap();
        let listed = store.list_interrupts(by_tenant()).await.unwrap().interrupts.len();
        assert_eq!(listed as u64, 2 * number + 2);
    }
    store.suspend(pausing(&store, 10)).await.unwrap();
    store.close().await;
    assert_eq!(other.list_interrupts(by_tenant()).await.unwrap().interrupts.len(), 21);
}

/// Set for the process that is to be killed: where its Cluster is.
const KILLED: &str = "KORTYX_TEST_KILLED_AT";
const PAUSED: &str = "has paused ";

/// Pauses a run with two questions, says so, and goes on living.
async fn pause_until_killed(url: &str) {
    let store = set_up(RedisConfig::parse(url).unwrap()).await;
    let run = placed_run(&store, 1);
    let asks =
        vec![placed_ask(&store, &run, 1), NewInterrupt { ask: AskKey("b".to_owned()), ..placed_ask(&store, &run, 2) }];
    let paused = store.suspend(suspending(RunRef::New(run, driver()), asks)).await.unwrap();
    let Suspended::Saved(open) = paused else { unreachable!("expected a saved suspension, got {paused:?}") };
    for question in open {
        println!("\n{PAUSED}{}", question.request_id);
    }
    tokio::time::sleep(Duration::from_mins(2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_question_of_a_process_killed_before_it_told_the_indexes_is_found_again() {
    if let Ok(url) = std::env::var(KILLED) {
        return pause_until_killed(&url).await;
    }
    let cluster = Cluster::start();
    let relays = Relays::to(&cluster, Duration::ZERO).await;
    relays.withhold();
    let name = "placed::the_question_of_a_process_killed_before_it_told_the_indexes_is_found_again";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(KILLED, relays.url());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let ids = tokio::task::spawn_blocking(|| {
        let lines = output.lines().map(Result::unwrap);
        let ids = lines.filter_map(|line| Some(RequestId::new(line.strip_prefix(PAUSED)?).unwrap()));
        ids.take(2).collect::<Vec<_>>()
    });
    let ids = ids.await.unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while relays.withheld() == 0 {
        assert!(Instant::now() < until, "the indexes were told nothing at all");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let store = set_up(RedisConfig::parse(&cluster.url()).unwrap()).await;
    let first = store.interrupt(ids.first().unwrap()).await.unwrap().expect("found by its id, which says where it is");
    assert_eq!(first.status, InterruptStatus::Pending);
    let in_session = InterruptQuery { scope: Scope::session(first.session_id.clone()), ..by_tenant() };
    assert_eq!(store.list_interrupts(in_session).await.unwrap().interrupts.len(), 2, "and in its session");
    assert!(store.list_interrupts(by_tenant()).await.unwrap().interrupts.is_empty(), "no index knows it");

    // A worker that polls brings it back, bit by bit.
    for _ in 0..50 {
        assert!(store.claim_orphans(claiming()).await.unwrap().is_empty());
    }
    let listed = store.list_interrupts(by_tenant()).await.unwrap().interrupts;
    let found: Vec<_> = listed.into_iter().map(|question| question.request_id).collect();
    assert_eq!(found, ids);
    granted(store.answer(answering(&first)).await.unwrap());
    let ahead = Arc::new(AtomicI64::new(3_600_000));
    let later = set_up(RedisConfig::parse(&cluster.url()).unwrap().clock_offset(ahead)).await;
    let expire = ExpireRequest { driver: driver(), workflows: vec![pin()], limit: 10 };
    let expired = later.expire_due(expire).await.unwrap();
    assert_eq!(expired.interrupts.first().map(|question| &question.request_id), ids.get(1), "{expired:?}");
}

/// A store that is used slot by slot.
async fn by_slot(server: &Server) -> RedisStore {
    set_up(server.config().by_slot(true)).await
}

/// Two sessions of one part, and one of another.
fn sessions(store: &RedisStore) -> [SessionId; 3] {
    let mut seen = std::collections::HashMap::new();
    for number in 0.. {
        let id = SessionId::new(format!("session-{number}")).unwrap();
        let placement: Placement = store.placement(&id).unwrap();
        if let Some(before) = seen.insert(placement, id.clone()) {
            let other = seen.into_iter().find(|(other, _)| *other != placement).unwrap().1;
            return [before, id, other];
        }
    }
    unreachable!("there are more numbers than parts")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_taken_once_whatever_part_it_says_and_whoever_brings_it() {
    let server = Server::start();
    let (store, fresh) = (by_slot(&server).await, by_slot(&server).await);
    let [here, beside, elsewhere] = sessions(&store);
    let orders = [[&here, &beside], [&here, &elsewhere], [&elsewhere, &here]];
    for (number, [first, second]) in (1_000..).zip(orders) {
        // It says the part of `here`, wherever it is used.
        let bytes = placed(&store, &here, number);
        let run_in = |session: &SessionId| NewRun {
            run_id: RunId::from_random(bytes),
            session_id: session.clone(),
            ..new_run()
        };
        store.open(opening(run_in(first))).await.unwrap();
        let error = fresh.open(opening(run_in(second))).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::AlreadyExists, "{first} before {second}");
        assert_eq!(fresh.run(&RunId::from_random(bytes)).await.unwrap().unwrap().session_id, *first);

        let ask_it = || NewInterrupt { request_id: RequestId::from_random(bytes), ..ask("a") };
        let in_session = |session: &SessionId| {
            let run = NewRun { session_id: session.clone(), ..new_run() };
            suspending(RunRef::New(run, driver()), vec![ask_it()])
        };
        let question = saved(store.suspend(in_session(first)).await.unwrap());
        let error = fresh.suspend(in_session(second)).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::AlreadyExists, "{first} before {second}");
        let found = by_slot(&server).await.interrupt(&question.request_id).await.unwrap().unwrap();
        assert_eq!(found.session_id, *first, "found by a process that has never heard of it");
        granted(fresh.answer(answering(&question)).await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_a_refused_transition_brought_is_free() {
    let server = Server::start();
    let store = by_slot(&server).await;
    let [here, _, elsewhere] = sessions(&store);
    let bytes = placed(&store, &here, 7);
    let run_in =
        |session: &SessionId| NewRun { run_id: RunId::from_random(bytes), session_id: session.clone(), ..new_run() };
    // A new run that asks nothing cannot wait; the id was taken before that was known.
    let refused = store.suspend(suspending(RunRef::New(run_in(&elsewhere), driver()), Vec::new())).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::InvalidRequest);
    store.open(opening(run_in(&here))).await.unwrap();
    assert_eq!(store.run(&RunId::from_random(bytes)).await.unwrap().unwrap().session_id, here);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_says_its_part_has_one_locator_and_no_other_slot_hears_of_it() {
    let server = Server::start();
    let store = by_slot(&server).await;
    let run = placed_run(&store, 1);
    let part = format!("{{{:03x}}}", store.placement(&run.session_id).unwrap().number());
    let question = NewInterrupt { request_id: RequestId::from_random(placed(&store, &run.session_id, 2)), ..ask("a") };
    store.suspend(suspending(RunRef::New(run.clone(), driver()), vec![question])).await.unwrap();
    paused_run(&store, NewRun { context: run.context.clone(), ..new_run() }).await.unwrap();
    let keys = server.lines(&["KEYS", "kortyx:*"]);
    let of_run: Vec<_> = keys.iter().filter(|key| key.contains(run.run_id.as_str())).collect();
    assert_eq!(of_run.len(), 2, "the run and its locator: {keys:?}");
    assert!(of_run.iter().all(|key| key.starts_with(&format!("kortyx:{part}:"))), "{of_run:?}");
}
