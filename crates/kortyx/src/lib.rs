#![doc = include_str!("../README.md")]

#[cfg(feature = "cache")]
pub use kortyx_cache as cache;
#[cfg(feature = "codec")]
pub use kortyx_codec as codec;
pub use kortyx_contracts as contracts;
#[cfg(feature = "http")]
pub use kortyx_http as http;
#[cfg(feature = "memory")]
pub use kortyx_memory as memory;
pub use kortyx_orchestrator as orchestrator;
#[cfg(feature = "postgres")]
pub use kortyx_postgres as postgres;
pub use kortyx_protocol as protocol;
#[cfg(feature = "reason")]
pub use kortyx_reason as reason;
#[cfg(feature = "redis")]
pub use kortyx_redis as redis;
pub use kortyx_runtime as runtime;
#[cfg(feature = "sqlite")]
pub use kortyx_sqlite as sqlite;
pub use kortyx_store as store;
#[cfg(any(feature = "metrics", feature = "otel", feature = "telemetry"))]
pub use kortyx_telemetry as telemetry;

pub use kortyx_contracts::*;
// The derive names this crate in what it writes, so that one dependency is enough.
pub use kortyx_contracts::FacadeChoiceOptions as ChoiceOptions;
pub use kortyx_orchestrator::*;
pub use kortyx_runtime::{
    Allowances, AskGroup, CHILD_CALLS, CallError, Counter, Draw, FinalResponse, INPUT_TOKENS, Level, NodeContext,
    NodeError, NodeOutput, NodeResult, OUTPUT_TOKENS, StateHandle, StructuredStream, TOKENS, Workflow,
    workflow::{DefinitionError, END, NodeOptions, Retry},
};

/// What most programs import.
pub mod prelude {
    pub use kortyx_contracts::{
        Ask, AskExt, Choice, ChoiceOption, FacadeChoiceOptions as ChoiceOptions, InterruptContract, MultiChoice,
        OutputContract, Picker, Text,
    };
    pub use kortyx_orchestrator::{Agent, ExecuteOptions};
    pub use kortyx_protocol::{ExecutionResult, ResumeResponse};
    #[cfg(feature = "reason")]
    pub use kortyx_reason::{Interrupts, Outputs, Reason, ReasonExt, Reasoned, Tool, ToolContext, ToolError, tool};
    pub use kortyx_runtime::{
        FinalResponse, NodeContext, NodeError, NodeOutput, NodeResult, Workflow,
        workflow::{DefinitionError, END},
    };
}

/// The pages of the guide, so that their programs run with the tests.
#[cfg(all(doctest, feature = "codec", feature = "memory", feature = "sqlite"))]
mod guide {
    #[doc = include_str!("../../../docs/guide/asking.md")]
    mod asking {}
    #[doc = include_str!("../../../docs/guide/background.md")]
    mod background {}
    #[doc = include_str!("../../../docs/guide/chat.md")]
    mod chat {}
    #[doc = include_str!("../../../docs/guide/children.md")]
    mod children {}
    #[doc = include_str!("../../../docs/guide/concurrency.md")]
    mod concurrency {}
    #[cfg(feature = "reason")]
    #[doc = include_str!("../../../docs/guide/contracts.md")]
    mod contracts {}
    #[doc = include_str!("../../../docs/guide/conversations.md")]
    mod conversations {}
    #[doc = include_str!("../../../docs/guide/graphs.md")]
    mod graphs {}
    #[cfg(feature = "http")]
    #[doc = include_str!("../../../docs/guide/http.md")]
    mod http {}
    #[cfg(feature = "genai")]
    #[doc = include_str!("../../../docs/guide/models.md")]
    mod models {}
    #[cfg(feature = "reason")]
    #[doc = include_str!("../../../docs/guide/limits.md")]
    mod limits {}
    #[doc = include_str!("../../../docs/guide/operations.md")]
    mod operations {}
    #[cfg(feature = "reason")]
    #[doc = include_str!("../../../docs/guide/outputs.md")]
    mod outputs {}
    #[doc = include_str!("../../../docs/guide/replay.md")]
    mod replay {}
    #[doc = include_str!("../../../docs/guide/stores.md")]
    mod stores {}
    #[cfg(all(feature = "http", feature = "metrics", feature = "otel", feature = "telemetry"))]
    #[doc = include_str!("../../../docs/guide/telemetry.md")]
    mod telemetry {}
    #[cfg(all(feature = "genai", feature = "mcp"))]
    #[doc = include_str!("../../../docs/guide/tools.md")]
    mod tools {}
    #[doc = include_str!("../../../docs/guide/versions.md")]
    mod versions {}
}
