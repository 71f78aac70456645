//! Taking a session back to an earlier turn.

use super::{
    case::{Case, list},
    chains::{assert_reissued, chain, end, later_pin, reading, rollback},
    outcome::{assert_same, duplicate, error_kind, granted, lease_lost, refusal, rolled_back},
    world::{LEASE, MARGIN, OPEN_FOR, World, bytes, ids, keys, pin, record, text},
};
use crate::{InterruptStatus, Refusal, Reissue, Rollback, RollbackOutcome, RunStatus, StoreErrorKind};

list![
    b157_a_rollback_before_an_answer_asks_again,
    b160_an_answer_to_a_question_from_before_the_rollback_is_refused,
    a_rollback_abandons_later_turns_and_supersedes_their_questions,
    a_rollback_goes_on_with_the_definition_its_snapshot_was_bound_to,
    a_rollback_to_a_turn_without_questions_makes_no_run,
    a_rollback_to_the_head_changes_nothing,
    b161_rolling_back_twice_asks_once,
    turns_after_a_rollback_follow_the_new_head,
    a_rollback_under_a_driver_is_refused,
    a_rollback_cancels_runs_whose_driver_is_gone,
    a_rollback_to_an_expired_question_is_refused,
    a_rollback_with_other_questions_than_those_open_is_refused,
    a_rollback_to_an_unknown_or_abandoned_turn_is_refused,
    a_rollback_with_taken_ids_changes_nothing,
];

async fn b157_a_rollback_before_an_answer_asks_again(w: &World<'_>) {
    let chain = chain(w).await;
    let request = rollback(w, &chain.asked);

    let open = rolled_back(w.store.rollback(request.clone()).await.unwrap());

    assert_eq!((keys(&open), open.len()), (vec!["a", "b"], request.reissue.len()));
    for ((original, reissued), ids) in chain.paused.open.iter().zip(&open).zip(&request.reissue) {
        assert_reissued(original, reissued);
        assert_eq!((&reissued.request_id, &reissued.run_id), (&ids.request_id, &request.new_run_id));
        assert!(reissued.token.matches(&ids.token));
        assert_eq!((&reissued.session_id, reissued.status), (&chain.session, InterruptStatus::Pending));
        assert_same(reissued, &w.question(&reissued.request_id).await);
    }
    assert_eq!(w.open(&request.new_run_id).await, ids(&open));
    assert_eq!(w.status(&request.new_run_id).await, RunStatus::Suspended);
    let claimed = granted(w.answer(&open[0], "no").await);
    assert_eq!((claimed.snapshot.clone(), claimed.entries.len()), (bytes("first pause"), 0));
    let seen: Vec<_> = claimed.answers.iter().map(|a| (a.seq, a.answer.clone())).collect();
    assert_eq!(seen, [(1, text("no"))], "the old answer is not used again");
    assert_eq!(claimed.run.context, chain.paused.run.context);
}

async fn b160_an_answer_to_a_question_from_before_the_rollback_is_refused(w: &World<'_>) {
    let chain = chain(w).await;
    let open = rolled_back(w.store.rollback(rollback(w, &chain.asked)).await.unwrap());

    for stale in &chain.open {
        assert_eq!(refusal(w.answer(stale, "late").await), Refusal::Superseded);
    }
    assert!(matches!(refusal(w.answer(chain.answered(), "no").await), Refusal::Conflict(_)));
    assert_eq!(duplicate(w.answer(chain.answered(), "yes").await).1.status, RunStatus::Cancelled);
    assert_eq!(w.question_status(chain.answered()).await, InterruptStatus::Answered);
    assert_eq!(w.open(&open[0].run_id).await, ids(&open), "none of it reached the new questions");
    granted(w.answer(&open[0], "no").await);
}

async fn a_rollback_abandons_later_turns_and_supersedes_their_questions(w: &World<'_>) {
    let chain = chain(w).await;
    let elsewhere = w.paused(&["a"]).await;
    let newer = w.append(&chain.session, "newest").await;

    let outcome = w.store.rollback(rollback(w, &chain.asked)).await.unwrap();

    let RollbackOutcome::Done { head, abandoned, superseded, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(head.checkpoint, chain.asked.checkpoint);
    assert_eq!((head.turn_index, head.abandoned), (1, false));
    let gone: Vec<_> = abandoned.iter().map(|checkpoint| &checkpoint.checkpoint).collect();
    assert_eq!(gone, [&newer.checkpoint, &chain.head.checkpoint], "newest first");
    assert!(abandoned.iter().all(|checkpoint| checkpoint.abandoned));
    let mut closed = ids(&superseded);
    closed.sort();
    let mut expected = ids(&chain.open);
    expected.sort();
    assert_eq!(closed, expected);
    assert!(superseded.iter().all(|question| question.status == InterruptStatus::Superseded));

    let listed = w.store.list_checkpoints(&chain.session).await.unwrap();
    assert_eq!(listed.iter().map(|c| c.turn_index).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(w.store.head(&chain.session).await.unwrap().unwrap().checkpoint, chain.asked.checkpoint);
    for checkpoint in [&newer, &chain.head] {
        assert!(w.store.checkpoint(&checkpoint.checkpoint.id).await.unwrap().is_none());
    }
    assert_eq!(w.status(&chain.paused.run.run_id).await, RunStatus::Cancelled);
    assert_eq!(w.open(&elsewhere.run.run_id).await, ids(&elsewhere.open));
}

async fn a_rollback_goes_on_with_the_definition_its_snapshot_was_bound_to(w: &World<'_>) {
    let chain = chain(w).await;
    assert_eq!(w.run(&chain.paused.run.run_id).await.workflow, later_pin());
    let request = rollback(w, &chain.asked);
    w.store.rollback(request.clone()).await.unwrap();
    assert_eq!(w.run(&request.new_run_id).await.workflow, pin());
}

async fn a_rollback_to_a_turn_without_questions_makes_no_run(w: &World<'_>) {
    let chain = chain(w).await;
    let request = rollback(w, &chain.start);
    assert!(request.reissue.is_empty());

    let open = rolled_back(w.store.rollback(request.clone()).await.unwrap());

    assert!(open.is_empty());
    assert_eq!(w.store.run(&request.new_run_id).await.unwrap(), None);
    assert_eq!(w.store.head(&chain.session).await.unwrap().unwrap().checkpoint, chain.start.checkpoint);
    assert_eq!(w.status(&chain.paused.run.run_id).await, RunStatus::Cancelled);
    assert_eq!(w.question_status(&chain.open[0]).await, InterruptStatus::Superseded);
}

async fn a_rollback_to_the_head_changes_nothing(w: &World<'_>) {
    let chain = chain(w).await;
    let before = reading(w, &chain).await;
    let request = rollback(w, &chain.head);

    let outcome = w.store.rollback(request.clone()).await.unwrap();

    let RollbackOutcome::Done { head, abandoned, superseded, interrupts } = outcome else { panic!("{outcome:?}") };
    assert_eq!(head.checkpoint, chain.head.checkpoint);
    assert!(abandoned.is_empty() && superseded.is_empty());
    assert_eq!(ids(&interrupts), ids(&chain.open), "the ones open already");
    assert_eq!(reading(w, &chain).await, before);
    assert_eq!(w.store.run(&request.new_run_id).await.unwrap(), None);
    assert!(w.store.interrupt(&request.reissue[0].request_id).await.unwrap().is_none());
    granted(w.answer(&chain.open[0], "yes").await);
}

async fn b161_rolling_back_twice_asks_once(w: &World<'_>) {
    let chain = chain(w).await;
    let open = rolled_back(w.store.rollback(rollback(w, &chain.asked)).await.unwrap());
    let head = w.store.head(&chain.session).await.unwrap().unwrap();
    let again = rolled_back(w.store.rollback(rollback(w, &head)).await.unwrap());
    assert_eq!(ids(&again), ids(&open));

    let claimed = granted(w.answer(&open[0], "no").await);
    end(w, claimed, "another way").await;
    let request = Rollback { reissue: w.reissue(&chain.asked.interrupts), ..rollback(w, &chain.asked) };
    let third = rolled_back(w.store.rollback(request).await.unwrap());
    assert_eq!((keys(&third), third[0].expires_at), (vec!["a", "b"], chain.paused.open[0].expires_at));
    granted(w.answer(&third[0], "maybe").await);
}

async fn turns_after_a_rollback_follow_the_new_head(w: &World<'_>) {
    let chain = chain(w).await;
    w.store.rollback(rollback(w, &chain.start)).await.unwrap();

    let next = w.append(&chain.session, "another way").await;

    assert_eq!((next.turn_index, next.parent), (1, Some(chain.start.checkpoint.id)));
    let listed = w.store.list_checkpoints(&chain.session).await.unwrap();
    let turns: Vec<_> = listed.iter().map(|c| (c.turn_index, c.checkpoint.id.clone())).collect();
    assert_eq!(turns[1], (1, next.checkpoint.id));
    assert_eq!(turns.len(), 2);
}

async fn a_rollback_under_a_driver_is_refused(w: &World<'_>) {
    let chain = chain(w).await;
    let claimed = granted(w.answer(&chain.open[0], "yes").await);
    let before = reading(w, &chain).await;

    let outcome = w.store.rollback(rollback(w, &chain.start)).await.unwrap();

    assert!(matches!(&outcome, RollbackOutcome::Driven(run) if *run == claimed.run.run_id), "{outcome:?}");
    assert_eq!(reading(w, &chain).await, before);
    w.store.record(record(&claimed.lease)).await.unwrap();
}

async fn a_rollback_cancels_runs_whose_driver_is_gone(w: &World<'_>) {
    let chain = chain(w).await;
    let claimed = granted(w.answer(&chain.open[0], "yes").await);
    w.advance(LEASE + MARGIN);

    rolled_back(w.store.rollback(rollback(w, &chain.start)).await.unwrap());

    assert_eq!(w.status(&claimed.run.run_id).await, RunStatus::Cancelled);
    assert_eq!(w.question_status(&chain.open[1]).await, InterruptStatus::Superseded);
    assert_eq!(w.question_status(&chain.open[0]).await, InterruptStatus::Answered);
    lease_lost(w.store.record(record(&claimed.lease)).await);
}

async fn a_rollback_to_an_expired_question_is_refused(w: &World<'_>) {
    let chain = chain(w).await;
    w.advance(OPEN_FOR.saturating_sub(MARGIN * 2));
    assert!(w.store.now().await.unwrap() >= chain.paused.open[0].expires_at, "the very moment");
    let before = reading(w, &chain).await;
    let request = rollback(w, &chain.asked);

    let outcome = w.store.rollback(request.clone()).await.unwrap();

    let RollbackOutcome::Expired(expired) = outcome else { panic!("{outcome:?}") };
    assert!(ids(&chain.asked.interrupts).contains(&expired));
    assert_eq!(reading(w, &chain).await, before);
    assert_eq!(w.store.run(&request.new_run_id).await.unwrap(), None);
    rolled_back(w.store.rollback(rollback(w, &chain.start)).await.unwrap());
}

async fn a_rollback_with_other_questions_than_those_open_is_refused(w: &World<'_>) {
    let chain = chain(w).await;
    let before = reading(w, &chain).await;
    let right = rollback(w, &chain.asked);
    let other = Reissue { from: chain.open[1].request_id.clone(), ..right.reissue[0].clone() };
    let more = right.reissue.iter().cloned().chain([other.clone()]).collect();
    let twice = vec![right.reissue[0].clone(), right.reissue[0].clone()];
    let thrice = vec![right.reissue[0].clone(), right.reissue[1].clone(), right.reissue[1].clone()];
    for reissue in [Vec::new(), right.reissue[..1].to_vec(), vec![right.reissue[1].clone(), other], twice, thrice, more]
    {
        let outcome = w.store.rollback(Rollback { reissue, ..right.clone() }).await.unwrap();
        assert!(matches!(outcome, RollbackOutcome::Mismatched), "{outcome:?}");
    }
    let for_nothing = Rollback { reissue: right.reissue.clone(), ..rollback(w, &chain.start) };
    assert!(matches!(w.store.rollback(for_nothing).await.unwrap(), RollbackOutcome::Mismatched));
    assert_eq!(reading(w, &chain).await, before);
    let reversed = right.reissue.iter().rev().cloned().collect();
    let open = rolled_back(w.store.rollback(Rollback { reissue: reversed, ..right }).await.unwrap());
    assert_eq!(keys(&open), ["a", "b"], "their order in the request does not matter");
}

async fn a_rollback_to_an_unknown_or_abandoned_turn_is_refused(w: &World<'_>) {
    let chain = chain(w).await;
    let unknown = Rollback { checkpoint_id: w.checkpoint_id(), ..rollback(w, &chain.start) };
    assert!(matches!(w.store.rollback(unknown).await.unwrap(), RollbackOutcome::Unknown));
    w.store.rollback(rollback(w, &chain.start)).await.unwrap();
    for abandoned in [&chain.asked, &chain.head] {
        assert!(matches!(w.store.rollback(rollback(w, abandoned)).await.unwrap(), RollbackOutcome::Unknown));
    }
}

async fn a_rollback_with_taken_ids_changes_nothing(w: &World<'_>) {
    let chain = chain(w).await;
    let before = reading(w, &chain).await;
    let right = rollback(w, &chain.asked);
    let taken_run = Rollback { new_run_id: chain.paused.run.run_id.clone(), ..right.clone() };
    let mut taken_question = right.clone();
    taken_question.reissue[1].request_id = chain.open[0].request_id.clone();
    for request in [taken_run, taken_question] {
        assert_eq!(error_kind(w.store.rollback(request).await), StoreErrorKind::AlreadyExists);
        assert_eq!(reading(w, &chain).await, before);
    }
    rolled_back(w.store.rollback(right).await.unwrap());
}
