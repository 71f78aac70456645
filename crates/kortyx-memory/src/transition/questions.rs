//! What every transition of a question is made of: publish, withdraw, close, read.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use kortyx_protocol::{RequestId, Timestamp};
use kortyx_store::{AskKey, InterruptRecord, InterruptStatus, NewInterrupt, StoreError, StoreErrorKind};

use crate::{
    question::{Given, GivenBy, Question},
    slab::Slot,
    state::{Context, State, Transition, corrupt},
};

impl Transition<'_> {
    pub(super) fn find_question(&self, request_id: &RequestId) -> Option<Slot> {
        self.state.question_slots.get(request_id).copied()
    }

    /// Refuses questions that `run` (a new one: `None`) cannot publish after these were withdrawn.
    pub(super) fn check_publish(
        &self,
        run: Option<Slot>,
        publish: &[NewInterrupt],
        withdraw: &[AskKey],
    ) -> Result<(), StoreError> {
        for new in publish {
            self.check_size("a question", &new.question)?;
            self.check_size("a default", new.default.as_deref().unwrap_or_default())?;
        }
        self.check_new_requests(publish.iter().map(|new| &new.request_id))?;
        let mut asks = HashSet::new();
        if let (Some(run), false) = (run, publish.is_empty()) {
            for slot in &self.run_at(run)?.open {
                asks.insert(&*self.question_at(*slot)?.ask);
            }
            for ask in withdraw {
                asks.remove(ask.0.as_str());
            }
        }
        // A lone question of a run without others cannot repeat one.
        if publish.len() + asks.len() < 2 {
            return Ok(());
        }
        match publish.iter().find(|new| !asks.insert(&new.ask.0)) {
            Some(new) => Err(self.invalid(format!("the run asks `{}` already", new.ask))),
            None => Ok(()),
        }
    }

    /// Refuses request ids that are taken or named twice.
    pub(super) fn check_new_requests<'r>(
        &self,
        request_ids: impl ExactSizeIterator<Item = &'r RequestId>,
    ) -> Result<(), StoreError> {
        let mut named = HashSet::new();
        let several = request_ids.len() > 1;
        for request_id in request_ids {
            if self.find_question(request_id).is_some() || (several && !named.insert(request_id)) {
                return Err(self.error(StoreErrorKind::AlreadyExists, format!("question {request_id} exists")));
            }
        }
        Ok(())
    }

    /// Publishes a question that was checked.
    pub(super) fn publish(&mut self, run: Slot, new: NewInterrupt) -> Result<Slot, StoreError> {
        let expires_at = self.now.saturating_add(new.expires_in);
        self.publish_until(run, new, expires_at)
    }

    /// Publishes a question that was checked, with this deadline.
    pub(super) fn publish_until(
        &mut self,
        run: Slot,
        new: NewInterrupt,
        expires_at: Timestamp,
    ) -> Result<Slot, StoreError> {
        let ord = self.next_ord();
        let request_id = new.request_id.clone();
        let State { runs, questions, question_slots, sessions, pairs, index, .. } = &mut *self.state;
        let owner = runs.get_mut(run).ok_or_else(|| corrupt(self.operation))?;
        let slot = questions.insert(Question::new(new, ord, run, self.now, expires_at));
        question_slots.insert(request_id, slot);
        owner.open.push(slot);
        index.open_by_session.insert((owner.session, ord, slot));
        index.deadlines.insert((expires_at, ord, slot));
        for pair in &owner.context {
            index.open_by_pair.insert((*pair, ord, slot));
            if let Some(open) = pairs.beside_mut(*pair) {
                *open += 1;
            }
        }
        let session = sessions.get_mut(owner.session).ok_or_else(|| corrupt(self.operation))?;
        session.open += 1;
        Ok(slot)
    }

    /// Withdraws the run's pending questions with these keys; others are ignored.
    pub(super) fn withdraw(&mut self, run: Slot, withdraw: &[AskKey]) -> Result<(), StoreError> {
        if withdraw.is_empty() {
            return Ok(());
        }
        let mut open = BTreeMap::new();
        for slot in &self.run_at(run)?.open {
            open.insert(self.question_at(*slot)?.ask.clone(), *slot);
        }
        for ask in withdraw {
            if let Some(slot) = open.remove(ask.0.as_str()) {
                self.close(slot, InterruptStatus::Superseded)?;
            }
        }
        Ok(())
    }

    /// Closes one pending question.
    pub(super) fn close(&mut self, slot: Slot, status: InterruptStatus) -> Result<(), StoreError> {
        let run = self.question_at(slot)?.run;
        self.detach(slot, status)?;
        self.run_mut(run)?.open.retain(|open| *open != slot);
        Ok(())
    }

    /// Closes every pending question of a run and gives them, oldest first.
    pub(super) fn close_all(&mut self, run: Slot, status: InterruptStatus) -> Result<Vec<Slot>, StoreError> {
        let open = std::mem::take(&mut self.run_mut(run)?.open);
        for slot in &open {
            self.detach(*slot, status)?;
        }
        Ok(open)
    }

    /// Closes a question and takes it out of the indexes; its run's list of open ones is the caller's.
    ///
    /// One that is past its time has expired, whatever closes it: that is how it reads already.
    fn detach(&mut self, slot: Slot, status: InterruptStatus) -> Result<(), StoreError> {
        let State { runs, questions, sessions, pairs, index, .. } = &mut *self.state;
        let question = questions.get_mut(slot).ok_or_else(|| corrupt(self.operation))?;
        let run = runs.get_mut(question.run).ok_or_else(|| corrupt(self.operation))?;
        question.status = if question.is_due(self.now) { InterruptStatus::Expired } else { status };
        question.next_closed = run.closed.replace(slot);
        index.open_by_session.remove(&(run.session, question.ord, slot));
        index.deadlines.remove(&(question.expires_at, question.ord, slot));
        for pair in &run.context {
            index.open_by_pair.remove(&(*pair, question.ord, slot));
            if let Some(open) = pairs.beside_mut(*pair) {
                *open -= 1;
            }
        }
        let session = sessions.get_mut(run.session).ok_or_else(|| corrupt(self.operation))?;
        session.open -= 1;
        Ok(())
    }

    /// Gives a question the run's next answer. Its status is the caller's, and so is the delivery.
    pub(super) fn give(&mut self, slot: Slot, answer: bytes::Bytes, by: GivenBy) -> Result<(), StoreError> {
        let (at, run) = (self.now, self.question_at(slot)?.run);
        let run = self.run_mut(run)?;
        run.answers += 1;
        let given = Given { seq: run.answers, at, answer, by };
        self.question_mut(slot)?.given = Some(Box::new(given));
        Ok(())
    }

    /// The run's pending questions that are not past their time, oldest first.
    pub(super) fn open_questions(&self, run: Slot) -> Result<Vec<InterruptRecord>, StoreError> {
        let open = &self.run_at(run)?.open;
        let (mut records, mut context) = (Vec::with_capacity(open.len()), None);
        for slot in open {
            if !self.question_at(*slot)?.is_due(self.now) {
                records.push(self.record_sharing(*slot, &mut context)?);
            }
        }
        Ok(records)
    }

    pub(super) fn question_record(&self, slot: Slot) -> Result<InterruptRecord, StoreError> {
        self.record_sharing(slot, &mut None)
    }

    /// A record; consecutive ones of one run share their context.
    pub(super) fn record_sharing(
        &self,
        slot: Slot,
        shared: &mut Option<(Slot, Context)>,
    ) -> Result<InterruptRecord, StoreError> {
        let question = self.question_at(slot)?;
        let run = self.run_at(question.run)?;
        let context = match shared {
            Some((of, context)) if *of == question.run => Arc::clone(context),
            _ => self.context(question.run)?,
        };
        *shared = Some((question.run, Arc::clone(&context)));
        let session_id = self.session_at(run.session)?.id.clone();
        let new = question.published();
        let mut record = InterruptRecord::new(new, run.id.clone(), session_id, context, question.created_at);
        record.expires_at = question.expires_at;
        record.status = match question.status {
            InterruptStatus::Pending if question.is_due(self.now) => InterruptStatus::Expired,
            status => status,
        };
        record.answer = question.given.as_ref().map(|given| given.answer.clone());
        record.receipt = question.receipt(&run.id);
        Ok(record)
    }

    pub(super) fn context(&self, run: Slot) -> Result<Context, StoreError> {
        let run = self.run_at(run)?;
        if run.context.is_empty() {
            return Ok(Arc::clone(&self.state.no_context));
        }
        let pairs = run.context.iter().filter_map(|pair| self.state.pairs.get(*pair));
        Ok(Arc::new(pairs.map(|pair| (pair.0.clone(), pair.1.clone())).collect()))
    }
}
