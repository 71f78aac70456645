//! Runs that follow a turn of their session, and turns that were taken back.

use std::{sync::Arc, time::Duration};

use super::{
    case::{Case, list},
    outcome::{error_kind, rolled_back},
    world::{World, bytes, driver, finish, opening, saved, suspend},
};
use crate::{
    CheckpointRecord, Finish, NewRun, OpenRun, Retention, Rollback, RunRef, RunStatus, Store, StoreError,
    StoreErrorKind, Suspend, TerminalStatus,
};

list![
    a_run_may_follow_any_turn_that_was_not_taken_back,
    a_run_that_follows_a_turn_which_was_taken_back_is_refused,
    a_turn_in_the_place_of_one_that_was_taken_back_does_not_stand_for_it,
    a_run_may_follow_a_turn_that_retention_removed,
    a_rollback_and_a_run_that_follows_what_it_takes_back_exclude_each_other,
];

fn after(w: &World<'_>, turn: &CheckpointRecord) -> NewRun {
    NewRun { follows: Some(turn.turn()), ..w.new_run_in(&turn.session_id) }
}

/// Creates a run by each transition that can, with all that it may bring; gives what became of it.
async fn create(w: &World<'_>, place: usize, run: NewRun) -> Result<(), StoreError> {
    let (checkpoint, chunks) = (Some(w.new_checkpoint("turn")), vec![bytes("chunk")]);
    let new = RunRef::New(run.clone(), driver());
    match place {
        0 => w.store.open(opening(run)).await.map(drop),
        1 => w.store.open(OpenRun { chunks, ..opening(run) }).await.map(drop),
        2 => w.store.suspend(suspend(new, w.asks(&["a"]))).await.map(drop),
        3 => w.store.suspend(Suspend { chunks, checkpoint, ..suspend(new, w.asks(&["a"])) }).await.map(drop),
        4 => w.store.finish(finish(new, TerminalStatus::Failed)).await.map(drop),
        _ => {
            let end = finish(new, TerminalStatus::Completed);
            w.store.finish(Finish { chunks, checkpoint, ..end }).await.map(drop)
        }
    }
}

const PLACES: usize = 6;

fn back_to(w: &World<'_>, checkpoint: &CheckpointRecord) -> Rollback {
    Rollback { checkpoint_id: checkpoint.checkpoint.id.clone(), new_run_id: w.run_id(), reissue: Vec::new() }
}

async fn a_run_may_follow_any_turn_that_was_not_taken_back(w: &World<'_>) {
    for place in 0..PLACES {
        let session = w.session_id();
        let start = w.append(&session, "session start").await;
        let head = w.append(&session, "turn").await;
        for turn in [&head, &start] {
            let run = after(w, turn);
            create(w, place, run.clone()).await.unwrap();
            assert_eq!(w.run(&run.run_id).await.session_id, session);
        }
    }
}

async fn a_run_that_follows_a_turn_which_was_taken_back_is_refused(w: &World<'_>) {
    for place in 0..PLACES {
        let session = w.session_id();
        let start = w.append(&session, "session start").await;
        let (first, second) = (w.append(&session, "first").await, w.append(&session, "second").await);
        assert!(rolled_back(w.store.rollback(back_to(w, &start)).await.unwrap()).is_empty());

        for turn in [&first, &second] {
            let run = after(w, turn);
            assert_eq!(error_kind(create(w, place, run.clone()).await), StoreErrorKind::Abandoned, "{place}");
            for store in w.instances().await {
                assert!(store.run(&run.run_id).await.unwrap().is_none());
                assert!(store.chunks(&run.run_id, 0, 1).await.unwrap().is_none());
            }
            let again = NewRun { follows: Some(start.turn()), ..run };
            create(w, 0, again).await.unwrap();
        }
        assert_eq!(w.store.head(&session).await.unwrap().unwrap().checkpoint, start.checkpoint);
    }
}

async fn a_turn_in_the_place_of_one_that_was_taken_back_does_not_stand_for_it(w: &World<'_>) {
    let session = w.session_id();
    let start = w.append(&session, "session start").await;
    let gone = w.append(&session, "one way").await;
    w.store.rollback(back_to(w, &start)).await.unwrap();
    let other = w.append(&session, "another way").await;
    assert_eq!(gone.turn_index, other.turn_index);
    w.append(&session, "and on").await;
    for place in 0..PLACES {
        assert_eq!(error_kind(create(w, place, after(w, &gone)).await), StoreErrorKind::Abandoned);
    }
    create(w, 2, after(w, &other)).await.unwrap();
}

async fn a_run_may_follow_a_turn_that_retention_removed(w: &World<'_>) {
    for place in 0..PLACES {
        let session = w.session_id();
        let start = w.append(&session, "session start").await;
        w.append(&session, "first").await;
        w.append(&session, "second").await;
        let few = Retention { checkpoints_per_session: 1, ..Retention::default() };
        while w.store.prune(&few, 100).await.unwrap().more {}
        assert!(w.store.checkpoint(&start.checkpoint.id).await.unwrap().is_none());
        create(w, place, after(w, &start)).await.unwrap();
    }
    let session = w.session_id();
    let start = w.append(&session, "session start").await;
    w.advance(Duration::from_mins(1));
    let none = Retention { idle_sessions: Duration::from_secs(1), ..Retention::default() };
    while w.store.prune(&none, 100).await.unwrap().more {}
    assert!(w.store.head(&session).await.unwrap().is_none());
    create(w, 3, after(w, &start)).await.unwrap();
}

async fn a_rollback_and_a_run_that_follows_what_it_takes_back_exclude_each_other(w: &World<'_>) {
    let stores = w.instances().await;
    for round in 0..12 {
        let session = w.session_id();
        let start = w.append(&session, "session start").await;
        let turn = w.append(&session, "turn").await;
        let (run, back) = (after(w, &turn), back_to(w, &start));
        let pause = suspend(RunRef::New(run.clone(), driver()), w.asks(&["a"]));
        let (one, other): (Arc<dyn Store>, _) = (stores[0].clone(), stores[stores.len() - 1].clone());
        let pausing = async move { one.suspend(pause).await.map(|outcome| saved(outcome).len()) };
        let going = async move { other.rollback(back).await.map(|outcome| rolled_back(outcome).len()) };
        let (paused, back) = if round % 2 == 0 {
            let paused = tokio::spawn(pausing);
            (paused, tokio::spawn(going))
        } else {
            let back = tokio::spawn(going);
            (tokio::spawn(pausing), back)
        };
        let (paused, back) = (paused.await.unwrap(), back.await.unwrap());
        assert_eq!(back.unwrap(), 0);
        match paused {
            // It came before, so it was taken back too.
            Ok(_) => assert_eq!(w.status(&run.run_id).await, RunStatus::Cancelled),
            Err(error) => {
                assert_eq!(error.kind(), StoreErrorKind::Abandoned);
                assert!(w.store.run(&run.run_id).await.unwrap().is_none());
            }
        }
    }
}
