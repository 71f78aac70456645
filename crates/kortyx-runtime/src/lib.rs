#![doc = include_str!("../README.md")]

mod ask;
mod child;
mod compose;
mod context;
mod emit;
mod engine;
mod error;
mod event;
mod execution;
mod flow;
pub mod inspect;
mod io;
mod mark;
mod meter;
mod observe;
mod output;
mod pass;
mod response;
mod scheduler;
mod shared;
mod sound;
mod state;
mod step;
mod step_streams;
mod trace;
mod turn;
pub mod workflow;

pub use ask::AskGroup;
pub use context::{NodeContext, StateHandle};
pub use emit::StructuredStream;
pub use engine::{Engine, Limits};
pub use error::{CallError, NodeError};
pub use execution::{Execution, ExecutionHandle};
pub use io::{Batch, ChunkSink, Host, Io, IoFuture, RecordError, RecordReply, Recorder};
pub use meter::{Allowances, CHILD_CALLS, Counter, Draw, INPUT_TOKENS, Level, OUTPUT_TOKENS, TOKENS};
pub use observe::{CallName, Captures, Content, End, ModelName, Moment, Observer, ParentCall, Visit, Work};
pub use output::{NodeOutput, NodeResult};
pub use response::{CompletedResponse, FinalResponse};
pub use trace::TurnState;
pub use turn::{
    DeliveredAnswer, Ending, EngineError, OpenQuestion, Outcome, Restore, RestoreError, RunInfo, Start, Suspension,
    Turn,
};
pub use workflow::{Definition, Registry, Workflow};
