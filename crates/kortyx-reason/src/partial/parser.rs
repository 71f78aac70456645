//! The parser: bytes in, changes of declared fields out.

use kortyx_protocol::{RawJson, StructuredChange};
use serde_json::Value;

use super::{
    Fields, PartialJsonError, PartialLimits, Problem, Wrapping, after::After, before::Before, error::Fault,
    machine::Machine, utf8::Utf8,
};

/// Reads one JSON document while it is written.
///
/// The bytes may be split anywhere: in a character, an escape, a surrogate pair or a number. Every split gives the same changes,
/// once the deltas of a text are joined, and the same error at the same place. The work is linear in the length of the text,
/// however it is split, and nothing recurses. See the [module](super) for what is told and tolerated.
#[derive(Debug)]
pub struct PartialJson {
    wrapping: Wrapping,
    /// Bytes that may still come.
    room: usize,
    limit: usize,
    utf8: Utf8,
    text: String,
    stage: Stage,
    machine: Machine,
    start: usize,
    error: Option<PartialJsonError>,
}

#[derive(Debug)]
enum Stage {
    Before(Before),
    Within { has_fence: bool },
    After(After),
}

impl PartialJson {
    /// A reader of one document, within the default limits.
    pub fn new(fields: Fields, wrapping: Wrapping) -> Self {
        Self::with_limits(fields, wrapping, PartialLimits::default())
    }

    /// A reader of one document, within these limits.
    pub fn with_limits(fields: Fields, wrapping: Wrapping, limits: PartialLimits) -> Self {
        Self {
            wrapping,
            room: limits.bytes,
            limit: limits.bytes,
            utf8: Utf8::default(),
            text: String::new(),
            stage: Stage::Before(Before::new(wrapping)),
            machine: Machine::new(fields, limits),
            start: 0,
            error: None,
        }
    }

    /// Reads a text that is complete.
    ///
    /// ```
    /// use kortyx_reason::partial::{PartialJson, Wrapping};
    ///
    /// let value = PartialJson::read("Sure:\n```json\n{\"a\": 1}\n```", Wrapping::AroundObject)?;
    /// assert_eq!(value, serde_json::json!({"a": 1}));
    /// # Ok::<(), kortyx_reason::partial::PartialJsonError>(())
    /// ```
    pub fn read(text: &str, wrapping: Wrapping) -> Result<Value, PartialJsonError> {
        let mut json = Self::new(Fields::default(), wrapping);
        json.push(text.as_bytes(), &mut Vec::new())?;
        json.finish_value()
    }

    /// Reads on, and adds the changes that are certain now.
    ///
    /// After an error, what was right before it is in `changes`, and every further call returns the same error.
    pub fn push(&mut self, bytes: &[u8], changes: &mut Vec<StructuredChange>) -> Result<(), PartialJsonError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        self.take(bytes, changes).map_err(|fault| {
            let error = self.explain(fault);
            self.error.insert(error).clone()
        })
    }

    /// Whether nothing was read but white space.
    pub(super) fn is_blank(&self) -> bool {
        !self.utf8.is_within() && self.text.trim().is_empty()
    }

    /// Takes the text for complete. Gives the document as it was written, without what surrounds it.
    pub fn finish(mut self) -> Result<RawJson, PartialJsonError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let end = self.end().map_err(|fault| self.explain(fault))?;
        RawJson::parse(self.text.get(self.start..end).unwrap_or_default())
            .map_err(|error| PartialJsonError::of(error, self.start))
    }

    /// Takes the text for complete. Gives the document as a value.
    pub(super) fn finish_value(self) -> Result<Value, PartialJsonError> {
        let start = self.start;
        self.finish()?.to_value().map_err(|error| PartialJsonError::of(error, start))
    }

    fn take(&mut self, bytes: &[u8], changes: &mut Vec<StructuredChange>) -> Result<(), Fault> {
        let (within, over) = bytes.split_at_checked(self.room).unwrap_or((bytes, &[]));
        self.room -= within.len();
        let decoded = self.utf8.push(within, &mut self.text);
        // What is wrong in the text before comes first.
        self.go_on(changes)?;
        decoded?;
        if over.is_empty() { Ok(()) } else { Err(Problem::TooLong { limit: self.limit }.at(self.limit)) }
    }

    fn go_on(&mut self, changes: &mut Vec<StructuredChange>) -> Result<(), Fault> {
        if let Stage::Before(before) = &mut self.stage
            && let Some(start) = before.read(&self.text)
        {
            self.start = start;
            self.machine.begin_at(start);
            self.stage = Stage::Within { has_fence: before.has_fence() };
        }
        if let Stage::Within { has_fence } = self.stage {
            self.machine.advance(&self.text, changes)?;
            if self.machine.is_done() {
                self.stage = Stage::After(After::new(self.wrapping, has_fence, self.machine.at()));
            }
        }
        if let Stage::After(after) = &mut self.stage { after.read(&self.text) } else { Ok(()) }
    }

    /// Where the document ends, if it does.
    fn end(&mut self) -> Result<usize, Fault> {
        if self.utf8.is_within() {
            return Err(Problem::Ended.at(self.text.len()));
        }
        match &self.stage {
            Stage::Before(before) => Err(before.fault(&self.text)),
            Stage::Within { .. } => self.machine.finish(&self.text).map(|()| self.machine.at()),
            Stage::After(_) => Ok(self.machine.at()),
        }
    }

    fn explain(&self, Fault { problem, offset }: Fault) -> PartialJsonError {
        let path = match self.stage {
            Stage::Within { .. } => self.machine.pointer(&self.text),
            Stage::Before(_) | Stage::After(_) => String::new(),
        };
        PartialJsonError { problem, offset, path }
    }
}
