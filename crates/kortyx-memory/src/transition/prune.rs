//! What retention allows to go, in bounded batches.

use std::time::Duration;

use kortyx_protocol::Timestamp;
use kortyx_store::{Pruned, Retention, StoreError};

use crate::{
    slab::Slot,
    state::{Transition, corrupt},
};

/// How much may still be removed, and what was.
struct Batch {
    room: u32,
    pruned: Pruned,
}

impl Batch {
    /// Takes room for one thing; without any, notes that more is left.
    fn take(&mut self) -> bool {
        match self.room.checked_sub(1) {
            Some(room) => self.room = room,
            None => self.pruned.more = true,
        }
        !self.pruned.more
    }
}

impl Transition<'_> {
    pub(crate) fn prune(&mut self, retention: &Retention, limit: u32) -> Result<Pruned, StoreError> {
        let mut batch = Batch { room: limit, pruned: Pruned::default() };
        self.prune_runs(retention.finished_runs, &mut batch)?;
        self.prune_idle(retention.idle_sessions, &mut batch)?;
        self.prune_crowded(retention.checkpoints_per_session, &mut batch)?;
        self.prune_passed(retention.checkpoint_age, &mut batch)?;
        if batch.pruned != (Pruned { more: batch.pruned.more, ..Pruned::default() }) {
            self.state.tidy();
        }
        Ok(batch.pruned)
    }

    fn is_older(&self, at: Timestamp, age: Duration) -> bool {
        self.now.since(at) >= age
    }

    fn prune_runs(&mut self, age: Duration, batch: &mut Batch) -> Result<(), StoreError> {
        while let Some((at, _, slot)) = self.state.index.ended.first().copied()
            && self.is_older(at, age)
            && batch.take()
        {
            self.remove_run(slot)?;
            batch.pruned.runs += 1;
        }
        Ok(())
    }

    /// Removes idle sessions: their checkpoints, oldest first, then themselves.
    fn prune_idle(&mut self, age: Duration, batch: &mut Batch) -> Result<(), StoreError> {
        while let Some((since, session)) = self.state.index.idle.first().copied()
            && self.is_older(since, age)
            && batch.take()
        {
            if let Some(turn) = self.oldest_turn(session)? {
                self.remove_checkpoint(session, turn)?;
                batch.pruned.checkpoints += 1;
            } else {
                self.state.index.idle.remove(&(since, session));
                self.session_mut(session)?.idle_since = None;
                self.forget_unused_session(session);
                batch.pruned.sessions += 1;
            }
        }
        Ok(())
    }

    /// Removes the oldest checkpoints of sessions that have too many.
    fn prune_crowded(&mut self, keep: u32, batch: &mut Batch) -> Result<(), StoreError> {
        while let Some((count, session)) = self.state.index.crowded.last().copied()
            && count > keep.max(1) as usize
            && batch.take()
        {
            let turn = self.oldest_turn(session)?.ok_or_else(|| corrupt(self.operation))?;
            self.remove_checkpoint(session, turn)?;
            batch.pruned.checkpoints += 1;
        }
        Ok(())
    }

    /// Removes old checkpoints that are not their session's head.
    fn prune_passed(&mut self, age: Duration, batch: &mut Batch) -> Result<(), StoreError> {
        while let Some((at, session, turn)) = self.state.index.passed.first().copied()
            && self.is_older(at, age)
            && batch.take()
        {
            self.remove_checkpoint(session, turn)?;
            batch.pruned.checkpoints += 1;
        }
        Ok(())
    }

    fn oldest_turn(&self, session: Slot) -> Result<Option<u64>, StoreError> {
        Ok(self.session_at(session)?.checkpoints.front().map(|checkpoint| checkpoint.record.turn_index))
    }
}
