//! Wire types of Kortyx: messages, resume metadata, chunks, structured data, failures.

#[cfg(test)]
mod arbitrary;
mod base64;
mod chat;
mod execution;
mod failure;
mod failure_code;
mod ids;
mod interrupt;
pub mod json;
mod limits;
mod message;
mod present;
mod raw_json;
mod request;
mod resume_meta;
mod text;
mod time;
mod token;

pub use chat::ChatRequest;
pub use execution::{ResumeHandle, ResumeResponse};
pub use failure::{Failure, Issue};
pub use failure_code::{FailureCategory, FailureCode, UnknownFailureCode};
pub use ids::{CheckpointId, InvalidId, RequestId, RunId, SessionId};
pub use interrupt::{InterruptChunk, InterruptInput, InterruptKind, InterruptOption};
pub use json::JsonError;
pub use limits::Limits;
pub use message::{ChatMessage, Role};
pub use raw_json::RawJson;
pub use resume_meta::{ResumeMeta, parse_resume_meta};
pub use time::{InvalidTimestamp, Timestamp};
pub use token::ResumeToken;
