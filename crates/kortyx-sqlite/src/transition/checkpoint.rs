//! Appending a checkpoint outside of a run.

use kortyx_protocol::SessionId;
use kortyx_store::{CheckpointRecord, NewCheckpoint, StoreError};

use super::Transition;
use crate::batch::{Batch, Wants};

/// See [`Store::append_checkpoint`](kortyx_store::Store::append_checkpoint).
pub(crate) struct Append {
    pub(crate) session_id: SessionId,
    pub(crate) checkpoint: NewCheckpoint,
}

impl Transition for Append {
    const NAME: &'static str = "append checkpoint";
    type Outcome = CheckpointRecord;

    fn wants(&self, wants: &mut Wants) {
        wants.session(&self.session_id, &self.checkpoint.id);
    }

    fn apply(&self, batch: &mut Batch) -> Result<CheckpointRecord, StoreError> {
        batch.check_checkpoint(Some(&self.checkpoint.id))?;
        batch.append(&self.session_id, &self.checkpoint, None, |_| {})
    }
}
