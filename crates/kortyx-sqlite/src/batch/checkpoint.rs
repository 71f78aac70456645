//! Checkpoints appended to their sessions.

use kortyx_protocol::{CheckpointId, RunId, SessionId};
use kortyx_store::{CheckpointRecord, InterruptRecord, NewCheckpoint, StoreError, StoreErrorKind, WorkflowPin};

use super::{Batch, Head, Session, Write, write_sql};
use crate::{
    client::{Value, values},
    row::{Malformed, encode_context, encode_names},
};

/// What a checkpoint's snapshot goes on with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    /// The definition that it is bound to.
    pub(crate) pin: &'a WorkflowPin,
    /// How many answers it holds.
    pub(crate) answers: u64,
}

impl Batch {
    /// Refuses a checkpoint whose id is taken.
    pub(crate) fn check_checkpoint(&self, id: Option<&CheckpointId>) -> Result<(), StoreError> {
        match id {
            Some(id) if self.taken_checkpoints.contains(id.as_str()) => {
                Err(self.error(StoreErrorKind::AlreadyExists, format!("checkpoint {id} exists")))
            }
            _ => Ok(()),
        }
    }

    /// Appends the checkpoint of a run's turn, which ended with these open questions.
    pub(crate) fn append_turn(
        &mut self,
        run: i64,
        checkpoint: Option<&NewCheckpoint>,
        open: Vec<InterruptRecord>,
    ) -> Result<(), StoreError> {
        let Some(checkpoint) = checkpoint else { return Ok(()) };
        let owner = self.run(run)?;
        let (session_id, run_id) = (owner.record.session_id.clone(), owner.record.run_id.clone());
        let (pin, answers) = (owner.record.workflow.clone(), owner.absorbed);
        let snapshot = owner.snapshot.clone().filter(|_| !open.is_empty());
        self.append(&session_id, checkpoint, Some(Origin { pin: &pin, answers }), |record| {
            record.run_id = Some(run_id);
            record.snapshot = snapshot;
            record.interrupts = open;
        })?;
        Ok(())
    }

    /// Makes a checkpoint the head of a session, which is created when new.
    pub(crate) fn append(
        &mut self,
        session_id: &SessionId,
        checkpoint: &NewCheckpoint,
        origin: Option<Origin<'_>>,
        fill: impl FnOnce(&mut CheckpointRecord),
    ) -> Result<CheckpointRecord, StoreError> {
        self.last.checkpoint += 1;
        let (key, now, operation) = (self.last.checkpoint, self.now, self.operation);
        let session_key = self.session_key(session_id);
        let missing = || Malformed("a session is missing".to_owned()).told(operation);
        let session = self.sessions.get_mut(&session_key).ok_or_else(missing)?;
        let turn = session.head.as_ref().map_or(0, |head| head.turn + 1);
        let mut record = CheckpointRecord::new(checkpoint.clone(), session_id.clone(), turn, now);
        record.parent = session.head.as_ref().map(|head| head.id.clone());
        fill(&mut record);
        let passed = session.head.replace(Head { key, id: checkpoint.id.clone(), turn });
        session.checkpoints += 1;
        if let Some(head) = passed {
            session.writes.push(Write { sql: write_sql!("pass_head"), values: values![head.key] });
        }
        session.writes.extend([
            Write {
                sql: write_sql!("put_session"),
                values: values![session_key, session_id.as_str(), key, session.checkpoints, now],
            },
            Write { sql: write_sql!("add_checkpoint"), values: checkpoint_values(key, session_key, &record, origin) },
            Write {
                sql: write_sql!("add_checkpoint_payload"),
                values: values![key, &record.checkpoint.state, record.snapshot.as_ref()],
            },
        ]);
        let questions = record.interrupts.iter().zip(0_u64..);
        session.writes.extend(questions.map(|(question, position)| Write {
            sql: write_sql!("add_checkpoint_question"),
            values: question_values(key, position, question),
        }));
        self.taken_checkpoints.insert(checkpoint.id.as_str().to_owned());
        Ok(record)
    }

    fn session_key(&mut self, session_id: &SessionId) -> i64 {
        if let Some(key) = self.session_keys.get(session_id) {
            return *key;
        }
        self.last.session += 1;
        let key = self.last.session;
        self.session_keys.insert(session_id.clone(), key);
        self.sessions.insert(key, Session { head: None, checkpoints: 0, writes: Vec::new() });
        key
    }
}

fn checkpoint_values(key: i64, session: i64, record: &CheckpointRecord, origin: Option<Origin<'_>>) -> Vec<Value> {
    let origin = origin.filter(|_| record.snapshot.is_some());
    let pin = origin.map(|origin| origin.pin);
    let context = record.interrupts.first().map(|question| encode_context(&question.context));
    let new = &record.checkpoint;
    values![
        key,
        new.id.as_str(),
        session,
        record.turn_index,
        record.created_at,
        record.parent.as_ref().map(CheckpointId::as_str),
        record.parent_session.as_ref().map(SessionId::as_str),
        record.forked_from.as_ref().map(CheckpointId::as_str),
        new.label.as_ref(),
        encode_names(&new.nodes),
        &new.workflow,
        new.workflow_version.as_ref(),
        encode_names(&new.structured_stream_ids),
        record.run_id.as_ref().map(RunId::as_str),
        pin.map(|pin| &pin.id),
        pin.map(|pin| &pin.version),
        pin.map(|pin| &pin.fingerprint),
        context,
        origin.map_or(0, |origin| origin.answers),
    ]
}

fn question_values(checkpoint: i64, position: u64, question: &InterruptRecord) -> Vec<Value> {
    values![
        checkpoint,
        position,
        question.request_id.as_str(),
        question.token.expose(),
        question.ask.0.as_str(),
        &question.workflow,
        &question.node,
        &question.question,
        question.created_at,
        question.expires_at,
        question.default.as_ref(),
        question.optional_cancel,
        question.after_response_completed,
        question.run_id.as_str(),
    ]
}
