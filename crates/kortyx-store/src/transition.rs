//! The requests and outcomes of the state transitions.

use std::time::Duration;

use bytes::Bytes;
use kortyx_protocol::{RequestId, ResumeToken, RunId, SessionId, Timestamp};

use crate::{
    AnswerRecord, AskKey, Claimed, Driver, InterruptRecord, Lease, NewCheckpoint, NewInterrupt, NewRun, Receipt,
    RunRecord, RunRef, RunStatus, Scope, TerminalStatus, WorkflowPin,
};

/// Makes a run durable.
#[derive(Debug, Clone)]
pub struct OpenRun {
    /// The run.
    pub run: NewRun,
    /// Who drives it.
    pub driver: Driver,
    /// Its state at its first durable moment.
    pub snapshot: Bytes,
    /// What it has said so far: the first chunks of its output, in order.
    pub chunks: Vec<Bytes>,
}

/// Stores journal entries under a lease and publishes questions while other work goes on.
#[derive(Debug, Clone)]
pub struct Record {
    /// The right to write.
    pub lease: Lease,
    /// Entries to append, in order.
    pub entries: Vec<Bytes>,
    /// Chunks to append to the run's output, in order.
    pub chunks: Vec<Bytes>,
    /// Questions to publish.
    pub publish: Vec<NewInterrupt>,
    /// Published questions that their node no longer waits for.
    pub withdraw: Vec<AskKey>,
    /// The highest [`AnswerRecord::seq`] that the driver has received.
    pub answers_seen: u64,
    /// The response that is complete with this.
    pub response: Option<NewResponse>,
}

/// A response that is complete while its run goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewResponse {
    /// What it ended with, to keep for those who ask later, opaque.
    pub outcome: Bytes,
    /// The session checkpoint that its turn ends with. It names the run, and has no snapshot and no questions: the run goes on
    /// beside the conversation.
    pub checkpoint: Option<NewCheckpoint>,
}

/// What a driver learns when it records.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Answers above `answers_seen`, in order.
    pub answers: Vec<AnswerRecord>,
    /// The questions that this call published, as stored.
    pub published: Vec<InterruptRecord>,
    /// Somebody asked the driver to stop.
    pub cancel_requested: bool,
}

/// Ends a driver's turn: the run waits for people.
#[derive(Debug, Clone)]
pub struct Suspend {
    /// The run; a new one is created by this transition.
    pub run: RunRef,
    /// The definition it is bound to from now on.
    pub workflow: WorkflowPin,
    /// The whole state; it replaces the last snapshot and every recorded entry.
    pub snapshot: Bytes,
    /// Questions to publish.
    pub publish: Vec<NewInterrupt>,
    /// Published questions that their node no longer waits for.
    pub withdraw: Vec<AskKey>,
    /// Chunks to append to the run's output, in order.
    pub chunks: Vec<Bytes>,
    /// The highest [`AnswerRecord::seq`] that the snapshot holds.
    pub answers_seen: u64,
    /// The session checkpoint that the turn ends with.
    pub checkpoint: Option<NewCheckpoint>,
}

/// What became of a suspension.
#[derive(Debug, Clone)]
pub enum Suspended {
    /// Stored and published; the lease is given up. Holds every open question of the run, oldest first.
    Saved(Vec<InterruptRecord>),
    /// Answers above `answers_seen` were accepted meanwhile. Nothing was stored and the lease is kept.
    Answered(Vec<AnswerRecord>),
    /// Somebody had asked to stop: the run is cancelled, its questions closed.
    Cancelled,
    /// No question is open any more and none was answered: the run has expired.
    Expired,
}

/// Ends a run.
#[derive(Debug, Clone)]
pub struct Finish {
    /// The run; a new one is created by this transition, already terminal.
    pub run: RunRef,
    /// The definition it was bound to at its end.
    pub workflow: WorkflowPin,
    /// How it ended.
    pub status: TerminalStatus,
    /// The outcome to keep for those who ask later, opaque.
    pub outcome: Bytes,
    /// Why, for people (cancellations).
    pub reason: Option<String>,
    /// Chunks to append to the run's output, in order.
    pub chunks: Vec<Bytes>,
    /// The highest [`AnswerRecord::seq`] that the driver has received.
    pub answers_seen: u64,
    /// The session checkpoint that the turn ends with.
    pub checkpoint: Option<NewCheckpoint>,
}

/// What became of a finish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finished {
    /// Terminal; remaining questions are superseded (of a cancelled run: cancelled).
    Done,
    /// Answers above `answers_seen` were accepted meanwhile. Nothing was stored and the lease is kept.
    Answered(Vec<AnswerRecord>),
}

/// Sets a run aside until code that fits is deployed.
#[derive(Debug, Clone)]
pub struct Park {
    /// The right to write.
    pub lease: Lease,
    /// Why, for people: a failure as JSON.
    pub reason: String,
}

/// What shows that somebody may answer.
#[derive(Debug, Clone)]
pub enum Proof {
    /// The question's secret, compared in constant time.
    Token(ResumeToken),
    /// The application authorised the caller for this scope, and the question lies inside.
    Scope(Scope),
}

/// One answer.
#[derive(Debug, Clone)]
pub struct NewAnswer {
    /// The question.
    pub request_id: RequestId,
    /// What shows that the caller may answer it.
    pub proof: Proof,
    /// The session that the caller speaks in; when given and another's, the answer is refused.
    pub session_id: Option<SessionId>,
    /// The run that the caller means; when given and another's, the question is unknown.
    pub run_id: Option<RunId>,
    /// Canonical JSON of a [`ResumeResponse`](kortyx_protocol::ResumeResponse); equal bytes are the same answer.
    pub answer: Bytes,
    /// It is a cancellation: ends the run unless the question has `optional_cancel`.
    pub cancel: bool,
    /// Who answers, as the application authenticated them.
    pub actor: Option<String>,
}

/// Answers to questions of one run, all or none.
#[derive(Debug, Clone)]
pub struct AnswerRequest {
    /// At least one; no question twice.
    pub answers: Vec<NewAnswer>,
    /// Who would drive the run; `None` leaves it to a worker.
    pub driver: Option<Driver>,
}

/// What became of answers.
#[derive(Debug, Clone)]
pub enum AnswerOutcome {
    /// All are durable; receipts in the order of the request.
    Accepted(Vec<Receipt>, Drive),
    /// Every one was accepted before, with the same answer: the first receipts, and the run as it is.
    Duplicate(Vec<Receipt>, Box<RunRecord>),
    /// At least one is refused, so none was applied. Names every refused one.
    Refused(Vec<(RequestId, Refusal)>),
}

/// Who drives the run that was answered.
#[derive(Debug, Clone)]
pub enum Drive {
    /// The caller.
    Granted(Box<Claimed>),
    /// Somebody who holds the lease, and sees the answers before it suspends or finishes.
    Driven,
    /// Nobody yet: a worker picks it up.
    Left,
    /// Nobody: a cancellation ended the run.
    Ended(RunStatus),
}

/// Why an answer was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Another answer was accepted.
    Conflict(Receipt),
    /// Its time is past.
    Expired,
    /// It was cancelled.
    Cancelled,
    /// It was withdrawn.
    Superseded,
    /// No such question, a wrong secret, or outside the scope: indistinguishable.
    Unknown,
    /// It belongs to another session.
    WrongSession,
}

/// What a driver learns when it renews.
#[derive(Debug, Clone)]
pub struct Renewed {
    /// The lease with its new end.
    pub lease: Lease,
    /// Answers above the given sequence number, in order.
    pub answers: Vec<AnswerRecord>,
    /// Somebody asked the driver to stop.
    pub cancel_requested: bool,
}

/// Asks for runs whose driver is gone.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// Who would drive them.
    pub driver: Driver,
    /// Only runs bound to one of these definitions; empty claims nothing.
    pub workflows: Vec<WorkflowPin>,
    /// Also runs parked before this time; `None` leaves parked runs alone.
    pub parked_before: Option<Timestamp>,
    /// At most this many.
    pub limit: u32,
}

/// Asks for questions past their time to be closed.
#[derive(Debug, Clone)]
pub struct ExpireRequest {
    /// Who would drive runs whose question has a default.
    pub driver: Driver,
    /// Lease only runs bound to one of these; others are left to their workers.
    pub workflows: Vec<WorkflowPin>,
    /// At most this many questions.
    pub limit: u32,
}

/// What expired.
#[derive(Debug, Clone, Default)]
pub struct ExpiredBatch {
    /// Questions closed now.
    pub interrupts: Vec<InterruptRecord>,
    /// Runs that ended as expired.
    pub ended: Vec<RunId>,
    /// Runs that go on with a default, leased to the caller.
    pub claimed: Vec<Claimed>,
    /// Whether more may be due.
    pub more: bool,
}

/// What to cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelTarget {
    /// One run.
    Run(RunId),
    /// Every run of a session that is not terminal.
    Session(SessionId),
}

/// Asks for runs to end.
#[derive(Debug, Clone)]
pub struct CancelRequest {
    /// Which.
    pub target: CancelTarget,
    /// Runs outside are unknown.
    pub scope: Option<Scope>,
    /// Why, for people.
    pub reason: Option<String>,
}

/// What became of a cancellation, for one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelOutcome {
    /// It waited, and is cancelled.
    Cancelled(RunId),
    /// It is being driven: its driver is asked to stop.
    Requested(RunId),
    /// It had ended before.
    Ended(RunId, RunStatus),
}

/// How long things are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Terminal runs with their questions, to serve repeated answers. A day by default.
    pub finished_runs: Duration,
    /// Checkpoints for each session, the newest. 50 by default.
    pub checkpoints_per_session: u32,
    /// Checkpoints by age, except each session's head. 30 days by default.
    pub checkpoint_age: Duration,
    /// Sessions without a change and without a run that is not terminal. 30 days by default.
    pub idle_sessions: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        const DAY: Duration = Duration::from_hours(24);
        Self { finished_runs: DAY, checkpoints_per_session: 50, checkpoint_age: DAY * 30, idle_sessions: DAY * 30 }
    }
}

/// What a prune removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Runs, each with its questions and entries.
    pub runs: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Sessions.
    pub sessions: u64,
    /// Whether more may be left.
    pub more: bool,
}
