//! What a codec is.

use bytes::Bytes;

/// What a payload is. A codec may treat parts differently; the one in this crate binds what it encrypts to its part, so that an
/// answer cannot be passed off as a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// The state of a paused run.
    Snapshot,
    /// A journal entry.
    Entry,
    /// A question: what is shown, and what validates its answer.
    Question,
    /// An answer, or the default of a question.
    Answer,
    /// A chunk of what a run said.
    Chunk,
    /// The outcome of a run that has ended.
    Outcome,
    /// The state of a session after a turn.
    Checkpoint,
}

impl Part {
    /// The stable lower-case name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Entry => "entry",
            Self::Question => "question",
            Self::Answer => "answer",
            Self::Chunk => "chunk",
            Self::Outcome => "outcome",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// Turns payloads into what is stored and back.
///
/// `decode` must return what `encode` was given, also for what earlier configurations wrote. Encoding may be different each
/// time. Both run on the task that uses the store: a codec must not block.
pub trait PayloadCodec: Send + Sync + 'static {
    /// What to store.
    fn encode(&self, part: Part, plain: Bytes) -> Result<Bytes, CodecError>;

    /// What was stored.
    fn decode(&self, part: Part, stored: Bytes) -> Result<Bytes, CodecError>;
}

/// Why a payload cannot be written or read. What is stored stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The key that it was encrypted with is not in the keyring.
    #[error("it is encrypted with the key `{0}`, which the keyring does not hold; add that key")]
    UnknownKey(String),
    /// It was changed, or encrypted with another key of the same id.
    #[error("it does not decrypt with the key `{0}`: it was changed, or that id named another key")]
    Undecryptable(String),
    /// It is not encrypted, and the codec was told to refuse that.
    #[error("it is not encrypted; allow plain payloads with `reads_plain` while old ones are left")]
    Plain,
    /// It was written in a newer form.
    #[error("{0}")]
    Unsupported(String),
    /// It does not read as what it claims to be.
    #[error("{0}")]
    Malformed(String),
    /// It is larger than the codec lets a payload grow.
    #[error("it holds more than {limit} bytes, which is the codec's limit")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// It could not be encoded.
    #[error("it does not encode: {0}")]
    Encode(String),
}
