//! Wire types of Kortyx: messages, resume metadata, chunks, structured data, failures.

mod base64;
mod execution;
mod failure;
mod failure_code;
mod ids;
mod interrupt;
pub mod json;
mod message;
mod present;
mod raw_json;
mod time;
mod token;

pub use execution::{ResumeHandle, ResumeResponse};
pub use failure::{Failure, Issue};
pub use failure_code::{FailureCategory, FailureCode, UnknownFailureCode};
pub use ids::{CheckpointId, InvalidId, RequestId, RunId, SessionId};
pub use interrupt::{InterruptChunk, InterruptInput, InterruptKind, InterruptOption};
pub use json::JsonError;
pub use message::ResumeMeta;
pub use raw_json::RawJson;
pub use time::{InvalidTimestamp, Timestamp};
pub use token::ResumeToken;
