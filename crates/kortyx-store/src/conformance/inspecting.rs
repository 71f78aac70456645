//! What an operator's inspector reads: runs and sessions, whoever they belong to, counts, and all that is kept of a run.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;
use kortyx_protocol::{RunId, SessionId};

use super::{
    case::{Case, list},
    outcome::{assert_same, driven, error_kind, granted},
    world::{World, bytes, cancellation, driver, ids, opening, pin, record, suspend},
};
use crate::{
    NewInterrupt, NewRun, OpenRun, Record, RunPage, RunQuery, RunRef, RunStatus, SessionQuery, SessionRecord,
    StoreErrorKind, StoreStats, Suspend, WorkflowPin,
};

list![
    runs_of_every_session_are_listed_without_what_they_carry,
    runs_are_listed_by_status_session_and_workflow,
    a_page_holds_between_one_and_two_hundred_runs,
    pages_of_runs_stay_right_while_runs_begin_and_end,
    a_cursor_of_runs_that_no_page_gave_is_refused,
    a_history_holds_the_snapshot_the_entries_after_it_and_every_question,
    the_history_of_a_run_that_ended_holds_its_outcome_and_no_state,
    reading_a_history_changes_nothing,
    sessions_are_listed_with_their_head_and_their_active_runs,
    a_page_holds_between_one_and_two_hundred_sessions,
    pages_of_sessions_stay_right_while_sessions_begin_and_go_on,
    what_is_stored_is_counted,
];

/// The runs of a listing over all of its pages, which hold none of them twice.
async fn all_runs(w: &World<'_>, mut query: RunQuery) -> Vec<RunId> {
    let mut all = Vec::new();
    for _ in 0..1_000 {
        let page = w.store.list_runs(query.clone()).await.unwrap();
        all.extend(page.runs.into_iter().map(|run| run.run_id));
        let Some(next) = page.next else {
            let set: BTreeSet<_> = all.iter().cloned().collect();
            assert_eq!(set.len(), all.len(), "a run is listed twice");
            return set.into_iter().collect();
        };
        query.cursor = Some(next);
    }
    panic!("a listing has no end");
}

fn sorted<'a>(runs: impl IntoIterator<Item = &'a NewRun>) -> Vec<RunId> {
    let set: BTreeSet<_> = runs.into_iter().map(|run| run.run_id.clone()).collect();
    set.into_iter().collect()
}

fn up_to(limit: u32) -> RunQuery {
    RunQuery { limit, ..RunQuery::default() }
}

async fn runs_of_every_session_are_listed_without_what_they_carry(w: &World<'_>) {
    assert!(all_runs(w, up_to(10)).await.is_empty());
    let mut run = w.new_run();
    run.context.insert("tenant".to_owned(), crate::Scalar::Text("acme".into()));
    let waits = w.paused_run(run, w.asks(&["a"])).await.run;
    let ended = w.new_run();
    let lease = w.driven_run(ended.clone()).await;
    w.complete(&lease, 0).await;

    let RunPage { runs, next } = w.store.list_runs(up_to(10)).await.unwrap();

    assert_eq!((runs.len(), next), (2, None));
    for id in [&waits.run_id, &ended.run_id] {
        let listed = runs.iter().find(|run| run.run_id == *id).expect("the run is listed");
        let mut read = w.run(id).await;
        assert_eq!(read.outcome.is_some(), *id == ended.run_id);
        read.outcome = None;
        assert_eq!(*listed, read);
    }
}

async fn runs_are_listed_by_status_session_and_workflow(w: &World<'_>) {
    let session = w.session_id();
    let other = WorkflowPin { id: "re'vi%w\u{1f600}".into(), ..pin() };
    let (waits, waits_too) = (w.new_run_in(&session), w.new_run());
    let runs = w.new_run_in(&session);
    let of_other = NewRun { workflow: other.clone(), ..w.new_run_in(&session) };
    w.paused_run(waits.clone(), w.asks(&["a"])).await;
    w.paused_run(waits_too.clone(), w.asks(&["a"])).await;
    w.driven_run(runs.clone()).await;
    w.driven_run(of_other.clone()).await;

    let query = up_to(2);
    let by_status = |statuses: &[RunStatus]| RunQuery { statuses: statuses.to_vec(), ..query.clone() };
    let by_session = |session: &SessionId| RunQuery { session_id: Some(session.clone()), ..query.clone() };
    let by_workflow = |id: &str| RunQuery { workflow: Some(id.to_owned()), ..query.clone() };
    for (query, expected) in [
        (by_status(&[RunStatus::Suspended]), vec![&waits, &waits_too]),
        (by_status(&[RunStatus::Suspended, RunStatus::Running]), vec![&waits, &waits_too, &runs, &of_other]),
        (by_status(&[RunStatus::Parked]), vec![]),
        (by_session(&session), vec![&waits, &runs, &of_other]),
        (by_session(&w.session_id()), vec![]),
        (by_workflow(&other.id), vec![&of_other]),
        (by_workflow("re"), vec![]),
        (
            RunQuery {
                statuses: vec![RunStatus::Running],
                workflow: Some("review".to_owned()),
                ..by_session(&session)
            },
            vec![&runs],
        ),
    ] {
        assert_eq!(all_runs(w, query.clone()).await, sorted(expected), "{query:?}");
    }
}

async fn a_page_holds_between_one_and_two_hundred_runs(w: &World<'_>) {
    let session = w.session_id();
    for _ in 0..205 {
        w.driven_run(w.new_run_in(&session)).await;
    }
    for (limit, expected) in [(0, 1), (1, 1), (7, 7), (200, 200), (u32::MAX, 200)] {
        for session_id in [None, Some(session.clone())] {
            let page = w.store.list_runs(RunQuery { session_id, ..up_to(limit) }).await.unwrap();
            assert_eq!((page.runs.len(), page.next.is_some()), (expected, true), "limit {limit}");
        }
    }
    assert_eq!(all_runs(w, up_to(200)).await.len(), 205);
}

async fn pages_of_runs_stay_right_while_runs_begin_and_end(w: &World<'_>) {
    let session = w.session_id();
    let (mut stay, mut leases) = (Vec::new(), Vec::new());
    for number in 0..12 {
        let run = if number % 3 == 0 { w.new_run() } else { w.new_run_in(&session) };
        leases.push(w.driven_run(run.clone()).await);
        stay.push(run);
    }
    let (mut query, mut listed) = (up_to(2), Vec::new());
    loop {
        let page = w.store.list_runs(query.clone()).await.unwrap();
        listed.extend(page.runs.into_iter().map(|run| run.run_id));
        w.driven_run(w.new_run_in(&session)).await;
        if let Some(lease) = leases.pop() {
            w.complete(&lease, 0).await;
        }
        let Some(next) = page.next.filter(|_| listed.len() < 100) else { break };
        query.cursor = Some(next);
    }
    let set: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(set.len(), listed.len(), "a run is listed twice");
    assert!(stay.iter().all(|run| set.contains(&run.run_id)), "a run that was there is missing");
}

async fn a_cursor_of_runs_that_no_page_gave_is_refused(w: &World<'_>) {
    w.driven_run(w.new_run()).await;
    for cursor in ["", "1", "x.y", "runs.", "runs.-1", "runs.zz", "' OR 1=1"] {
        let query = RunQuery { cursor: Some(cursor.to_owned()), ..up_to(10) };
        assert_eq!(error_kind(w.store.list_runs(query).await), StoreErrorKind::InvalidRequest, "{cursor}");
    }
}

async fn a_history_holds_the_snapshot_the_entries_after_it_and_every_question(w: &World<'_>) {
    let run = w.new_run();
    let short = NewInterrupt { expires_in: Duration::from_secs(5), ..w.ask("due") };
    let optional = NewInterrupt { optional_cancel: true, ..w.ask("cancelled") };
    let publish = vec![w.ask("z"), short, w.ask("answered"), optional, w.ask("withdrawn")];
    let before = w.store.open(opening(run.clone())).await.unwrap();
    w.store.record(Record { entries: vec![bytes("old")], ..record(&before) }).await.unwrap();
    let snapshot = Bytes::from_static(b"\0k\xff snapshot");
    let request = Suspend { snapshot: snapshot.clone(), ..suspend(RunRef::Held(before), publish) };
    let open = super::world::saved(w.store.suspend(request).await.unwrap());
    w.advance(Duration::from_secs(10));
    let claimed = granted(w.answer(&open[2], "yes").await);
    driven(w.answer_all(vec![cancellation(&open[3])]).await);
    let entries = vec![Bytes::from_static(b"\0r"), Bytes::new(), bytes("{}")];
    let request = Record {
        entries: entries.clone(),
        withdraw: vec![open[4].ask.clone()],
        publish: w.asks(&["late"]),
        answers_seen: 2,
        ..record(&claimed.lease)
    };
    let late = w.store.record(request).await.unwrap().published;

    for store in w.instances().await {
        let history = store.history(&run.run_id).await.unwrap().expect("the run is stored");
        assert_eq!(history.run, w.run(&run.run_id).await);
        assert_eq!(history.snapshot.as_ref(), Some(&snapshot));
        assert_eq!(history.entries, entries);
        assert_eq!(ids(&history.questions), ids(&[&open[..], &late[..]].concat()));
        for question in &history.questions {
            assert_same(question, &w.question(&question.request_id).await);
        }
        let receipts: Vec<_> = history.questions.iter().map(|question| question.receipt.is_some()).collect();
        assert_eq!(receipts, [false, false, true, true, false, false]);
    }
    assert!(w.store.history(&w.run_id()).await.unwrap().is_none());
}

async fn the_history_of_a_run_that_ended_holds_its_outcome_and_no_state(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    let claimed = granted(w.answer(&paused.open[0], "yes").await);
    w.store.record(Record { entries: vec![bytes("e")], answers_seen: 1, ..record(&claimed.lease) }).await.unwrap();
    w.complete(&claimed.lease, 1).await;

    let history = w.store.history(&paused.run.run_id).await.unwrap().expect("the run is stored");

    assert_eq!((history.run.status, history.run.outcome), (RunStatus::Completed, Some(bytes("outcome"))));
    assert_eq!((history.snapshot, history.entries), (None, Vec::new()));
    assert_eq!(ids(&history.questions), ids(&paused.open));
    assert!(!format!("{:?}", history.questions).contains(paused.open[0].token.expose()));
}

async fn reading_a_history_changes_nothing(w: &World<'_>) {
    let run = w.new_run();
    let request = OpenRun { run: run.clone(), driver: driver(), snapshot: bytes("opened"), chunks: Vec::new() };
    let lease = w.store.open(request).await.unwrap();
    let before = w.run(&run.run_id).await;
    w.advance(Duration::from_millis(50));

    let history = w.store.history(&run.run_id).await.unwrap().expect("the run is stored");

    assert_eq!((history.run, history.snapshot), (before.clone(), Some(bytes("opened"))));
    assert_eq!(w.run(&run.run_id).await, before);
    w.complete(&lease, 0).await;
}

/// The sessions of a listing over all of its pages, which hold none of them twice, by their ids.
async fn all_sessions(w: &World<'_>, mut query: SessionQuery) -> BTreeMap<SessionId, SessionRecord> {
    let mut all = BTreeMap::new();
    for _ in 0..1_000 {
        let page = w.store.list_sessions(query.clone()).await.unwrap();
        for session in page.sessions {
            let twice = all.insert(session.session_id.clone(), session);
            assert_eq!(twice, None, "a session is listed twice");
        }
        let Some(next) = page.next else { return all };
        query.cursor = Some(next);
    }
    panic!("a listing has no end");
}

fn sessions_up_to(limit: u32) -> SessionQuery {
    SessionQuery { limit, cursor: None }
}

async fn sessions_are_listed_with_their_head_and_their_active_runs(w: &World<'_>) {
    assert!(all_sessions(w, sessions_up_to(10)).await.is_empty());
    let (idle, busy) = (w.session_id(), w.session_id());
    w.append(&idle, "first").await;
    w.advance(Duration::from_millis(20));
    let of_idle = w.append(&idle, "second").await;
    let of_busy = w.append(&busy, "only").await;
    w.paused_run(w.new_run_in(&busy), w.asks(&["a", "b"])).await;
    w.driven_run(w.new_run_in(&busy)).await;
    let ended = w.driven_run(w.new_run_in(&busy)).await;
    w.complete(&ended, 0).await;
    // A session of runs alone is no conversation.
    w.paused(&["a"]).await;

    for limit in [1, 2, 10] {
        let listed = all_sessions(w, sessions_up_to(limit)).await;
        assert_eq!(listed.len(), 2, "limit {limit}");
        for (head, turn_index, active_runs) in [(&of_idle, 1, 0), (&of_busy, 0, 2)] {
            assert_eq!(
                listed[&head.session_id],
                SessionRecord {
                    session_id: head.session_id.clone(),
                    head: head.checkpoint.id.clone(),
                    turn_index,
                    head_at: head.created_at,
                    active_runs,
                }
            );
        }
    }
    for cursor in ["", "1", "sessions.", "sessions.-1", "runs.1"] {
        let query = SessionQuery { cursor: Some(cursor.to_owned()), limit: 10 };
        assert_eq!(error_kind(w.store.list_sessions(query).await), StoreErrorKind::InvalidRequest, "{cursor}");
    }
}

async fn a_page_holds_between_one_and_two_hundred_sessions(w: &World<'_>) {
    for _ in 0..203 {
        w.append(&w.session_id(), "only").await;
    }
    for (limit, expected) in [(0, 1), (1, 1), (200, 200), (u32::MAX, 200)] {
        let page = w.store.list_sessions(sessions_up_to(limit)).await.unwrap();
        assert_eq!((page.sessions.len(), page.next.is_some()), (expected, true), "limit {limit}");
    }
    assert_eq!(all_sessions(w, sessions_up_to(200)).await.len(), 203);
    assert_eq!(w.store.stats().await.unwrap().sessions, 203);
}

async fn pages_of_sessions_stay_right_while_sessions_begin_and_go_on(w: &World<'_>) {
    let mut stay = Vec::new();
    for _ in 0..9 {
        let session = w.session_id();
        w.append(&session, "first").await;
        stay.push(session);
    }
    let (mut query, mut listed) = (sessions_up_to(2), Vec::new());
    loop {
        let page = w.store.list_sessions(query.clone()).await.unwrap();
        listed.extend(page.sessions.into_iter().map(|session| session.session_id));
        w.append(&w.session_id(), "first").await;
        w.append(&stay[listed.len() % stay.len()], "next").await;
        let Some(next) = page.next.filter(|_| listed.len() < 100) else { break };
        query.cursor = Some(next);
    }
    let set: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(set.len(), listed.len(), "a session is listed twice");
    assert!(stay.iter().all(|session| set.contains(session)), "a session that was there is missing");
}

async fn what_is_stored_is_counted(w: &World<'_>) {
    assert_eq!(w.store.stats().await.unwrap(), StoreStats::default());
    let session = w.session_id();
    w.append(&session, "kept").await;
    w.append(&session, "kept too").await;
    w.append(&w.session_id(), "another").await;
    let short = NewInterrupt { expires_in: Duration::from_secs(5), ..w.ask("due") };
    w.paused_run(w.new_run_in(&session), vec![w.ask("a"), w.ask("b"), short]).await;
    w.paused(&["c"]).await;
    w.driven_run(w.new_run()).await;
    let ended = w.paused(&["d"]).await;
    w.cancel(&ended.run.run_id).await;
    w.parked(&["e"]).await;
    w.advance(Duration::from_secs(10));

    let stats = w.store.stats().await.unwrap();

    let expected = [
        (RunStatus::Running, 1),
        (RunStatus::Suspended, 2),
        (RunStatus::Completed, 0),
        (RunStatus::Failed, 0),
        (RunStatus::Cancelled, 1),
        (RunStatus::Expired, 0),
        (RunStatus::Parked, 1),
    ];
    for (status, number) in expected {
        assert_eq!(stats.runs.of(status), number, "{status:?}");
    }
    assert_eq!((stats.runs.total(), stats.open_questions), (5, 4));
    assert_eq!((stats.sessions, stats.checkpoints), (2, 3));
}
