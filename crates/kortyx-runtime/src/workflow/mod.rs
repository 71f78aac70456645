//! Workflow definitions: what a workflow is made of, how it is checked, versioned, registered and loaded.
//!
//! A [`Workflow`] is built in code, or loaded from YAML or JSON with the feature `yaml`:
//!
//! ```
//! use kortyx_runtime::{NodeContext, NodeOutput, NodeResult, Workflow, workflow::END};
//!
//! async fn draft(_: NodeContext) -> NodeResult {
//!     Ok(NodeOutput::new().data("text", "Hello."))
//! }
//!
//! async fn review(_: NodeContext) -> NodeResult {
//!     Ok(NodeOutput::new().condition("approve"))
//! }
//!
//! let workflow = Workflow::builder("document")
//!     .version("2")
//!     .node("draft", draft)
//!     .node("review", review)
//!     .edge("draft", "review")
//!     .edge_if("review", END, "approve")
//!     .otherwise("review", "draft")
//!     .build()?;
//! assert_eq!(workflow.definition().route("review", Some("revise"))?.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builder;
mod check;
mod definition;
mod edge;
mod error;
mod fingerprint;
mod graph;
#[cfg(feature = "yaml")]
mod load;
mod name;
mod node;
mod registry;
mod retry;
mod route;
mod schema;
mod typed;
mod version;

pub use builder::WorkflowBuilder;
pub use definition::Definition;
pub use edge::{END, Edge, EdgeIx, Target, When};
pub use error::DefinitionError;
#[cfg(feature = "yaml")]
pub use load::{LoadError, LoadProblem, NodeLibrary};
pub use node::{NodeDefinition, NodeFn, NodeFuture, NodeOptions};
pub use registry::{DefinitionPin, Registry};
pub use retry::Retry;
pub use route::NoRoute;
pub use typed::Workflow;
