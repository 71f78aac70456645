//! Sessions and their checkpoints: append, read, and what keeps a session in being.

use std::sync::Arc;

use kortyx_protocol::{CheckpointId, SessionId};
use kortyx_store::{CheckpointRecord, InterruptRecord, NewCheckpoint, StoreError, StoreErrorKind};

use crate::{
    run::Payload,
    session::{Basis, Checkpoint, Session},
    slab::Slot,
    state::{State, Transition, corrupt},
};

impl Transition<'_> {
    pub(crate) fn append_checkpoint(
        &mut self,
        session_id: &SessionId,
        checkpoint: NewCheckpoint,
    ) -> Result<CheckpointRecord, StoreError> {
        self.check_checkpoint(Some(&checkpoint))?;
        let session = self.session_slot(session_id);
        self.append(session, checkpoint, |_| {}, None)?;
        let appended = self.session_at(session)?.head().map(|head| head.record.clone());
        appended.ok_or_else(|| corrupt(self.operation))
    }

    pub(crate) fn head(&self, session_id: &SessionId) -> Result<Option<CheckpointRecord>, StoreError> {
        let Some(slot) = self.find_session(session_id) else { return Ok(None) };
        Ok(self.session_at(slot)?.head().map(|checkpoint| checkpoint.record.clone()))
    }

    pub(crate) fn list_checkpoints(&self, session_id: &SessionId) -> Result<Vec<CheckpointRecord>, StoreError> {
        let Some(slot) = self.find_session(session_id) else { return Ok(Vec::new()) };
        Ok(self.session_at(slot)?.checkpoints.iter().map(|checkpoint| checkpoint.record.clone()).collect())
    }

    pub(crate) fn checkpoint(&self, id: &CheckpointId) -> Option<CheckpointRecord> {
        self.find_checkpoint(id).map(|(_, checkpoint)| checkpoint.record.clone())
    }

    pub(super) fn find_checkpoint(&self, id: &CheckpointId) -> Option<(Slot, &Checkpoint)> {
        let (session, turn) = *self.state.turns.get(id)?;
        Some((session, self.state.sessions.get(session)?.at(turn)?))
    }

    pub(super) fn find_session(&self, session_id: &SessionId) -> Option<Slot> {
        self.state.session_slots.get(session_id).copied()
    }

    /// The session, which is created when new.
    pub(super) fn session_slot(&mut self, session_id: &SessionId) -> Slot {
        if let Some(slot) = self.find_session(session_id) {
            return slot;
        }
        let slot = self.state.sessions.insert(Session::new(session_id.clone()));
        self.state.session_slots.insert(session_id.clone(), slot);
        slot
    }

    /// Refuses a checkpoint that cannot be appended.
    pub(super) fn check_checkpoint(&self, checkpoint: Option<&NewCheckpoint>) -> Result<(), StoreError> {
        let Some(checkpoint) = checkpoint else { return Ok(()) };
        self.check_size("a checkpoint's state", &checkpoint.state)?;
        self.check_new_checkpoint(&checkpoint.id)
    }

    pub(super) fn check_new_checkpoint(&self, id: &CheckpointId) -> Result<(), StoreError> {
        if self.state.turns.contains_key(id) {
            return Err(self.error(StoreErrorKind::AlreadyExists, format!("checkpoint {id} exists")));
        }
        Ok(())
    }

    /// Appends the checkpoint of a run's turn, which ended with these open questions.
    pub(super) fn append_turn(
        &mut self,
        run: Slot,
        checkpoint: NewCheckpoint,
        open: Vec<InterruptRecord>,
    ) -> Result<(), StoreError> {
        let owner = self.run_at(run)?;
        let (session, run_id) = (owner.session, owner.id.clone());
        let snapshot = match &owner.payload {
            Payload::Snapshot(snapshot) if !open.is_empty() => Some(snapshot.clone()),
            _ => None,
        };
        let pin = self.state.pins.get(owner.pin).filter(|_| snapshot.is_some());
        let basis = pin.map(|pin| Basis { pin: Arc::clone(pin), answers: owner.answers });
        let fill = |record: &mut CheckpointRecord| {
            record.run_id = Some(run_id);
            record.snapshot = snapshot;
            record.interrupts = open;
        };
        self.append(session, checkpoint, fill, basis)
    }

    /// Makes a checkpoint the session's head.
    pub(super) fn append(
        &mut self,
        session: Slot,
        checkpoint: NewCheckpoint,
        fill: impl FnOnce(&mut CheckpointRecord),
        basis: Option<Basis>,
    ) -> Result<(), StoreError> {
        let State { sessions, index, turns, .. } = &mut *self.state;
        let owner = sessions.get_mut(session).ok_or_else(|| corrupt(self.operation))?;
        let head = owner.head().map(|head| (head.record.turn_index, head.record.created_at));
        let turn = head.map_or(0, |(turn, _)| turn + 1);
        let mut record = CheckpointRecord::new(checkpoint, owner.id.clone(), turn, self.now);
        record.parent = owner.head().map(|head| head.record.checkpoint.id.clone());
        fill(&mut record);
        if let Some((turn, created_at)) = head {
            index.passed.insert((created_at, session, turn));
        }
        turns.insert(record.checkpoint.id.clone(), (session, turn));
        owner.checkpoints.push_back(Box::new(Checkpoint { record, basis }));
        self.count_checkpoints(session, 1)?;
        self.session_changed(session)
    }

    /// Removes a checkpoint. Of the head, the caller settles which one is head then.
    pub(super) fn remove_checkpoint(&mut self, session: Slot, turn: u64) -> Result<CheckpointRecord, StoreError> {
        let State { sessions, index, turns, .. } = &mut *self.state;
        let owner = sessions.get_mut(session).ok_or_else(|| corrupt(self.operation))?;
        let position = owner.position(turn).ok_or_else(|| corrupt(self.operation))?;
        let removed = owner.checkpoints.remove(position).ok_or_else(|| corrupt(self.operation))?;
        let record = removed.record;
        turns.remove(&record.checkpoint.id);
        index.passed.remove(&(record.created_at, session, turn));
        if owner.checkpoints.len() * 4 < owner.checkpoints.capacity() {
            owner.checkpoints.shrink_to_fit();
        }
        self.count_checkpoints(session, -1)?;
        Ok(record)
    }

    /// Counts a checkpoint that came (1) or went (-1).
    fn count_checkpoints(&mut self, session: Slot, change: isize) -> Result<(), StoreError> {
        let count = self.session_at(session)?.checkpoints.len();
        let before = count.saturating_add_signed(-change);
        let crowded = &mut self.state.index.crowded;
        if before > 1 {
            crowded.remove(&(before, session));
        }
        if count > 1 {
            crowded.insert((count, session));
        }
        Ok(())
    }

    /// Notes that a session changed just now.
    pub(super) fn session_changed(&mut self, session: Slot) -> Result<(), StoreError> {
        let State { sessions, index, .. } = &mut *self.state;
        let owner = sessions.get_mut(session).ok_or_else(|| corrupt(self.operation))?;
        let is_idle = owner.active == 0 && !owner.checkpoints.is_empty();
        let idle_since = is_idle.then_some(self.now);
        if owner.idle_since == idle_since {
            return Ok(());
        }
        if let Some(since) = std::mem::replace(&mut owner.idle_since, idle_since) {
            index.idle.remove(&(since, session));
        }
        if let Some(since) = idle_since {
            index.idle.insert((since, session));
        }
        Ok(())
    }

    /// Removes a session of which nothing is left.
    pub(super) fn forget_unused_session(&mut self, slot: Slot) {
        if self.state.sessions.get(slot).is_some_and(Session::is_unused)
            && let Some(session) = self.state.sessions.remove(slot)
        {
            self.state.session_slots.remove(&session.id);
        }
    }
}
