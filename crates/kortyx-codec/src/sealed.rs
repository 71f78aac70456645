//! Requests with their payloads encoded.

use bytes::Bytes;
use kortyx_store::{
    AnswerRequest, Finish, NewCheckpoint, NewInterrupt, NewResponse, OpenRun, Record, StoreError, StoreErrorKind,
    Suspend,
};

use crate::{CodecError, Part, PayloadCodec};

/// Encodes payloads for one operation.
pub(crate) struct Sealer<'a> {
    pub(crate) codec: &'a dyn PayloadCodec,
    pub(crate) operation: &'static str,
}

impl Sealer<'_> {
    pub(crate) fn open(&self, request: OpenRun) -> Result<OpenRun, StoreError> {
        let snapshot = self.bytes(Part::Snapshot, request.snapshot)?;
        Ok(OpenRun { snapshot, chunks: self.chunks(request.chunks)?, ..request })
    }

    pub(crate) fn record(&self, request: Record) -> Result<Record, StoreError> {
        let entries = request.entries.into_iter().map(|entry| self.bytes(Part::Entry, entry));
        Ok(Record {
            entries: entries.collect::<Result<_, _>>()?,
            publish: self.publish(request.publish)?,
            chunks: self.chunks(request.chunks)?,
            response: request.response.map(|response| self.response(response)).transpose()?,
            ..request
        })
    }

    fn response(&self, response: NewResponse) -> Result<NewResponse, StoreError> {
        Ok(NewResponse {
            outcome: self.bytes(Part::Outcome, response.outcome)?,
            checkpoint: response.checkpoint.map(|checkpoint| self.checkpoint(checkpoint)).transpose()?,
        })
    }

    pub(crate) fn suspend(&self, request: Suspend) -> Result<Suspend, StoreError> {
        Ok(Suspend {
            snapshot: self.bytes(Part::Snapshot, request.snapshot)?,
            publish: self.publish(request.publish)?,
            chunks: self.chunks(request.chunks)?,
            checkpoint: request.checkpoint.map(|checkpoint| self.checkpoint(checkpoint)).transpose()?,
            ..request
        })
    }

    pub(crate) fn answer(&self, mut request: AnswerRequest) -> Result<AnswerRequest, StoreError> {
        for answer in &mut request.answers {
            answer.answer = self.bytes(Part::Answer, std::mem::take(&mut answer.answer))?;
        }
        Ok(request)
    }

    pub(crate) fn finish(&self, request: Finish) -> Result<Finish, StoreError> {
        Ok(Finish {
            outcome: self.bytes(Part::Outcome, request.outcome)?,
            chunks: self.chunks(request.chunks)?,
            checkpoint: request.checkpoint.map(|checkpoint| self.checkpoint(checkpoint)).transpose()?,
            ..request
        })
    }

    pub(crate) fn checkpoint(&self, checkpoint: NewCheckpoint) -> Result<NewCheckpoint, StoreError> {
        Ok(NewCheckpoint { state: self.bytes(Part::Checkpoint, checkpoint.state)?, ..checkpoint })
    }

    fn chunks(&self, chunks: Vec<Bytes>) -> Result<Vec<Bytes>, StoreError> {
        chunks.into_iter().map(|chunk| self.bytes(Part::Chunk, chunk)).collect()
    }

    fn publish(&self, questions: Vec<NewInterrupt>) -> Result<Vec<NewInterrupt>, StoreError> {
        let seal = |new: NewInterrupt| {
            Ok(NewInterrupt {
                question: self.bytes(Part::Question, new.question)?,
                default: new.default.map(|default| self.bytes(Part::Answer, default)).transpose()?,
                ..new
            })
        };
        questions.into_iter().map(seal).collect()
    }

    fn bytes(&self, part: Part, plain: Bytes) -> Result<Bytes, StoreError> {
        self.codec.encode(part, plain).map_err(|error| {
            let kind = match error {
                CodecError::TooLarge { .. } => StoreErrorKind::TooLarge,
                _ => StoreErrorKind::Backend,
            };
            StoreError::new(kind, self.operation, format!("the {} is not stored: {error}", part.as_str()))
                .with_source(error)
        })
    }
}
