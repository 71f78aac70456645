//! Wire types of Kortyx: messages, resume metadata, chunks, structured data, failures.
//!
#![doc = include_str!("../README.md")]

mod answer_request;
#[cfg(test)]
mod arbitrary;
mod base64;
mod buffered;
mod chat;
mod checkpoint;
mod checkpoint_request;
mod chunk;
mod chunk_parts;
mod execution;
mod execution_request;
mod execution_result;
mod failure;
mod failure_code;
mod ids;
mod interrupt;
pub mod json;
mod limits;
mod message;
mod millis;
mod pending_request;
mod present;
mod raw_json;
mod request;
mod resume_meta;
#[cfg(feature = "schema")]
mod schema;
mod sse;
mod structured;
mod structured_chunk;
mod text;
mod time;
mod token;

pub use answer_request::AnswerRequest;
pub use buffered::BufferedResponse;
pub use chat::ChatRequest;
pub use checkpoint::{CheckpointEffects, CheckpointSummary, CheckpointView, Forked, RolledBack};
pub use checkpoint_request::CheckpointRequest;
pub use chunk::StreamChunk;
pub use chunk_parts::{DoneData, TextDelta, TextMark};
pub use execution::{PendingQuestion, ResumeHandle, ResumeResponse};
pub use execution_request::{BatchAnswer, ExecuteRequest, ResumeAnswers, ResumeRequest};
pub use execution_result::{ExecutionResult, Usage};
pub use failure::{Failure, Issue};
pub use failure_code::{FailureCategory, FailureCode, UnknownFailureCode};
pub use ids::{CheckpointId, InvalidId, RequestId, RunId, SessionId};
pub use interrupt::{InterruptChunk, InterruptInput, InterruptKind, InterruptOption};
pub use json::JsonError;
pub use limits::Limits;
pub use message::{ChatMessage, Role};
pub use pending_request::{PendingRequest, PendingSchema};
pub use raw_json::RawJson;
pub use resume_meta::{ResumeMeta, parse_resume_meta};
pub use sse::{SseError, SseEvent, SseReader, SseWriter};
pub use structured::{ReduceError, StructuredData, StructuredStreams};
pub use structured_chunk::{StructuredChange, StructuredChunk};
pub use time::{InvalidTimestamp, Timestamp};
pub use token::ResumeToken;
