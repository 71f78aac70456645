//! Listing open questions: whose, in what order, and page by page.

use std::{collections::BTreeSet, time::Duration};

use kortyx_protocol::SessionId;

use super::{
    case::{Case, list},
    outcome::{assert_same, error_kind, granted},
    world::{OPEN_FOR, World, driver, ids, in_scope, keys, of_run, suspend},
};
use crate::{
    InterruptQuery, InterruptRecord, NewInterrupt, RunRef, Scalar, Scope, StoreErrorKind, StoreExt as _, Suspend,
};

list![
    b113_a_listing_without_session_run_or_context_is_refused,
    questions_are_listed_by_session_run_and_context,
    every_given_part_of_a_scope_must_match,
    context_values_are_compared_exactly,
    a_run_outside_the_scope_lists_nothing,
    only_open_questions_are_listed_whole_and_oldest_first,
    questions_are_listed_by_whether_their_response_was_completed,
    a_page_holds_between_one_and_two_hundred_questions,
    pages_follow_each_other_without_gap_or_repetition,
    pages_stay_right_while_questions_are_published_and_closed,
    a_cursor_that_no_page_gave_is_refused,
    sessions_that_look_alike_are_different,
];

fn text_value(value: &str) -> Scalar {
    Scalar::Text(value.into())
}

async fn paused_with(w: &World<'_>, session: &SessionId, context: &[(&str, Scalar)]) -> InterruptRecord {
    let mut run = w.new_run_in(session);
    run.context = context.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    w.paused_run(run, w.asks(&["a"])).await.open.remove(0)
}

async fn b113_a_listing_without_session_run_or_context_is_refused(w: &World<'_>) {
    w.paused(&["a"]).await;
    for after_response_completed in [None, Some(false)] {
        let everything = InterruptQuery { after_response_completed, limit: 10, ..InterruptQuery::default() };
        assert_eq!(error_kind(w.store.list_interrupts(everything).await), StoreErrorKind::ScopeRequired);
    }
}

async fn questions_are_listed_by_session_run_and_context(w: &World<'_>) {
    let session = w.session_id();
    let acme = [("tenant", text_value("acme"))];
    let first = paused_with(w, &session, &acme).await;
    w.advance(Duration::from_millis(5));
    let second = paused_with(w, &session, &[]).await;
    w.advance(Duration::from_millis(5));
    let third = paused_with(w, &w.session_id(), &acme).await;

    let by_session = w.list(in_scope(Scope::session(session))).await;
    let by_context = w.list(in_scope(Scope::default().with("tenant", text_value("acme")))).await;
    let by_run = w.list(of_run(&second.run_id)).await;

    assert_eq!(ids(&by_session), ids(&[first.clone(), second.clone()]));
    assert_eq!(ids(&by_context), ids(&[first, third]));
    assert_eq!(ids(&by_run), ids(&[second]));
}

async fn every_given_part_of_a_scope_must_match(w: &World<'_>) {
    let session = w.session_id();
    let both = [("tenant", text_value("acme")), ("team", Scalar::Int(7))];
    let wanted = paused_with(w, &session, &both).await;
    paused_with(w, &session, &both[..1]).await;
    paused_with(w, &session, &both[1..]).await;
    paused_with(w, &w.session_id(), &both).await;
    let scope = Scope::session(session).with("tenant", both[0].1.clone()).with("team", both[1].1.clone());

    assert_eq!(ids(&w.list(in_scope(scope.clone())).await), ids(std::slice::from_ref(&wanted)));
    assert!(w.list(in_scope(scope.clone().with("role", text_value("x")))).await.is_empty());
    let with_run = InterruptQuery { run_id: Some(wanted.run_id.clone()), ..in_scope(scope) };
    assert_eq!(ids(&w.list(with_run).await), ids(&[wanted]));
}

async fn context_values_are_compared_exactly(w: &World<'_>) {
    let values = [
        text_value("1"),
        Scalar::Int(1),
        Scalar::Bool(true),
        text_value("true"),
        Scalar::Bool(false),
        Scalar::Int(0),
        text_value(""),
        text_value(" "),
        text_value("null"),
        text_value("A"),
        text_value("a"),
        text_value("a "),
        text_value("a\0"),
        text_value("a\0b"),
        text_value("%"),
        text_value("_"),
        text_value("😀"),
        text_value("é"),
        text_value("e\u{301}"),
        text_value("it's \"quoted\"\\"),
        text_value("1.0"),
        Scalar::Int(-1),
        Scalar::Int(i64::MAX),
        Scalar::Int(i64::MAX - 1),
        Scalar::Int(i64::MIN),
        text_value("9223372036854775807"),
    ];
    let mut published = Vec::new();
    for value in &values {
        published.push(paused_with(w, &w.session_id(), &[("key", value.clone())]).await);
    }
    for (value, question) in values.iter().zip(&published) {
        let found = w.list(in_scope(Scope::default().with("key", value.clone()))).await;
        assert_eq!(ids(&found), ids(std::slice::from_ref(question)), "{value:?}");
        assert_eq!(found[0].context.get("key"), Some(value));
        assert!(w.list(in_scope(Scope::default().with("Key", value.clone()))).await.is_empty(), "{value:?}");
    }
}

async fn a_run_outside_the_scope_lists_nothing(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    let foreign = InterruptQuery { scope: Scope::session(w.session_id()), ..of_run(&paused.run.run_id) };
    assert!(w.list(foreign).await.is_empty());
    assert!(w.list(of_run(&w.run_id())).await.is_empty());
}

async fn only_open_questions_are_listed_whole_and_oldest_first(w: &World<'_>) {
    let run = w.new_run();
    let lease = w.driven_run(run.clone()).await;
    let short = NewInterrupt { expires_in: Duration::from_secs(5), ..w.ask("short") };
    let first = w.published(&lease, vec![w.ask("z"), short, w.ask("answered"), w.ask("withdrawn")]).await;
    w.advance(Duration::from_secs(10));
    super::outcome::driven(w.answer(&first[2], "yes").await);
    let withdraw = vec![first[3].ask.clone()];
    let request = Suspend { withdraw, answers_seen: 1, ..suspend(RunRef::Held(lease), w.asks(&["m", "a"])) };
    w.store.suspend(request).await.unwrap();

    let by_run = w.list(of_run(&run.run_id)).await;
    let by_session = w.list(in_scope(Scope::session(run.session_id))).await;

    assert_eq!(keys(&by_run), ["z", "m", "a"]);
    assert_same(&by_run[0], &first[0]);
    assert_eq!(ids(&by_session), ids(&by_run));
    w.cancel(&run.run_id).await;
    assert!(w.list(of_run(&run.run_id)).await.is_empty());
}

async fn questions_are_listed_by_whether_their_response_was_completed(w: &World<'_>) {
    let after = NewInterrupt { after_response_completed: true, ..w.ask("after") };
    let paused = w.paused_run(w.new_run(), vec![w.ask("before"), after]).await;
    for (wanted, expected) in
        [(None, &paused.open[..]), (Some(false), &paused.open[..1]), (Some(true), &paused.open[1..])]
    {
        let query = InterruptQuery { after_response_completed: wanted, ..of_run(&paused.run.run_id) };
        assert_eq!(ids(&w.list(query).await), ids(expected));
    }
}

async fn a_page_holds_between_one_and_two_hundred_questions(w: &World<'_>) {
    let names: Vec<String> = (0..205).map(|i| format!("q{i}")).collect();
    let paused = w.paused(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for (limit, expected) in [(0, 1), (1, 1), (7, 7), (200, 200), (201, 200), (u32::MAX, 200)] {
        let query = InterruptQuery { limit, ..of_run(&paused.run.run_id) };
        let page = w.store.list_interrupts(query.clone()).await.unwrap();
        assert_eq!((page.interrupts.len(), page.next.is_some()), (expected, true), "limit {limit}");
    }
    let all = w.store.open_questions(&paused.run.run_id).await.unwrap();
    assert_eq!(ids(&all), ids(&paused.open), "over as many pages as it takes");
}

async fn pages_follow_each_other_without_gap_or_repetition(w: &World<'_>) {
    let session = w.session_id();
    let mut published = Vec::new();
    for _ in 0..9 {
        published.extend(ids(&w.paused_run(w.new_run_in(&session), w.asks(&["b", "a", "c"])).await.open));
    }
    w.paused(&["elsewhere"]).await;
    for limit in [1, 2, 5, 26, 27, 28] {
        let query = InterruptQuery { limit, ..in_scope(Scope::session(session.clone())) };
        assert_eq!(sorted(&w.list(query).await), published.iter().cloned().collect(), "limit {limit}");
    }
}

/// The ids of a listing, which holds none of them twice.
fn sorted(listed: &[InterruptRecord]) -> BTreeSet<kortyx_protocol::RequestId> {
    let set: BTreeSet<_> = ids(listed).into_iter().collect();
    assert_eq!(set.len(), listed.len(), "a question is listed twice");
    set
}

async fn pages_stay_right_while_questions_are_published_and_closed(w: &World<'_>) {
    let scope = Scope::default().with("tenant", text_value("acme"));
    let context = [("tenant", text_value("acme"))];
    let mut older = Vec::new();
    for _ in 0..12 {
        older.push(paused_with(w, &w.session_id(), &context).await);
        w.advance(Duration::from_millis(1));
    }
    let store = w.store.clone();
    let runs: Vec<_> = (0..40)
        .map(|_| {
            let mut run = w.new_run();
            run.context.insert("tenant".to_owned(), text_value("acme"));
            suspend(RunRef::New(run, driver()), w.asks(&["a"]))
        })
        .collect();
    let inserting = tokio::spawn(async move {
        for run in runs {
            store.suspend(run).await.unwrap();
            tokio::task::yield_now().await;
        }
    });

    let mut listed = Vec::new();
    let mut query = InterruptQuery { limit: 3, ..in_scope(scope) };
    while listed.len() < 1_000 {
        let page = w.store.list_interrupts(query.clone()).await.unwrap();
        assert!(page.interrupts.len() <= 3);
        if listed.is_empty() {
            granted(w.answer(&page.interrupts[1], "yes").await);
            granted(w.answer(&older[4], "yes").await);
        }
        listed.extend(page.interrupts);
        tokio::task::yield_now().await;
        let Some(next) = page.next else { break };
        query.cursor = Some(next);
    }
    inserting.await.unwrap();

    let found = sorted(&listed);
    let open = older.iter().enumerate().filter(|(i, _)| ![1, 4].contains(i)).map(|(_, question)| question);
    let missing: Vec<_> = open.filter(|question| !found.contains(&question.request_id)).collect();
    assert!(missing.is_empty(), "older questions are missing: {missing:?}");
    assert!(!found.contains(&older[4].request_id), "closed before its page was read");
    assert!(listed.is_sorted_by_key(|question| question.created_at));
}

async fn a_cursor_that_no_page_gave_is_refused(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    for cursor in ["", "x", "'; --", "-1", "999999999999999999999999999999", "😀", "AAAA"] {
        let query = InterruptQuery { cursor: Some(cursor.to_owned()), ..of_run(&paused.run.run_id) };
        assert_eq!(error_kind(w.store.list_interrupts(query).await), StoreErrorKind::InvalidRequest, "{cursor:?}");
    }
}

async fn sessions_that_look_alike_are_different(w: &World<'_>) {
    let names = ["s", "S", " s", "s ", "ß", "ss", "é", "e\u{301}", "1", "01", "%", "_", "s%", "s*", "{s}"];
    let mut published = Vec::new();
    for name in names {
        published.push(paused_with(w, &SessionId::new(name).unwrap(), &[]).await);
    }
    for (name, question) in names.iter().zip(&published) {
        let session = SessionId::new(*name).unwrap();
        assert_eq!(
            ids(&w.list(in_scope(Scope::session(session))).await),
            ids(std::slice::from_ref(question)),
            "{name}"
        );
    }
    w.advance(OPEN_FOR);
    assert_eq!(w.expire().await.ended.len(), names.len());
}
