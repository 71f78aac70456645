//! A session's chain of checkpoints.

use super::{
    case::{Case, list},
    outcome::{assert_same, error_kind, granted},
    world::{MARGIN, World, at_once, bytes, driver, finish, saved, suspend},
};
use crate::{CheckpointRecord, Finish, InterruptStatus, RunRef, StoreErrorKind, Suspend, TerminalStatus};

list![
    checkpoints_follow_each_other_from_turn_zero,
    a_checkpoint_reads_back_as_it_was_appended,
    a_suspension_appends_a_checkpoint_with_what_was_open,
    a_checkpoint_keeps_its_questions_as_they_were,
    a_finish_appends_a_checkpoint_without_questions,
    a_taken_checkpoint_id_is_refused_in_every_session,
    b096_concurrent_appends_make_one_chain,
    sessions_have_chains_of_their_own,
];

/// Everything of a checkpoint that two readings of it must agree on.
fn same_checkpoint(left: &CheckpointRecord, right: &CheckpointRecord) {
    assert_eq!(format!("{left:?}"), format!("{right:?}"));
}

async fn checkpoints_follow_each_other_from_turn_zero(w: &World<'_>) {
    let session = w.session_id();
    assert!(w.store.head(&session).await.unwrap().is_none());
    let mut appended = Vec::new();
    for label in ["session start", "one", "two"] {
        appended.push(w.append(&session, label).await);
        same_checkpoint(&w.store.head(&session).await.unwrap().unwrap(), appended.last().unwrap());
        w.advance(MARGIN);
    }

    let turns: Vec<_> = appended.iter().map(|checkpoint| checkpoint.turn_index).collect();
    let parents: Vec<_> = appended.iter().map(|checkpoint| checkpoint.parent.clone()).collect();
    assert_eq!(turns, [0, 1, 2]);
    let first_two = appended[..2].iter().map(|checkpoint| Some(checkpoint.checkpoint.id.clone()));
    assert_eq!(parents, std::iter::once(None).chain(first_two).collect::<Vec<_>>());
    let listed = w.store.list_checkpoints(&session).await.unwrap();
    assert_eq!(listed.len(), 3);
    for (left, right) in listed.iter().zip(&appended) {
        same_checkpoint(left, right);
    }
}

async fn a_checkpoint_reads_back_as_it_was_appended(w: &World<'_>) {
    let session = w.session_id();
    let mut full = w.new_checkpoint("a turn");
    full.nodes = vec!["draft".to_owned(), "draft".to_owned(), String::new(), "📝 \"n\"".to_owned()];
    full.structured_stream_ids = vec!["s2".to_owned(), "s1".to_owned()];
    let mut bare = w.new_checkpoint("");
    (bare.label, bare.workflow_version) = (None, None);
    (bare.nodes, bare.structured_stream_ids, bare.state) = (Vec::new(), Vec::new(), bytes(""));
    for checkpoint in [full, bare] {
        let before = w.store.now().await.unwrap();
        let appended = w.store.append_checkpoint(&session, checkpoint.clone()).await.unwrap();
        assert_eq!((&appended.checkpoint, &appended.session_id), (&checkpoint, &session));
        assert!(appended.created_at >= before && !appended.abandoned);
        assert_eq!((&appended.parent_session, &appended.forked_from, &appended.run_id), (&None, &None, &None));
        assert_eq!((appended.snapshot.as_ref(), appended.interrupts.len()), (None, 0));
        for store in w.instances().await {
            same_checkpoint(&store.checkpoint(&checkpoint.id).await.unwrap().unwrap(), &appended);
        }
    }
}

async fn a_suspension_appends_a_checkpoint_with_what_was_open(w: &World<'_>) {
    let run = w.new_run();
    let lease = w.driven_run(run.clone()).await;
    w.published(&lease, w.asks(&["a"])).await;
    let checkpoint = w.new_checkpoint("turn");
    let request = Suspend { checkpoint: Some(checkpoint.clone()), ..suspend(RunRef::Held(lease), w.asks(&["b"])) };

    let open = saved(w.store.suspend(request).await.unwrap());

    let head = w.store.head(&run.session_id).await.unwrap().unwrap();
    assert_eq!((&head.checkpoint, head.turn_index, &head.run_id), (&checkpoint, 0, &Some(run.run_id)));
    assert_eq!(head.snapshot, Some(bytes("suspended")));
    assert_eq!((head.interrupts.len(), open.len()), (2, 2));
    for (left, right) in head.interrupts.iter().zip(&open) {
        assert_same(left, right);
    }
}

async fn a_checkpoint_keeps_its_questions_as_they_were(w: &World<'_>) {
    let run = w.new_run();
    let request = Suspend {
        checkpoint: Some(w.new_checkpoint("turn")),
        ..suspend(RunRef::New(run.clone(), driver()), w.asks(&["a", "b"]))
    };
    let open = saved(w.store.suspend(request).await.unwrap());
    let before = w.store.head(&run.session_id).await.unwrap().unwrap();
    let claimed = granted(w.answer(&open[0], "yes").await);
    w.complete(&claimed.lease, 1).await;

    let after = w.store.head(&run.session_id).await.unwrap().unwrap();

    same_checkpoint(&before, &after);
    assert!(after.interrupts.iter().all(|q| q.status == InterruptStatus::Pending && q.answer.is_none()));
}

async fn a_finish_appends_a_checkpoint_without_questions(w: &World<'_>) {
    let run = w.new_run();
    let first = w.append(&run.session_id, "session start").await.checkpoint;
    let lease = w.driven_run(run.clone()).await;
    w.published(&lease, w.asks(&["a"])).await;
    let checkpoint = w.new_checkpoint("turn");
    let request =
        Finish { checkpoint: Some(checkpoint.clone()), ..finish(RunRef::Held(lease), TerminalStatus::Completed) };
    w.store.finish(request).await.unwrap();

    let head = w.store.head(&run.session_id).await.unwrap().unwrap();
    assert_eq!((head.checkpoint, head.turn_index, head.parent), (checkpoint, 1, Some(first.id)));
    assert_eq!((head.run_id, head.snapshot, head.interrupts.len()), (Some(run.run_id), None, 0));
}

async fn a_taken_checkpoint_id_is_refused_in_every_session(w: &World<'_>) {
    let session = w.session_id();
    let taken = w.append(&session, "first").await;
    let again = crate::NewCheckpoint { label: Some("again".to_owned()), ..taken.checkpoint.clone() };
    for target in [&session, &w.session_id()] {
        let refused = w.store.append_checkpoint(target, again.clone()).await;
        assert_eq!(error_kind(refused), StoreErrorKind::AlreadyExists);
    }
    assert_eq!(w.store.list_checkpoints(&session).await.unwrap().len(), 1);
    same_checkpoint(&w.store.checkpoint(&taken.checkpoint.id).await.unwrap().unwrap(), &taken);
}

async fn b096_concurrent_appends_make_one_chain(w: &World<'_>) {
    let stores = w.instances().await;
    let session = w.session_id();
    at_once((0..24).map(|i| {
        let (store, session) = (stores[i % stores.len()].clone(), session.clone());
        let checkpoint = w.new_checkpoint(&i.to_string());
        async move { store.append_checkpoint(&session, checkpoint).await.unwrap() }
    }))
    .await;

    let listed = w.store.list_checkpoints(&session).await.unwrap();
    assert_eq!(listed.iter().map(|c| c.turn_index).collect::<Vec<_>>(), (0..24).collect::<Vec<_>>());
    for pair in listed.windows(2) {
        assert_eq!(pair[1].parent.as_ref(), Some(&pair[0].checkpoint.id), "every acknowledged one is reachable");
    }
}

async fn sessions_have_chains_of_their_own(w: &World<'_>) {
    let (first, second) = (w.session_id(), w.session_id());
    w.append(&first, "one").await;
    let other = w.append(&second, "one").await;
    w.append(&first, "two").await;
    assert_eq!((other.turn_index, &other.parent), (0, &None));
    same_checkpoint(&w.store.head(&second).await.unwrap().unwrap(), &other);
    assert_eq!(w.store.list_checkpoints(&first).await.unwrap().len(), 2);
}
