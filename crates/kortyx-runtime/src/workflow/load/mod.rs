//! Workflows from YAML and JSON text: nodes by name, errors by line.

mod document;
mod error;
mod library;
mod message;
mod place;

use std::{path::Path, sync::Arc};

pub use error::{LoadError, LoadProblem};
pub use library::NodeLibrary;

use super::Workflow;

/// What errors call a text that is not a file.
const TEXT: &str = "<text>";

impl Workflow {
    /// Loads a workflow from YAML text, its node functions from a library.
    ///
    /// The keys are `id`, `version`, `description`, `start` (default: the first node), `max_node_executions`, `limits` (a number by
    /// the name of each [counter](crate::Counter), null for none), `input` and `output` (JSON Schemas), `nodes` (`id`, `use`: the name in the library, default the id, `retry`: `attempts`,
    /// `delay_ms`, `backoff`, `max_delay_ms`) and `edges` (`from`, `to`, `when: <condition>` or `otherwise: true`).
    /// `id`, `version` and `nodes` are required, unknown keys are errors. An edge to `__end__` ends the path.
    ///
    /// ```
    /// use kortyx_runtime::{NodeOutput, Workflow, workflow::NodeLibrary};
    ///
    /// let library = NodeLibrary::new()
    ///     .register("draft", |_| async { Ok(NodeOutput::new()) })
    ///     .register("choose", |_| async { Ok(NodeOutput::new().condition("approve")) });
    /// let workflow = Workflow::from_yaml(
    ///     "
    /// id: document
    /// version: 1
    /// nodes:
    ///   - { id: draft, retry: { attempts: 3, delay_ms: 200 } }
    ///   - { id: review, use: choose }
    /// edges:
    ///   - { from: draft, to: review }
    ///   - { from: review, to: __end__, when: approve }
    ///   - { from: review, to: draft, otherwise: true }
    /// ",
    ///     &library,
    /// )?;
    /// assert_eq!(workflow.definition().edges().len(), 3);
    ///
    /// let error = Workflow::from_yaml("id: x\nversion: 1\nnodes:\n  - id: drft\n", &library).unwrap_err();
    /// assert_eq!(error.line(), Some(4));
    /// assert!(error.to_string().contains("did you mean `draft`?"));
    /// # Ok::<(), kortyx_runtime::workflow::LoadError>(())
    /// ```
    pub fn from_yaml(text: &str, library: &NodeLibrary) -> Result<Self, LoadError> {
        document::load(text, &TEXT.into(), library)
    }

    /// Loads a workflow from JSON text with the keys of [`from_yaml`](Self::from_yaml).
    pub fn from_json(text: &str, library: &NodeLibrary) -> Result<Self, LoadError> {
        load_json(text, &TEXT.into(), library)
    }

    /// Loads a workflow from a file. Its extension says what it is: `yaml`, `yml` or `json`.
    pub fn from_file(path: impl AsRef<Path>, library: &NodeLibrary) -> Result<Self, LoadError> {
        let path = path.as_ref();
        let file: Arc<str> = path.display().to_string().into();
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let load = match extension.to_ascii_lowercase().as_str() {
            "yaml" | "yml" => document::load,
            "json" => load_json,
            _ => return Err(LoadError::whole(&file, LoadProblem::UnknownFormat)),
        };
        let text = std::fs::read_to_string(path).map_err(|error| LoadError::whole(&file, LoadProblem::Read(error)))?;
        load(&text, &file, library)
    }
}

/// JSON is read twice: strictly, to refuse what only YAML allows, and as YAML, to know the places.
fn load_json(text: &str, file: &Arc<str>, library: &NodeLibrary) -> Result<Workflow, LoadError> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|error| LoadError::json(file, &error))?;
    document::load(text, file, library)
}
