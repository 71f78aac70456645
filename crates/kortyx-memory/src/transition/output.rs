//! What a run said.

use bytes::Bytes;
use kortyx_protocol::RunId;
use kortyx_store::{ChunkPage, StoreError};

use crate::{slab::Slot, state::Transition};

impl Transition<'_> {
    pub(super) fn check_chunks(&self, chunks: &[Bytes]) -> Result<(), StoreError> {
        chunks.iter().try_for_each(|chunk| self.check_size("a chunk", chunk))
    }

    pub(super) fn say(&mut self, slot: Slot, chunks: Vec<Bytes>) -> Result<(), StoreError> {
        if chunks.is_empty() {
            return Ok(());
        }
        self.change(slot, |run| run.chunks.extend(chunks))
    }

    pub(crate) fn chunks(&self, run_id: &RunId, after: u64, limit: u32) -> Result<Option<ChunkPage>, StoreError> {
        let Some(slot) = self.find_run(run_id) else { return Ok(None) };
        let run = self.run_at(slot)?;
        let begin = usize::try_from(after).unwrap_or(usize::MAX);
        let read = run.chunks.iter().skip(begin).take(limit as usize).cloned();
        let mut page = ChunkPage::new(after, read, run.chunks.len() as u64, run.status);
        page.response_completed = run.response.is_some();
        Ok(Some(page))
    }
}
