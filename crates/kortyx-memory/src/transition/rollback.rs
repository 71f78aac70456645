//! Sessions taken back to a checkpoint, and new ones made from it.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use kortyx_protocol::{RequestId, RunId, SessionId, Timestamp};
use kortyx_store::{
    CheckpointRecord, Fork, ForkOutcome, InterruptRecord, InterruptStatus, NewInterrupt, NewRun, Reissue, Rollback,
    RollbackOutcome, RunStatus, StoreError,
};

use super::runs::End;
use crate::{
    session::{Basis, Checkpoint},
    slab::Slot,
    state::{Context, Transition, corrupt},
};

/// What a checkpoint's open questions are opened again with.
struct Reopen {
    snapshot: Bytes,
    basis: Basis,
    /// Under their new ids, with their deadlines.
    questions: Vec<(NewInterrupt, Timestamp)>,
    context: Context,
}

/// Whether a checkpoint's open questions can be opened again.
enum Reopening {
    /// It has none.
    Nothing,
    Ready(Box<Reopen>),
    Expired(RequestId),
    Mismatched,
}

impl Transition<'_> {
    pub(crate) fn rollback(&mut self, request: &Rollback) -> Result<RollbackOutcome, StoreError> {
        let Some((session, checkpoint)) = self.find_checkpoint(&request.checkpoint_id) else {
            return Ok(RollbackOutcome::Unknown);
        };
        let session_id = checkpoint.record.session_id.clone();
        let turn = checkpoint.record.turn_index;
        let is_head = self.session_at(session)?.head().is_some_and(|head| head.record.turn_index == turn);
        if is_head {
            let interrupts = self.open_in_session(&session_id)?;
            return self.rolled_back(session, Vec::new(), Vec::new(), interrupts);
        }
        let runs = self.active_runs(&session_id);
        for run in &runs {
            let run = self.run_at(*run)?;
            if run.is_driven(self.now) {
                return Ok(RollbackOutcome::Driven(run.id.clone()));
            }
        }
        let reopen = match self.reopening(checkpoint, &request.reissue)? {
            Reopening::Expired(request_id) => return Ok(RollbackOutcome::Expired(request_id)),
            Reopening::Mismatched => return Ok(RollbackOutcome::Mismatched),
            Reopening::Nothing => None,
            Reopening::Ready(reopen) => Some(reopen),
        };
        self.check_reopen(reopen.as_deref(), &request.new_run_id)?;
        let superseded = self.supersede(runs)?;
        let abandoned = self.abandon(session, turn)?;
        let interrupts = self.reopen(reopen, request.new_run_id.clone(), session_id)?;
        self.session_changed(session)?;
        self.rolled_back(session, abandoned, superseded, interrupts)
    }

    fn rolled_back(
        &self,
        session: Slot,
        abandoned: Vec<CheckpointRecord>,
        superseded: Vec<InterruptRecord>,
        interrupts: Vec<InterruptRecord>,
    ) -> Result<RollbackOutcome, StoreError> {
        let head = self.session_at(session)?.head().ok_or_else(|| corrupt(self.operation))?;
        let head = Box::new(head.record.clone());
        Ok(RollbackOutcome::Done { head, abandoned, superseded, interrupts })
    }

    pub(crate) fn fork(&mut self, request: Fork) -> Result<ForkOutcome, StoreError> {
        let Some((_, checkpoint)) = self.find_checkpoint(&request.checkpoint_id) else {
            return Ok(ForkOutcome::Unknown);
        };
        if self.find_session(&request.new_session_id).is_some() {
            return Ok(ForkOutcome::SessionExists);
        }
        let reopen = match self.reopening(checkpoint, &request.reissue)? {
            Reopening::Expired(request_id) => return Ok(ForkOutcome::Expired(request_id)),
            Reopening::Mismatched => return Ok(ForkOutcome::Mismatched),
            Reopening::Nothing => None,
            Reopening::Ready(reopen) => Some(reopen),
        };
        let source = checkpoint.record.clone();
        self.check_reopen(reopen.as_deref(), &request.new_run_id)?;
        self.check_new_checkpoint(&request.new_checkpoint_id)?;
        let mut copy = source.checkpoint;
        copy.id = request.new_checkpoint_id;
        let run_id = reopen.is_some().then(|| request.new_run_id.clone());
        let (snapshot, basis) = reopen.as_ref().map(|reopen| (reopen.snapshot.clone(), reopen.basis.clone())).unzip();
        let session = self.session_slot(&request.new_session_id);
        let interrupts = self.reopen(reopen, request.new_run_id, request.new_session_id)?;
        let fill = |record: &mut CheckpointRecord| {
            record.parent_session = Some(source.session_id);
            record.forked_from = Some(request.checkpoint_id);
            record.run_id = run_id;
            record.snapshot = snapshot;
            record.interrupts.clone_from(&interrupts);
        };
        self.append(session, copy, fill, basis)?;
        let head = self.session_at(session)?.head().ok_or_else(|| corrupt(self.operation))?;
        Ok(ForkOutcome::Done { checkpoint: Box::new(head.record.clone()), interrupts })
    }

    /// Gives a checkpoint's open questions their new ids.
    fn reopening(&self, checkpoint: &Checkpoint, reissue: &[Reissue]) -> Result<Reopening, StoreError> {
        let open = &checkpoint.record.interrupts;
        if let Some(expired) = open.iter().find(|question| question.expires_at <= self.now) {
            return Ok(Reopening::Expired(expired.request_id.clone()));
        }
        let mut fresh: HashMap<_, _> = reissue.iter().map(|reissue| (&reissue.from, reissue)).collect();
        if fresh.len() != open.len() || reissue.len() != open.len() {
            return Ok(Reopening::Mismatched);
        }
        let mut questions = Vec::with_capacity(open.len());
        for question in open {
            let Some(reissue) = fresh.remove(&question.request_id) else { return Ok(Reopening::Mismatched) };
            questions.push((published_again(question, reissue), question.expires_at));
        }
        let Some(first) = open.first() else { return Ok(Reopening::Nothing) };
        let context = Arc::clone(&first.context);
        let (Some(snapshot), Some(basis)) = (checkpoint.record.snapshot.clone(), checkpoint.basis.clone()) else {
            return Err(corrupt(self.operation));
        };
        Ok(Reopening::Ready(Box::new(Reopen { snapshot, basis, questions, context })))
    }

    fn check_reopen(&self, reopen: Option<&Reopen>, run_id: &RunId) -> Result<(), StoreError> {
        let Some(reopen) = reopen else { return Ok(()) };
        self.check_run_id(run_id)?;
        self.check_new_requests(reopen.questions.iter().map(|(question, _)| &question.request_id))
    }

    /// Opens a checkpoint's questions again, in a new run that waits for them.
    fn reopen(
        &mut self,
        reopen: Option<Box<Reopen>>,
        run_id: RunId,
        session_id: SessionId,
    ) -> Result<Vec<InterruptRecord>, StoreError> {
        let Some(reopen) = reopen else { return Ok(Vec::new()) };
        let Reopen { snapshot, basis, questions, context } = *reopen;
        let (workflow, context) = (Arc::unwrap_or_clone(basis.pin), Arc::unwrap_or_clone(context));
        let run = self.add_run(NewRun { run_id, session_id, workflow, context, follows: None }, snapshot)?;
        self.run_mut(run)?.answers = basis.answers;
        for (question, expires_at) in questions {
            self.publish_until(run, question, expires_at)?;
        }
        self.open_questions(run)
    }

    /// Cancels runs that nobody drives and gives the questions that were open and are superseded.
    fn supersede(&mut self, runs: Vec<Slot>) -> Result<Vec<InterruptRecord>, StoreError> {
        let mut superseded = Vec::new();
        for run in runs {
            let questions = InterruptStatus::Superseded;
            let reason = Some("its session was rolled back".to_owned());
            let end = End { status: RunStatus::Cancelled, outcome: None, reason, questions };
            for question in self.end(run, end)? {
                if self.question_at(question)?.status == InterruptStatus::Superseded {
                    superseded.push(self.question_record(question)?);
                }
            }
        }
        Ok(superseded)
    }

    /// Removes the checkpoints after a turn, since nothing can reach them any more; newest first.
    fn abandon(&mut self, session: Slot, turn: u64) -> Result<Vec<CheckpointRecord>, StoreError> {
        let mut abandoned = Vec::new();
        while let Some((last, _)) = self.head_turn(session)?
            && last > turn
        {
            let mut record = self.remove_checkpoint(session, last)?;
            record.abandoned = true;
            abandoned.push(record);
        }
        if let Some((last, created_at)) = self.head_turn(session)? {
            self.state.index.passed.remove(&(created_at, session, last));
        }
        Ok(abandoned)
    }

    fn head_turn(&self, session: Slot) -> Result<Option<(u64, Timestamp)>, StoreError> {
        let head = self.session_at(session)?.head();
        Ok(head.map(|head| (head.record.turn_index, head.record.created_at)))
    }

    fn open_in_session(&self, session_id: &SessionId) -> Result<Vec<InterruptRecord>, StoreError> {
        let mut open = Vec::new();
        for run in self.active_runs(session_id) {
            open.extend(self.open_questions(run)?);
        }
        Ok(open)
    }
}

fn published_again(question: &InterruptRecord, reissue: &Reissue) -> NewInterrupt {
    NewInterrupt {
        request_id: reissue.request_id.clone(),
        token: reissue.token.clone(),
        ask: question.ask.clone(),
        workflow: question.workflow.clone(),
        node: question.node.clone(),
        question: question.question.clone(),
        expires_in: question.expires_at.since(question.created_at),
        default: question.default.clone(),
        optional_cancel: question.optional_cancel,
        after_response_completed: question.after_response_completed,
    }
}
