//! What a case expects a transition to say; anything else fails it.

use std::fmt::Debug;

use kortyx_protocol::RequestId;

use crate::{
    AnswerOutcome, Claimed, Drive, ForkOutcome, InterruptRecord, Receipt, Refusal, RollbackOutcome, RunRecord,
    StoreError, StoreErrorKind,
};

/// The kind of error that a call must fail with.
#[track_caller]
pub(super) fn error_kind<T: Debug>(result: Result<T, StoreError>) -> StoreErrorKind {
    result.expect_err("expected an error").kind()
}

/// Fails unless the call was refused because its lease is not (or no longer) the run's.
#[track_caller]
pub(super) fn lease_lost<T: Debug>(result: Result<T, StoreError>) {
    assert_eq!(error_kind(result), StoreErrorKind::LeaseLost);
}

#[track_caller]
pub(super) fn accepted(outcome: AnswerOutcome) -> (Vec<Receipt>, Drive) {
    match outcome {
        AnswerOutcome::Accepted(receipts, drive) => (receipts, drive),
        other => panic!("expected an accepted answer, got {other:?}"),
    }
}

/// The run that an accepted answer handed to its caller.
#[track_caller]
pub(super) fn granted(outcome: AnswerOutcome) -> Claimed {
    match accepted(outcome).1 {
        Drive::Granted(claimed) => *claimed,
        other => panic!("expected a granted lease, got {other:?}"),
    }
}

#[track_caller]
pub(super) fn driven(outcome: AnswerOutcome) -> Vec<Receipt> {
    match accepted(outcome) {
        (receipts, Drive::Driven) => receipts,
        (_, other) => panic!("expected a driven run, got {other:?}"),
    }
}

#[track_caller]
pub(super) fn left(outcome: AnswerOutcome) -> Vec<Receipt> {
    match accepted(outcome) {
        (receipts, Drive::Left) => receipts,
        (_, other) => panic!("expected a run left to workers, got {other:?}"),
    }
}

#[track_caller]
pub(super) fn duplicate(outcome: AnswerOutcome) -> (Vec<Receipt>, RunRecord) {
    match outcome {
        AnswerOutcome::Duplicate(receipts, run) => (receipts, *run),
        other => panic!("expected a duplicate, got {other:?}"),
    }
}

#[track_caller]
pub(super) fn refused(outcome: AnswerOutcome) -> Vec<(RequestId, Refusal)> {
    match outcome {
        AnswerOutcome::Refused(refusals) => refusals,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// The refusal of the only answer that was refused.
#[track_caller]
pub(super) fn refusal(outcome: AnswerOutcome) -> Refusal {
    let mut refusals = refused(outcome);
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    refusals.remove(0).1
}

/// What a rollback that took place left open.
#[track_caller]
pub(super) fn rolled_back(outcome: RollbackOutcome) -> Vec<InterruptRecord> {
    match outcome {
        RollbackOutcome::Done { interrupts, .. } => interrupts,
        other => panic!("expected a rollback, got {other:?}"),
    }
}

/// What a fork that took place left open.
#[track_caller]
pub(super) fn forked(outcome: ForkOutcome) -> Vec<InterruptRecord> {
    match outcome {
        ForkOutcome::Done { interrupts, .. } => interrupts,
        other => panic!("expected a fork, got {other:?}"),
    }
}

/// One question, as two readings of it compare: everything but the secret, which has no equality.
#[track_caller]
pub(super) fn assert_same(left: &InterruptRecord, right: &InterruptRecord) {
    assert!(left.token.matches(&right.token), "the token differs");
    assert_eq!(format!("{left:?}"), format!("{right:?}"));
}
