//! The codes of failures, and what each means for a caller.

use std::{error::Error, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Who or what a failure concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureCategory {
    /// The request is malformed or not allowed.
    Request,
    /// A value does not fit its schema.
    Validation,
    /// Something named does not exist, or is not visible to the caller.
    NotFound,
    /// The state of things does not allow it.
    Conflict,
    /// The workflow failed.
    Execution,
    /// A model provider failed.
    Provider,
    /// The storage failed.
    Persistence,
    /// Code and recorded work do not fit together.
    Contract,
    /// Something grew over its limit.
    Limit,
}

impl FailureCategory {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Validation => "validation",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Execution => "execution",
            Self::Provider => "provider",
            Self::Persistence => "persistence",
            Self::Contract => "contract",
            Self::Limit => "limit",
        }
    }
}

impl fmt::Display for FailureCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text is not a code that this version knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownFailureCode;

impl fmt::Display for UnknownFailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown failure code")
    }
}

impl Error for UnknownFailureCode {}

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident = $name:literal: $category:ident, $status:literal, $retryable:expr;)*) => {
        /// What went wrong; stable names that clients may compare.
        ///
        /// Each code has a category, an HTTP status and a default for whether the same call may succeed later without
        /// a change (`None`: it depends). The crate's front page shows the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum FailureCode {
            $($(#[$doc])* $code,)*
        }

        impl FailureCode {
            /// Every code, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$code,)*];

            /// The name on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)*
                }
            }

            /// The code with this name.
            pub fn parse(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$code),)*
                    _ => None,
                }
            }

            /// Whom it concerns.
            pub fn category(self) -> FailureCategory {
                match self {
                    $(Self::$code => FailureCategory::$category,)*
                }
            }

            /// The HTTP status of a response that carries it.
            pub fn status(self) -> u16 {
                match self {
                    $(Self::$code => $status,)*
                }
            }

            /// Whether the same call may succeed later without a change; `None` when that depends.
            pub fn retryable(self) -> Option<bool> {
                match self {
                    $(Self::$code => $retryable,)*
                }
            }
        }
    };
}

codes! {
    /// The request is malformed.
    InvalidRequest = "INVALID_REQUEST": Request, 400, Some(false);
    /// The input does not fit the workflow's schema.
    InvalidInput = "INVALID_INPUT": Validation, 422, Some(false);
    /// What the workflow returned does not fit its schema.
    InvalidOutput = "INVALID_OUTPUT": Validation, 500, Some(false);
    /// The answer does not fit its question, which stays open.
    InvalidResponse = "INVALID_RESPONSE": Validation, 422, Some(false);
    /// The resume handle is malformed.
    InvalidResume = "INVALID_RESUME": Request, 400, Some(false);
    /// No workflow with this id and version is registered.
    UnknownWorkflow = "UNKNOWN_WORKFLOW": NotFound, 404, Some(false);
    /// The code names a contract that is not registered.
    MissingContract = "MISSING_CONTRACT": Contract, 500, Some(false);
    /// The recorded contract and the code's are not the same.
    ContractMismatch = "CONTRACT_MISMATCH": Contract, 409, Some(false);
    /// The definition that the run is bound to changed or is gone; the run is parked.
    WorkflowChanged = "WORKFLOW_CHANGED": Contract, 409, None;
    /// The code took another way than the journal; the run is parked.
    ReplayDiverged = "REPLAY_DIVERGED": Contract, 409, None;
    /// Another answer was accepted.
    InterruptAlreadyResolved = "INTERRUPT_ALREADY_RESOLVED": Conflict, 409, Some(false);
    /// The question's time is past.
    InterruptExpired = "INTERRUPT_EXPIRED": Conflict, 410, Some(false);
    /// The question was cancelled.
    InterruptCancelled = "INTERRUPT_CANCELLED": Conflict, 410, Some(false);
    /// The question was withdrawn.
    InterruptSuperseded = "INTERRUPT_SUPERSEDED": Conflict, 410, Some(false);
    /// The question belongs to another session, or token and request do not belong together.
    InterruptMismatch = "INTERRUPT_MISMATCH": Conflict, 409, Some(false);
    /// The caller may see nothing, because nothing says whose things it may see.
    ScopeRequired = "SCOPE_REQUIRED": Request, 403, Some(false);
    /// It does not exist, or the caller may not see it.
    NotFound = "NOT_FOUND": NotFound, 404, Some(false);
    /// The state of things does not allow it now.
    Conflict = "CONFLICT": Conflict, 409, None;
    /// A node's output matches no edge.
    NoRoute = "NO_ROUTE": Execution, 500, Some(false);
    /// Two branches wrote the same field.
    GraphOutputConflict = "GRAPH_OUTPUT_CONFLICT": Execution, 500, Some(false);
    /// A branch that this one waits for failed.
    GraphDependencyFailed = "GRAPH_DEPENDENCY_FAILED": Execution, 500, Some(false);
    /// A graph with fan-out has a cycle.
    GraphCycle = "GRAPH_CYCLE": Execution, 500, Some(false);
    /// A branch tried to hand the run over to another workflow.
    GraphBranchHandoff = "GRAPH_BRANCH_HANDOFF": Execution, 500, Some(false);
    /// The workflow failed.
    ExecutionFailed = "EXECUTION_FAILED": Execution, 500, None;
    /// The run was cancelled.
    ExecutionCancelled = "EXECUTION_CANCELLED": Execution, 409, Some(false);
    /// The run used up one of its limits.
    LimitReached = "LIMIT_REACHED": Limit, 500, Some(false);
    /// The storage failed or cannot be reached.
    PersistenceError = "PERSISTENCE_ERROR": Persistence, 503, Some(true);
    /// A body, an answer or a state is too large.
    PayloadTooLarge = "PAYLOAD_TOO_LARGE": Limit, 413, Some(false);
    /// The model provider answered with an error status.
    ProviderHttpError = "PROVIDER_HTTP_ERROR": Provider, 502, None;
    /// The model provider could not be reached.
    ProviderTransportError = "PROVIDER_TRANSPORT_ERROR": Provider, 502, Some(true);
    /// The model provider's answer does not read.
    ProviderInvalidResponse = "PROVIDER_INVALID_RESPONSE": Provider, 502, Some(true);
    /// The model refused.
    ProviderRefusal = "PROVIDER_REFUSAL": Provider, 502, Some(false);
    /// The provider is not configured, or wrongly.
    ProviderConfiguration = "PROVIDER_CONFIGURATION": Provider, 500, Some(false);
    /// The model's output does not fit its contract.
    ModelOutputSchema = "MODEL_OUTPUT_SCHEMA": Contract, 502, Some(true);
    /// The model's output is not JSON.
    InvalidModelJson = "INVALID_MODEL_JSON": Provider, 502, Some(true);
    /// The model's output ends too early.
    OutputTruncated = "OUTPUT_TRUNCATED": Provider, 502, Some(false);
    /// The model loop used up its steps.
    ReasonStepsExhausted = "REASON_STEPS_EXHAUSTED": Limit, 500, Some(false);
    /// An error that the workflow's author made public.
    DomainError = "DOMAIN_ERROR": Execution, 422, None;
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for FailureCode {
    type Err = UnknownFailureCode;

    fn from_str(name: &str) -> Result<Self, UnknownFailureCode> {
        Self::parse(name).ok_or(UnknownFailureCode)
    }
}

impl Serialize for FailureCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for FailureCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
