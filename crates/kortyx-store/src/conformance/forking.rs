//! Starting a new session from a turn of another.

use super::{
    case::{Case, list},
    chains::{assert_reissued, chain, end, fork, reading, rollback},
    outcome::{assert_same, error_kind, forked, granted, rolled_back},
    world::{MARGIN, OPEN_FOR, World, at_once, bytes, ids, in_scope, keys, pin, text},
};
use crate::{Fork, ForkOutcome, InterruptStatus, RunStatus, Scope, StoreErrorKind};

list![
    a_fork_copies_the_turn_and_its_open_questions,
    b157_a_fork_and_its_original_are_answered_apart,
    b039_two_forks_of_one_turn_are_independent,
    b157_answers_to_a_copy_are_counted_on_from_what_its_snapshot_holds,
    a_fork_of_a_turn_without_questions_makes_no_run,
    a_fork_of_the_head_leaves_the_original_waiting,
    a_fork_of_a_fork_starts_from_its_own_copy,
    a_fork_survives_the_rollback_of_its_original,
    a_fork_of_a_driven_session_does_not_disturb_its_driver,
    a_fork_into_an_existing_session_is_refused,
    a_fork_of_an_expired_question_is_refused,
    a_fork_with_other_questions_than_those_open_is_refused,
    a_fork_of_an_unknown_or_abandoned_turn_is_refused,
    a_fork_with_taken_ids_changes_nothing,
    of_concurrent_forks_into_one_session_one_succeeds,
];

async fn a_fork_copies_the_turn_and_its_open_questions(w: &World<'_>) {
    let chain = chain(w).await;
    let before = reading(w, &chain).await;
    let request = fork(w, &chain.asked);

    let outcome = w.store.fork(request.clone()).await.unwrap();

    let ForkOutcome::Done { checkpoint, interrupts } = outcome else { panic!("{outcome:?}") };
    assert_eq!((&checkpoint.session_id, checkpoint.turn_index), (&request.new_session_id, 0));
    assert_eq!(checkpoint.checkpoint.id, request.new_checkpoint_id);
    assert_eq!(checkpoint.parent_session.as_ref(), Some(&chain.session));
    assert_eq!(checkpoint.forked_from.as_ref(), Some(&chain.asked.checkpoint.id));
    assert_eq!(checkpoint.checkpoint.state, chain.asked.checkpoint.state);
    assert_eq!(checkpoint.checkpoint.workflow, chain.asked.checkpoint.workflow);
    assert_eq!((&checkpoint.run_id, checkpoint.abandoned), (&Some(request.new_run_id.clone()), false));
    assert_eq!(checkpoint.snapshot, Some(bytes("first pause")));
    assert_eq!(ids(&checkpoint.interrupts), ids(&interrupts));
    for ((original, copy), new) in chain.paused.open.iter().zip(&interrupts).zip(&request.reissue) {
        assert_reissued(original, copy);
        assert_eq!((&copy.request_id, &copy.run_id), (&new.request_id, &request.new_run_id));
        assert_eq!((&copy.session_id, copy.status), (&request.new_session_id, InterruptStatus::Pending));
        assert_same(copy, &w.question(&copy.request_id).await);
    }
    let run = w.run(&request.new_run_id).await;
    assert_eq!(
        (run.status, run.workflow, run.session_id),
        (RunStatus::Suspended, pin(), request.new_session_id.clone())
    );
    assert_eq!(run.context, chain.paused.run.context);
    assert_eq!(w.store.list_checkpoints(&request.new_session_id).await.unwrap().len(), 1);
    assert_eq!(reading(w, &chain).await, before, "the original is untouched");
}

async fn b157_a_fork_and_its_original_are_answered_apart(w: &World<'_>) {
    let chain = chain(w).await;
    let open = forked(w.store.fork(fork(w, &chain.asked)).await.unwrap());

    let claimed = granted(w.answer(&open[0], "no").await);

    assert_eq!((claimed.snapshot.clone(), claimed.answers.len()), (bytes("first pause"), 1));
    assert_eq!(claimed.answers[0].answer, text("no"));
    let session = claimed.run.session_id.clone();
    let head = end(w, claimed, "another way").await;
    assert_eq!((head.session_id, head.turn_index), (session, 1));
    assert_eq!(w.question(&chain.answered().request_id).await.answer, Some(text("yes")));
    assert_eq!(w.open(&chain.paused.run.run_id).await, ids(&chain.open));
    assert_eq!(granted(w.answer(&chain.open[0], "yes").await).snapshot, bytes("second pause"));
}

async fn b039_two_forks_of_one_turn_are_independent(w: &World<'_>) {
    let chain = chain(w).await;
    let first = forked(w.store.fork(fork(w, &chain.asked)).await.unwrap());
    let second = forked(w.store.fork(fork(w, &chain.asked)).await.unwrap());

    let claimed = granted(w.answer(&first[0], "one").await);
    assert_eq!(w.open(&second[0].run_id).await, ids(&second), "an answer to a copy is not one to the other");
    w.complete(&claimed.lease, 1).await;
    let claimed = granted(w.answer(&second[0], "two").await);
    assert_eq!((claimed.answers.len(), claimed.answers[0].answer.clone()), (1, text("two")));
}

async fn b157_answers_to_a_copy_are_counted_on_from_what_its_snapshot_holds(w: &World<'_>) {
    let chain = chain(w).await;
    let forked = forked(w.store.fork(fork(w, &chain.head)).await.unwrap());
    w.append(&chain.session, "newer").await;
    let reopened = rolled_back(w.store.rollback(rollback(w, &chain.head)).await.unwrap());

    for copy in [forked, reopened] {
        let claimed = granted(w.answer(&copy[0], "no").await);
        // The snapshot holds answer 1, so its driver would take another number 1 for known, and drop it.
        assert_eq!((claimed.snapshot, claimed.run.answers), (bytes("second pause"), 2));
        assert_eq!(claimed.answers.iter().map(|given| given.seq).collect::<Vec<_>>(), [2]);
    }
}

async fn a_fork_of_a_turn_without_questions_makes_no_run(w: &World<'_>) {
    let chain = chain(w).await;
    let request = fork(w, &chain.start);
    let outcome = w.store.fork(request.clone()).await.unwrap();
    let ForkOutcome::Done { checkpoint, interrupts } = outcome else { panic!("{outcome:?}") };
    assert!(interrupts.is_empty() && checkpoint.snapshot.is_none());
    assert_eq!(w.store.run(&request.new_run_id).await.unwrap(), None);
    let next = w.append(&request.new_session_id, "next").await;
    assert_eq!((next.turn_index, next.parent), (1, Some(request.new_checkpoint_id)));
}

async fn a_fork_of_the_head_leaves_the_original_waiting(w: &World<'_>) {
    let chain = chain(w).await;
    let before = reading(w, &chain).await;
    let request = fork(w, &chain.head);
    let open = forked(w.store.fork(request.clone()).await.unwrap());
    assert_eq!(keys(&open), ["b", "c"]);
    assert_eq!(reading(w, &chain).await, before);
    let by_session = w.list(in_scope(Scope::session(request.new_session_id))).await;
    assert_eq!(ids(&by_session), ids(&open));
}

async fn a_fork_of_a_fork_starts_from_its_own_copy(w: &World<'_>) {
    let chain = chain(w).await;
    let first = fork(w, &chain.asked);
    let copies = forked(w.store.fork(first.clone()).await.unwrap());
    let head = w.store.head(&first.new_session_id).await.unwrap().unwrap();
    let second = fork(w, &head);

    let open = forked(w.store.fork(second.clone()).await.unwrap());

    for (copy, again) in copies.iter().zip(&open) {
        assert_reissued(copy, again);
    }
    let checkpoint = w.store.checkpoint(&second.new_checkpoint_id).await.unwrap().unwrap();
    assert_eq!(checkpoint.parent_session, Some(first.new_session_id));
    assert_eq!(checkpoint.forked_from, Some(first.new_checkpoint_id));
    assert_eq!(granted(w.answer(&open[0], "no").await).snapshot, bytes("first pause"));
}

async fn a_fork_survives_the_rollback_of_its_original(w: &World<'_>) {
    let chain = chain(w).await;
    let open = forked(w.store.fork(fork(w, &chain.head)).await.unwrap());
    w.store.rollback(rollback(w, &chain.start)).await.unwrap();
    assert_eq!(w.open(&open[0].run_id).await, ids(&open));
    assert_eq!(granted(w.answer(&open[0], "yes").await).snapshot, bytes("second pause"));
}

async fn a_fork_of_a_driven_session_does_not_disturb_its_driver(w: &World<'_>) {
    let chain = chain(w).await;
    let claimed = granted(w.answer(&chain.open[0], "yes").await);
    let open = forked(w.store.fork(fork(w, &chain.asked)).await.unwrap());
    assert_eq!(open.len(), 2);
    w.complete(&claimed.lease, 2).await;
}

async fn a_fork_into_an_existing_session_is_refused(w: &World<'_>) {
    let chain = chain(w).await;
    let before = reading(w, &chain).await;
    let other = w.session_id();
    w.append(&other, "first").await;
    for session in [chain.session.clone(), other] {
        let request = Fork { new_session_id: session, ..fork(w, &chain.asked) };
        assert!(matches!(w.store.fork(request.clone()).await.unwrap(), ForkOutcome::SessionExists));
        assert_eq!(w.store.run(&request.new_run_id).await.unwrap(), None);
    }
    assert_eq!(reading(w, &chain).await, before);
}

async fn a_fork_of_an_expired_question_is_refused(w: &World<'_>) {
    let chain = chain(w).await;
    w.advance(OPEN_FOR.saturating_sub(MARGIN * 2));
    assert!(w.store.now().await.unwrap() >= chain.paused.open[0].expires_at, "the very moment");
    let request = fork(w, &chain.asked);
    let outcome = w.store.fork(request.clone()).await.unwrap();
    let ForkOutcome::Expired(expired) = outcome else { panic!("{outcome:?}") };
    assert!(ids(&chain.asked.interrupts).contains(&expired));
    assert!(w.store.head(&request.new_session_id).await.unwrap().is_none());
    forked(w.store.fork(fork(w, &chain.start)).await.unwrap());
}

async fn a_fork_with_other_questions_than_those_open_is_refused(w: &World<'_>) {
    let chain = chain(w).await;
    let right = fork(w, &chain.asked);
    let wrong = fork(w, &chain.head).reissue;
    for reissue in [Vec::new(), right.reissue[1..].to_vec(), wrong] {
        let outcome = w.store.fork(Fork { reissue, ..right.clone() }).await.unwrap();
        assert!(matches!(outcome, ForkOutcome::Mismatched), "{outcome:?}");
    }
    assert!(w.store.head(&right.new_session_id).await.unwrap().is_none());
    forked(w.store.fork(right).await.unwrap());
}

async fn a_fork_of_an_unknown_or_abandoned_turn_is_refused(w: &World<'_>) {
    let chain = chain(w).await;
    let unknown = Fork { checkpoint_id: w.checkpoint_id(), ..fork(w, &chain.start) };
    assert!(matches!(w.store.fork(unknown).await.unwrap(), ForkOutcome::Unknown));
    w.store.rollback(rollback(w, &chain.start)).await.unwrap();
    assert!(matches!(w.store.fork(fork(w, &chain.head)).await.unwrap(), ForkOutcome::Unknown));
}

async fn a_fork_with_taken_ids_changes_nothing(w: &World<'_>) {
    let chain = chain(w).await;
    let right = fork(w, &chain.asked);
    let taken_run = Fork { new_run_id: chain.paused.run.run_id.clone(), ..right.clone() };
    let taken_turn = Fork { new_checkpoint_id: chain.start.checkpoint.id.clone(), ..right.clone() };
    let mut taken_question = right.clone();
    taken_question.reissue[0].request_id = chain.open[0].request_id.clone();
    for request in [taken_run, taken_turn, taken_question] {
        assert_eq!(error_kind(w.store.fork(request).await), StoreErrorKind::AlreadyExists);
        assert!(w.store.head(&right.new_session_id).await.unwrap().is_none());
    }
    forked(w.store.fork(right).await.unwrap());
}

async fn of_concurrent_forks_into_one_session_one_succeeds(w: &World<'_>) {
    let chain = chain(w).await;
    let stores = w.instances().await;
    let session = w.session_id();
    let outcomes = at_once((0..8).map(|i| {
        let store = stores[i % stores.len()].clone();
        let request = Fork { new_session_id: session.clone(), ..fork(w, &chain.asked) };
        async move { store.fork(request).await.unwrap() }
    }))
    .await;
    let done = outcomes.iter().filter(|outcome| matches!(outcome, ForkOutcome::Done { .. })).count();
    let refused = outcomes.iter().filter(|outcome| matches!(outcome, ForkOutcome::SessionExists)).count();
    assert_eq!((done, refused), (1, 7));
    assert_eq!(w.list(in_scope(Scope::session(session))).await.len(), 2);
}
