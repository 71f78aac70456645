//! A session with a past: what rollbacks and forks start from.

use bytes::Bytes;
use kortyx_protocol::SessionId;

use super::{
    outcome::granted,
    world::{MARGIN, Paused, World, bytes, driver, finish, pin, saved, suspend},
};
use crate::{
    CheckpointRecord, Finish, Fork, InterruptRecord, NewInterrupt, Rollback, RunRef, Scalar, Suspend, TerminalStatus,
    WorkflowPin,
};

/// A session of three turns: a start without questions, one that ended with the questions `a` and `b` open, and one in
/// which `a` was answered, the workflow was handed over to a later version, and `c` was asked.
pub(super) struct Chain {
    pub(super) session: SessionId,
    pub(super) start: CheckpointRecord,
    pub(super) asked: CheckpointRecord,
    pub(super) head: CheckpointRecord,
    pub(super) paused: Paused,
    /// Open now: `b` and `c`.
    pub(super) open: Vec<InterruptRecord>,
}

impl Chain {
    /// The question that was answered since.
    pub(super) fn answered(&self) -> &InterruptRecord {
        &self.paused.open[0]
    }
}

/// The definition in force at the end of a [`Chain`].
pub(super) fn later_pin() -> WorkflowPin {
    WorkflowPin { version: "2".into(), fingerprint: "3d4e5f".into(), ..pin() }
}

pub(super) async fn chain(w: &World<'_>) -> Chain {
    let mut run = w.new_run();
    run.context.insert("tenant".to_owned(), Scalar::Text("acme".into()));
    let session = run.session_id.clone();
    let start = w.append(&session, "session start").await;
    w.advance(MARGIN);

    let with_default = NewInterrupt { default: Some(bytes("default of b")), optional_cancel: true, ..w.ask("b") };
    let first = Suspend {
        snapshot: bytes("first pause"),
        checkpoint: Some(w.new_checkpoint("asked")),
        ..suspend(RunRef::New(run.clone(), driver()), vec![w.ask("a"), with_default])
    };
    let paused = Paused { run, open: saved(w.store.suspend(first).await.unwrap()) };
    let asked = w.store.head(&session).await.unwrap().unwrap();
    w.advance(MARGIN);

    let claimed = granted(w.answer(&paused.open[0], "yes").await);
    let second = Suspend {
        workflow: later_pin(),
        snapshot: bytes("second pause"),
        answers_seen: 1,
        checkpoint: Some(w.new_checkpoint("asked again")),
        ..suspend(RunRef::Held(claimed.lease), w.asks(&["c"]))
    };
    let open = saved(w.store.suspend(second).await.unwrap());
    let head = w.store.head(&session).await.unwrap().unwrap();
    w.advance(MARGIN);
    Chain { session, start, asked, head, paused, open }
}

/// A request that takes the session back, with new ids for what is open there.
pub(super) fn rollback(w: &World<'_>, to: &CheckpointRecord) -> Rollback {
    Rollback { checkpoint_id: to.checkpoint.id.clone(), new_run_id: w.run_id(), reissue: w.reissue(&to.interrupts) }
}

/// A request that forks a new session off, with new ids for what is open there.
pub(super) fn fork(w: &World<'_>, from: &CheckpointRecord) -> Fork {
    Fork {
        checkpoint_id: from.checkpoint.id.clone(),
        new_session_id: w.session_id(),
        new_checkpoint_id: w.checkpoint_id(),
        new_run_id: w.run_id(),
        reissue: w.reissue(&from.interrupts),
    }
}

/// Everything that can be read of a session and its questions, to compare.
pub(super) async fn reading(w: &World<'_>, chain: &Chain) -> String {
    let mut lines = vec![
        format!("{:?}", w.store.head(&chain.session).await.unwrap()),
        format!("{:?}", w.store.list_checkpoints(&chain.session).await.unwrap()),
        format!("{:?}", w.run(&chain.paused.run.run_id).await),
    ];
    for question in chain.paused.open.iter().chain(&chain.open) {
        lines.push(format!("{:?}", w.question(&question.request_id).await));
    }
    lines.join("\n")
}

/// A question that was opened again: everything but its ids, its run and its times is the original's.
pub(super) fn assert_reissued(original: &InterruptRecord, reissued: &InterruptRecord) {
    assert_ne!(original.request_id, reissued.request_id);
    assert!(!original.token.matches(&reissued.token));
    let content = |question: &InterruptRecord| -> (String, Bytes, Option<Bytes>, bool, bool) {
        let place = format!("{:?} {} {}", question.ask, question.workflow, question.node);
        let flags = (question.optional_cancel, question.after_response_completed);
        (place, question.question.clone(), question.default.clone(), flags.0, flags.1)
    };
    assert_eq!(content(original), content(reissued));
    assert_eq!(reissued.expires_at, original.expires_at, "a deadline is absolute");
    assert_eq!(reissued.context, original.context);
    assert_eq!((&reissued.answer, &reissued.receipt), (&None, &None));
}

/// Ends a run that was handed over, with a checkpoint.
pub(super) async fn end(w: &World<'_>, claimed: crate::Claimed, label: &str) -> CheckpointRecord {
    let request = Finish {
        answers_seen: claimed.run.answers,
        checkpoint: Some(w.new_checkpoint(label)),
        ..finish(RunRef::Held(claimed.lease), TerminalStatus::Completed)
    };
    w.store.finish(request).await.unwrap();
    w.store.head(&claimed.run.session_id).await.unwrap().unwrap()
}
