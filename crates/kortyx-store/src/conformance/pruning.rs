//! Retention: what goes, and what never does.

use std::time::Duration;

use super::{
    case::{Case, list},
    chains::{chain, rollback},
    outcome::{duplicate, granted, refusal},
    world::{LEASE, MARGIN, OPEN_FOR, World, answer, in_scope, text},
};
use crate::{InterruptStatus, NewInterrupt, Pruned, Refusal, Retention, RunStatus, Scope};

list![
    b155_a_finished_run_goes_with_everything_of_it_after_its_time,
    b153_a_cancelled_run_goes_like_any_other,
    b154_runs_that_are_not_terminal_are_kept_however_old,
    a_repeated_answer_is_served_while_its_run_is_kept,
    b154_a_session_keeps_its_newest_checkpoints,
    checkpoints_go_by_age_but_the_head_stays,
    an_idle_session_goes_whole,
    a_session_with_an_open_question_is_kept,
    pruning_goes_in_bounded_batches,
    pruning_concurrently_counts_everything_once,
    a_pruned_session_starts_again_from_nothing,
    b155_many_pauses_and_resumptions_leave_nothing_behind,
];

const DAY: Duration = Duration::from_hours(24);

/// Keeps everything; a case then shortens what it is about.
fn keep() -> Retention {
    Retention {
        finished_runs: DAY * 10_000,
        checkpoints_per_session: u32::MAX,
        checkpoint_age: DAY * 10_000,
        idle_sessions: DAY * 10_000,
    }
}

fn runs_after(finished_runs: Duration) -> Retention {
    Retention { finished_runs, ..keep() }
}

/// Prunes until nothing more may be left, and gives the sums.
async fn prune(w: &World<'_>, retention: &Retention) -> Pruned {
    let mut sum = Pruned::default();
    for _ in 0..1_000 {
        let pruned = w.store.prune(retention, 100).await.unwrap();
        sum.runs += pruned.runs;
        sum.checkpoints += pruned.checkpoints;
        sum.sessions += pruned.sessions;
        if !pruned.more {
            return sum;
        }
    }
    panic!("pruning has no end");
}

async fn b155_a_finished_run_goes_with_everything_of_it_after_its_time(w: &World<'_>) {
    let paused = w.paused(&["a", "b"]).await;
    let claimed = granted(w.answer(&paused.open[0], "yes").await);
    w.complete(&claimed.lease, 1).await;
    w.advance(DAY.saturating_sub(MARGIN));
    assert_eq!(prune(w, &runs_after(DAY)).await, Pruned::default(), "not yet");
    let younger = w.driven().await;
    w.complete(&younger, 0).await;
    w.advance(MARGIN * 2);

    assert_eq!(prune(w, &runs_after(DAY)).await.runs, 1);

    assert_eq!(w.store.run(&paused.run.run_id).await.unwrap(), None);
    for question in &paused.open {
        assert!(w.store.interrupt(&question.request_id).await.unwrap().is_none());
        assert_eq!(refusal(w.answer(question, "yes").await), Refusal::Unknown);
    }
    assert_eq!(w.status(&younger.run_id).await, RunStatus::Completed);
}

async fn b153_a_cancelled_run_goes_like_any_other(w: &World<'_>) {
    let waiting = w.paused(&["a"]).await;
    w.cancel(&waiting.run.run_id).await;
    let orphan = w.driven().await;
    w.cancel(&orphan.run_id).await;
    let expired = w.paused(&["a"]).await;
    w.advance(OPEN_FOR + LEASE);
    assert!(w.claim().await.is_empty());
    assert_eq!(w.expire().await.ended.len(), 1);
    w.advance(DAY + MARGIN);

    assert_eq!(prune(w, &runs_after(DAY)).await.runs, 3);

    for run_id in [&waiting.run.run_id, &orphan.run_id, &expired.run.run_id] {
        assert_eq!(w.store.run(run_id).await.unwrap(), None);
    }
}

async fn b154_runs_that_are_not_terminal_are_kept_however_old(w: &World<'_>) {
    let ever = |key| NewInterrupt { expires_in: Duration::MAX, ..w.ask(key) };
    let paused = w.paused_run(w.new_run(), vec![ever("a"), ever("b")]).await;
    let parked = w.parked(&["a"]).await;
    let orphan = w.driven().await;
    w.advance(DAY * 1_000);

    let everything = Retention {
        finished_runs: Duration::ZERO,
        checkpoints_per_session: 0,
        checkpoint_age: Duration::ZERO,
        idle_sessions: Duration::ZERO,
    };
    assert_eq!(prune(w, &everything).await.runs, 0);

    assert_eq!(w.status(&paused.run.run_id).await, RunStatus::Suspended);
    assert_eq!(w.status(&parked.run.run_id).await, RunStatus::Parked);
    assert_eq!(w.claim().await[0].run.run_id, orphan.run_id);
    assert_eq!(granted(w.answer(&paused.open[1], "yes").await).answers[0].answer, text("yes"));
    assert_eq!(w.question_status(&paused.open[0]).await, InterruptStatus::Pending);
}

async fn a_repeated_answer_is_served_while_its_run_is_kept(w: &World<'_>) {
    let paused = w.paused(&["a"]).await;
    let claimed = granted(w.answer(&paused.open[0], "yes").await);
    w.complete(&claimed.lease, 1).await;
    w.advance(DAY / 2);
    prune(w, &runs_after(DAY)).await;
    assert_eq!(duplicate(w.answer(&paused.open[0], "yes").await).1.status, RunStatus::Completed);
}

async fn b154_a_session_keeps_its_newest_checkpoints(w: &World<'_>) {
    let (long, short) = (w.session_id(), w.session_id());
    let mut appended = Vec::new();
    for turn in 0..60 {
        appended.push(w.append(&long, &turn.to_string()).await.checkpoint.id);
    }
    w.append(&short, "only").await;

    let pruned = prune(w, &Retention { checkpoints_per_session: 50, ..keep() }).await;

    assert_eq!((pruned.checkpoints, pruned.sessions, pruned.runs), (10, 0, 0));
    let left = w.store.list_checkpoints(&long).await.unwrap();
    assert_eq!(left.iter().map(|c| c.checkpoint.id.clone()).collect::<Vec<_>>(), appended[10..]);
    assert_eq!(left.iter().map(|c| c.turn_index).collect::<Vec<_>>(), (10..60).collect::<Vec<_>>());
    assert!(w.store.checkpoint(&appended[9]).await.unwrap().is_none());
    assert_eq!(w.store.list_checkpoints(&short).await.unwrap().len(), 1);
    assert_eq!(w.append(&long, "next").await.turn_index, 60, "turns count on");
}

async fn checkpoints_go_by_age_but_the_head_stays(w: &World<'_>) {
    let session = w.session_id();
    w.append(&session, "old").await;
    w.advance(DAY);
    w.append(&session, "newer").await;
    let head = w.append(&session, "head").await;
    w.advance(DAY / 2);
    let by_age = |checkpoint_age| Retention { checkpoint_age, ..keep() };

    assert_eq!(prune(w, &by_age(DAY)).await.checkpoints, 1);
    assert_eq!(w.store.list_checkpoints(&session).await.unwrap().len(), 2);
    w.advance(DAY * 100);
    assert_eq!(prune(w, &by_age(DAY)).await.checkpoints, 1);
    assert_eq!(prune(w, &Retention { checkpoints_per_session: 0, ..by_age(Duration::ZERO) }).await.checkpoints, 0);
    assert_eq!(w.store.head(&session).await.unwrap().unwrap().checkpoint, head.checkpoint);
}

async fn an_idle_session_goes_whole(w: &World<'_>) {
    let (idle, busy) = (w.session_id(), w.session_id());
    let mut gone = Vec::new();
    for label in ["one", "two", "three"] {
        gone.push(w.append(&idle, label).await.checkpoint.id);
    }
    w.append(&busy, "one").await;
    w.advance(DAY.saturating_sub(MARGIN));
    w.append(&busy, "two").await;
    assert_eq!(prune(w, &Retention { idle_sessions: DAY, ..keep() }).await, Pruned::default(), "not yet");
    w.advance(MARGIN * 2);

    let pruned = prune(w, &Retention { idle_sessions: DAY, ..keep() }).await;

    assert_eq!(pruned.sessions, 1);
    assert!(w.store.head(&idle).await.unwrap().is_none());
    assert!(w.store.list_checkpoints(&idle).await.unwrap().is_empty());
    for id in gone {
        assert!(w.store.checkpoint(&id).await.unwrap().is_none());
    }
    assert_eq!(w.store.list_checkpoints(&busy).await.unwrap().len(), 2);
}

async fn a_session_with_an_open_question_is_kept(w: &World<'_>) {
    let session = w.session_id();
    let head = w.append(&session, "one").await;
    let ever = NewInterrupt { expires_in: Duration::MAX, ..w.ask("a") };
    let paused = w.paused_run(w.new_run_in(&session), vec![ever]).await;
    w.advance(DAY * 10);

    let pruned = prune(w, &Retention { idle_sessions: DAY, ..keep() }).await;

    assert_eq!((pruned.sessions, pruned.checkpoints, pruned.runs), (0, 0, 0));
    assert_eq!(w.store.head(&session).await.unwrap().unwrap().checkpoint, head.checkpoint);
    granted(w.answer_all(vec![answer(&paused.open[0], "yes")]).await);
}

async fn pruning_goes_in_bounded_batches(w: &World<'_>) {
    let session = w.session_id();
    for turn in 0..7 {
        let lease = w.driven().await;
        w.complete(&lease, 0).await;
        w.append(&session, &turn.to_string()).await;
    }
    w.advance(DAY);
    let retention = Retention { checkpoints_per_session: 1, ..runs_after(DAY / 2) };

    let mut removed = 0;
    for _ in 0..20 {
        let pruned = w.store.prune(&retention, 3).await.unwrap();
        let batch = pruned.runs + pruned.checkpoints + pruned.sessions;
        assert!(batch <= 3, "{pruned:?}");
        removed += batch;
        if !pruned.more {
            break;
        }
    }

    assert_eq!(removed, 7 + 6);
    assert_eq!(w.store.prune(&retention, 3).await.unwrap(), Pruned::default());
}

async fn pruning_concurrently_counts_everything_once(w: &World<'_>) {
    for _ in 0..20 {
        let lease = w.driven().await;
        w.complete(&lease, 0).await;
    }
    w.advance(DAY);
    let stores = w.instances().await;
    let counts = super::world::at_once((0..4).map(|i| {
        let store = stores[i % stores.len()].clone();
        async move {
            let mut runs = 0;
            for _ in 0..100 {
                let pruned = store.prune(&runs_after(DAY / 2), 3).await.unwrap();
                runs += pruned.runs;
                if !pruned.more {
                    return runs;
                }
            }
            panic!("pruning has no end");
        }
    }))
    .await;
    let rest = prune(w, &runs_after(DAY / 2)).await.runs;
    assert_eq!(counts.into_iter().sum::<u64>() + rest, 20);
}

async fn a_pruned_session_starts_again_from_nothing(w: &World<'_>) {
    let session = w.session_id();
    let first = w.append(&session, "one").await.checkpoint;
    w.append(&session, "two").await;
    w.advance(DAY * 2);
    prune(w, &Retention { idle_sessions: DAY, ..keep() }).await;

    let again = w.store.append_checkpoint(&session, first).await.unwrap();

    assert_eq!((again.turn_index, again.parent), (0, None));
    assert_eq!(w.store.list_checkpoints(&session).await.unwrap().len(), 1);
}

async fn b155_many_pauses_and_resumptions_leave_nothing_behind(w: &World<'_>) {
    let chain = chain(w).await;
    w.store.rollback(rollback(w, &chain.asked)).await.unwrap();
    let mut runs = vec![chain.paused.run.run_id.clone()];
    for _ in 0..30 {
        let paused = w.paused_run(w.new_run_in(&chain.session), w.asks(&["a"])).await;
        let claimed = granted(w.answer(&paused.open[0], "yes").await);
        w.complete(&claimed.lease, 1).await;
        runs.push(paused.run.run_id);
    }
    w.advance(OPEN_FOR);
    assert_eq!(w.expire().await.claimed.len(), 1, "the run of the rollback has a default to go on with");
    w.store.cancel(super::world::cancel_request(crate::CancelTarget::Session(chain.session.clone()))).await.unwrap();
    w.advance(LEASE + MARGIN);
    assert!(w.claim().await.is_empty());
    w.advance(DAY * 40);

    let pruned = prune(w, &Retention::default()).await;

    assert_eq!((pruned.runs, pruned.sessions), (32, 1));
    for run_id in runs {
        assert_eq!(w.store.run(&run_id).await.unwrap(), None);
    }
    assert!(w.store.head(&chain.session).await.unwrap().is_none());
    assert!(w.list(in_scope(Scope::session(chain.session.clone()))).await.is_empty());
    for checkpoint in [chain.start, chain.asked, chain.head] {
        assert!(w.store.checkpoint(&checkpoint.checkpoint.id).await.unwrap().is_none());
    }
}
