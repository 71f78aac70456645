#![doc = include_str!("../README.md")]

mod agent;
mod answer;
mod builder;
mod cancel;
mod chat;
mod discover;
mod driver;
mod environment;
mod error;
mod execute;
mod follow;
mod hooks;
mod host;
mod present;
mod session;
mod settings;
mod shutdown;
mod telemetry;
mod wait;
mod work;
mod worker;

pub use agent::Agent;
pub use answer::{Acceptance, Answer};
pub use builder::AgentBuilder;
pub use chat::{ChatInput, ChatOptions, ChatStream};
pub use discover::{Interrupt, Interrupts, RunView};
pub use environment::EnvironmentError;
pub use error::{BuildError, OrchestratorError, RefusalReason, RefusedAnswer};
pub use execute::ExecuteOptions;
pub use follow::{RunChunk, RunStream};
pub use hooks::{ResponseFinalized, TurnAccepted};
pub use kortyx_runtime::{CallName, Captures, Content, End, ModelName, ParentCall, Visit};
pub use settings::{OnDisconnect, WaitingPolicy};
pub use telemetry::{
    AskedFacts, CancelReason, Correlation, Fact, InteractionMode, QuestionContent, ResumeOutcome, ResumeReason,
    TelemetrySink, TraceIds,
};
pub use worker::{Worker, WorkerConfig, WorkerPass};
