//! Questions: published, closed, answered.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use bytes::Bytes;
use kortyx_protocol::{RequestId, Timestamp};
use kortyx_store::{
    AnswerRecord, AskKey, InterruptRecord, InterruptStatus, NewInterrupt, Receipt, StoreError, StoreErrorKind,
};

use super::{Batch, Question, Write, write_sql};
use crate::{
    client::values,
    row::{Malformed, encode_scalar},
};

/// The answer that a question is closed with.
pub(crate) struct Closing {
    pub(crate) answer: Bytes,
    pub(crate) seq: u64,
    pub(crate) actor: Option<String>,
}

impl Batch {
    /// Refuses questions that cannot be published: their ids must be free, and their places too once these are
    /// withdrawn.
    pub(crate) fn check_publish(
        &self,
        run: Option<i64>,
        publish: &[NewInterrupt],
        withdraw: &[AskKey],
    ) -> Result<(), StoreError> {
        if publish.is_empty() {
            return Ok(());
        }
        let pending = match run {
            Some(key) => self.run(key)?.pending.as_slice(),
            None => &[],
        };
        let withdrawn: HashSet<&AskKey> = withdraw.iter().collect();
        let mut places = HashSet::new();
        for question in pending {
            places.insert(&self.question(*question)?.record.ask);
        }
        places.retain(|place| !withdrawn.contains(*place));
        self.check_free(publish.iter().map(|new| &new.request_id))?;
        if !publish.iter().all(|new| places.insert(&new.ask)) {
            return Err(self.invalid("a question is open at this place already"));
        }
        Ok(())
    }

    /// Refuses ids of questions that are taken, also by each other.
    pub(crate) fn check_free<'a>(&self, ids: impl Iterator<Item = &'a RequestId>) -> Result<(), StoreError> {
        let mut seen = HashSet::new();
        for id in ids {
            if self.taken_requests.contains(id.as_str()) || self.question_keys.contains_key(id) || !seen.insert(id) {
                return Err(self.error(StoreErrorKind::AlreadyExists, format!("question {id} exists")));
            }
        }
        Ok(())
    }

    /// Publishes questions that were checked; gives their records.
    pub(crate) fn publish(&mut self, run: i64, publish: &[NewInterrupt]) -> Result<Vec<InterruptRecord>, StoreError> {
        let mut published = Vec::with_capacity(publish.len());
        for new in publish {
            let owner = self.run(run)?;
            let (run_id, session_id) = (owner.record.run_id.clone(), owner.record.session_id.clone());
            let record = InterruptRecord::new(new.clone(), run_id, session_id, Arc::clone(&owner.context), self.now);
            self.open(run, record.clone())?;
            published.push(record);
        }
        Ok(published)
    }

    /// Stores a pending question.
    pub(crate) fn open(&mut self, run: i64, record: InterruptRecord) -> Result<i64, StoreError> {
        self.last.question += 1;
        let key = self.last.question;
        let question = Write {
            sql: write_sql!("add_question"),
            values: values![
                key,
                record.request_id.as_str(),
                run,
                record.session_id.as_str(),
                record.token.expose(),
                record.ask.0.as_str(),
                &record.workflow,
                &record.node,
                &record.question,
                record.created_at,
                record.expires_at,
                record.status.as_str(),
                record.default.as_ref(),
                record.optional_cancel,
                record.after_response_completed,
            ],
        };
        let context = record.context.iter().map(|(name, value)| Write {
            sql: write_sql!("add_context"),
            values: values![
                name,
                encode_scalar(value),
                record.created_at,
                key,
                record.after_response_completed,
                record.expires_at,
            ],
        });
        let owner = self.run_mut(run)?;
        owner.pending.push(key);
        owner.writes.push(question);
        owner.writes.extend(context);
        self.question_keys.insert(record.request_id.clone(), key);
        self.questions.insert(key, Question { run, record });
        Ok(key)
    }

    /// Closes a pending question; with an answer where it has one. What is past its time has expired, whatever else
    /// closes it.
    pub(crate) fn close(
        &mut self,
        key: i64,
        status: InterruptStatus,
        closing: Option<Closing>,
    ) -> Result<(), StoreError> {
        let (now, operation) = (self.now, self.operation);
        let missing = || Malformed("a question is missing".to_owned()).told(operation);
        let Question { run, record } = self.questions.get_mut(&key).ok_or_else(missing)?;
        let run = *run;
        let status = if closing.is_none() && is_due(record, now) { InterruptStatus::Expired } else { status };
        record.status = status;
        let seq = closing.as_ref().map(|closing| closing.seq);
        let actor = closing.as_ref().and_then(|closing| closing.actor.clone());
        record.answer = closing.map(|closing| closing.answer);
        let question = Write {
            sql: write_sql!("close_question"),
            values: values![status.as_str(), record.answer.as_ref(), seq, seq.map(|_| now), actor.clone(), key],
        };
        if let Some(seq) = seq.filter(|_| status != InterruptStatus::Expired) {
            let (request_id, run_id) = (record.request_id.clone(), record.run_id.clone());
            record.receipt = Some(Receipt { request_id, run_id, seq, at: now, actor });
        }
        let created_at = record.created_at;
        let context = Arc::clone(&record.context);
        let owner = self.run_mut(run)?;
        owner.pending.retain(|pending| *pending != key);
        owner.writes.push(question);
        owner.writes.extend(context.iter().map(|(name, value)| Write {
            sql: write_sql!("drop_context"),
            values: values![name, encode_scalar(value), created_at, key],
        }));
        Ok(())
    }

    /// Closes a pending question with the next answer of its run.
    pub(crate) fn deliver(
        &mut self,
        key: i64,
        status: InterruptStatus,
        answer: Bytes,
        actor: Option<String>,
    ) -> Result<(), StoreError> {
        let Question { run, record } = self.question(key)?;
        let (run, request_id, ask) = (*run, record.request_id.clone(), record.ask.clone());
        let now = self.now;
        let owner = self.run_mut(run)?;
        owner.record.answers += 1;
        let seq = owner.record.answers;
        let by_default = status == InterruptStatus::Expired;
        let delivered =
            AnswerRecord { seq, request_id, ask, answer: answer.clone(), at: now, actor: actor.clone(), by_default };
        owner.answers.insert(seq, delivered);
        owner.changed(now);
        self.close(key, status, Some(Closing { answer, seq, actor }))
    }

    /// Supersedes the pending questions at these places.
    pub(crate) fn withdraw(&mut self, run: i64, places: &[AskKey]) -> Result<(), StoreError> {
        if places.is_empty() {
            return Ok(());
        }
        let places: BTreeSet<&AskKey> = places.iter().collect();
        for key in self.run(run)?.pending.clone() {
            if places.contains(&self.question(key)?.record.ask) {
                self.close(key, InterruptStatus::Superseded, None)?;
            }
        }
        Ok(())
    }

    /// The questions of a run that may still bring an answer, in time or by their default, oldest first.
    pub(crate) fn open_questions(&self, run: i64) -> Result<Vec<InterruptRecord>, StoreError> {
        let mut open = Vec::new();
        for key in &self.run(run)?.pending {
            let record = &self.question(*key)?.record;
            if record.default.is_some() || !is_due(record, self.now) {
                open.push(record.clone());
            }
        }
        Ok(open)
    }
}

/// Whether its time is past.
pub(crate) fn is_due(record: &InterruptRecord, now: Timestamp) -> bool {
    now >= record.expires_at
}
