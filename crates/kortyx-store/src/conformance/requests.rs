//! Requests as the tests of an adapter make them, and what is in the replies.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use kortyx_protocol::{RequestId, ResumeToken, RunId, SessionId};

use crate::{
    AnswerOutcome, AnswerRequest, AskKey, ClaimRequest, Claimed, Drive, Driver, Finish, InterruptRecord, Lease,
    NewAnswer, NewInterrupt, NewRun, OpenRun, Proof, Record, RunRef, Store, StoreError, Suspend, Suspended,
    TerminalStatus, WorkflowPin,
};

/// How long a question stays open.
const OPEN_FOR: Duration = Duration::from_mins(15);
/// How long a lease lasts.
pub(super) const LEASE: Duration = Duration::from_secs(30);

/// A name that nothing else in this process has.
pub fn unique(kind: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{kind}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The definition that runs are bound to.
pub fn pin() -> WorkflowPin {
    WorkflowPin { id: "review".into(), version: "1".into(), fingerprint: "5e".repeat(32).into() }
}

/// A driver whose leases last half a minute.
pub fn driver() -> Driver {
    Driver { id: "driver".to_owned(), ttl: LEASE }
}

/// A run in a session of its own.
#[expect(clippy::missing_panics_doc, reason = "its ids are well-formed")]
pub fn new_run() -> NewRun {
    NewRun {
        run_id: RunId::new(unique("run")).unwrap(),
        session_id: SessionId::new(unique("session")).unwrap(),
        workflow: pin(),
        context: BTreeMap::new(),
        follows: None,
    }
}

/// A question that stays open for a quarter of an hour and has no default.
#[expect(clippy::missing_panics_doc, reason = "its ids are well-formed")]
pub fn ask(key: &str) -> NewInterrupt {
    NewInterrupt {
        request_id: RequestId::new(unique("human")).unwrap(),
        token: ResumeToken::parse(unique("token")).unwrap(),
        ask: AskKey(key.to_owned()),
        workflow: "review".to_owned(),
        node: "approve".to_owned(),
        question: Bytes::from_static(b"{}"),
        expires_in: OPEN_FOR,
        default: None,
        optional_cancel: false,
        after_response_completed: false,
    }
}

/// Opens a run.
pub fn opening(run: NewRun) -> OpenRun {
    OpenRun { run, driver: driver(), snapshot: Bytes::from_static(b"opened"), chunks: Vec::new() }
}

/// Records nothing yet.
pub fn recording(lease: &Lease) -> Record {
    Record {
        lease: lease.clone(),
        entries: Vec::new(),
        publish: Vec::new(),
        withdraw: Vec::new(),
        chunks: Vec::new(),
        answers_seen: 0,
        response: None,
    }
}

/// Has a run wait, with these new questions.
pub fn suspending(run: RunRef, publish: Vec<NewInterrupt>) -> Suspend {
    Suspend {
        run,
        workflow: pin(),
        snapshot: Bytes::from_static(b"suspended"),
        publish,
        withdraw: Vec::new(),
        chunks: Vec::new(),
        answers_seen: 0,
        checkpoint: None,
    }
}

/// Answers with the question's token, ready to drive.
pub fn answering(question: &InterruptRecord) -> AnswerRequest {
    let answer = NewAnswer {
        request_id: question.request_id.clone(),
        proof: Proof::Token(question.token.clone()),
        session_id: None,
        run_id: None,
        answer: Bytes::from_static(b"\"yes\""),
        cancel: false,
        actor: None,
    };
    AnswerRequest { answers: vec![answer], driver: Some(driver()) }
}

/// Ends the run that was claimed.
pub fn finishing(claimed: Claimed) -> Finish {
    Finish {
        run: RunRef::Held(claimed.lease),
        workflow: pin(),
        status: TerminalStatus::Completed,
        outcome: Bytes::from_static(b"done"),
        reason: None,
        chunks: Vec::new(),
        answers_seen: claimed.run.answers,
        checkpoint: None,
    }
}

/// Claims whatever a worker that knows [`pin`] may claim.
pub fn claiming() -> ClaimRequest {
    ClaimRequest { driver: driver(), workflows: vec![pin()], parked_before: None, limit: 100 }
}

/// The open questions of a suspension that took place.
///
/// # Panics
///
/// When it did not.
pub fn saved(outcome: Suspended) -> Vec<InterruptRecord> {
    match outcome {
        Suspended::Saved(open) => open,
        other => panic!("expected a saved suspension, got {other:?}"),
    }
}

/// The run that an accepted answer handed to its caller.
///
/// # Panics
///
/// When the answer was not accepted, or the run was left to others.
pub fn granted(outcome: AnswerOutcome) -> Claimed {
    match outcome {
        AnswerOutcome::Accepted(_, Drive::Granted(claimed)) => *claimed,
        other => panic!("expected a granted lease, got {other:?}"),
    }
}

/// The question of a new run that waits for its answer.
pub async fn paused(store: &dyn Store) -> Result<InterruptRecord, StoreError> {
    paused_run(store, new_run()).await
}

/// The question of this run, which waits for its answer.
pub async fn paused_run(store: &dyn Store, run: NewRun) -> Result<InterruptRecord, StoreError> {
    let request = suspending(RunRef::New(run, driver()), vec![ask("a")]);
    store.suspend(request).await.map(|outcome| saved(outcome).remove(0))
}
