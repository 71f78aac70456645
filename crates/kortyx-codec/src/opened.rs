//! Records with their payloads decoded.

use bytes::Bytes;
use kortyx_protocol::{RequestId, RunId};
use kortyx_store::{
    AnswerRecord, CheckpointRecord, ChunkPage, Claimed, InterruptRecord, RunHistory, RunRecord, StoreError,
    StoreErrorKind,
};

use crate::{Part, PayloadCodec};

/// Decodes payloads for one operation.
pub(crate) struct Opener<'a> {
    pub(crate) codec: &'a dyn PayloadCodec,
    pub(crate) operation: &'static str,
}

impl Opener<'_> {
    pub(crate) fn run(&self, mut run: RunRecord) -> Result<RunRecord, StoreError> {
        let owner = run.run_id.clone();
        let outcome = |outcome| self.bytes(Part::Outcome, outcome, owner.as_str());
        run.outcome = run.outcome.map(outcome).transpose()?;
        run.response = run.response.map(outcome).transpose()?;
        Ok(run)
    }

    pub(crate) fn interrupt(&self, mut record: InterruptRecord) -> Result<InterruptRecord, StoreError> {
        let owner = record.request_id.clone();
        let answer = |bytes| self.bytes(Part::Answer, bytes, owner.as_str());
        record.answer = record.answer.map(answer).transpose()?;
        record.default = record.default.map(answer).transpose()?;
        record.question = self.bytes(Part::Question, record.question, owner.as_str())?;
        Ok(record)
    }

    pub(crate) fn chunks(&self, mut page: ChunkPage, run_id: &RunId) -> Result<ChunkPage, StoreError> {
        for record in &mut page.chunks {
            record.chunk = self.bytes(Part::Chunk, std::mem::take(&mut record.chunk), run_id.as_str())?;
        }
        Ok(page)
    }

    pub(crate) fn interrupts(&self, records: Vec<InterruptRecord>) -> Result<Vec<InterruptRecord>, StoreError> {
        records.into_iter().map(|record| self.interrupt(record)).collect()
    }

    pub(crate) fn answers(&self, answers: Vec<AnswerRecord>) -> Result<Vec<AnswerRecord>, StoreError> {
        let open = |answer: AnswerRecord| {
            Ok(AnswerRecord { answer: self.answer(answer.answer, &answer.request_id)?, ..answer })
        };
        answers.into_iter().map(open).collect()
    }

    pub(crate) fn answer(&self, answer: Bytes, request_id: &RequestId) -> Result<Bytes, StoreError> {
        self.bytes(Part::Answer, answer, request_id.as_str())
    }

    pub(crate) fn claimed(&self, claimed: Claimed) -> Result<Claimed, StoreError> {
        let owner = claimed.run.run_id.clone();
        let entry = |entry| self.bytes(Part::Entry, entry, owner.as_str());
        Ok(Claimed {
            lease: claimed.lease,
            run: self.run(claimed.run)?,
            snapshot: self.bytes(Part::Snapshot, claimed.snapshot, owner.as_str())?,
            entries: claimed.entries.into_iter().map(entry).collect::<Result<_, _>>()?,
            answers: self.answers(claimed.answers)?,
        })
    }

    pub(crate) fn history(&self, mut history: RunHistory) -> Result<RunHistory, StoreError> {
        let owner = history.run.run_id.clone();
        let open = |part, bytes| self.bytes(part, bytes, owner.as_str());
        history.snapshot = history.snapshot.map(|snapshot| open(Part::Snapshot, snapshot)).transpose()?;
        let entries = history.entries.into_iter().map(|entry| open(Part::Entry, entry));
        history.entries = entries.collect::<Result<_, _>>()?;
        history.questions = self.interrupts(history.questions)?;
        history.run = self.run(history.run)?;
        Ok(history)
    }

    pub(crate) fn checkpoint(&self, mut record: CheckpointRecord) -> Result<CheckpointRecord, StoreError> {
        let owner = record.checkpoint.id.clone();
        let snapshot = record.snapshot.map(|snapshot| self.bytes(Part::Snapshot, snapshot, owner.as_str()));
        record.snapshot = snapshot.transpose()?;
        record.checkpoint.state = self.bytes(Part::Checkpoint, record.checkpoint.state, owner.as_str())?;
        record.interrupts = self.interrupts(record.interrupts)?;
        Ok(record)
    }

    pub(crate) fn checkpoints(&self, records: Vec<CheckpointRecord>) -> Result<Vec<CheckpointRecord>, StoreError> {
        records.into_iter().map(|record| self.checkpoint(record)).collect()
    }

    fn bytes(&self, part: Part, stored: Bytes, owner: &str) -> Result<Bytes, StoreError> {
        self.codec.decode(part, stored).map_err(|error| {
            let message = format!("the {} of `{owner}` does not read: {error}", part.as_str());
            StoreError::new(StoreErrorKind::Corrupt, self.operation, message).with_source(error)
        })
    }
}
