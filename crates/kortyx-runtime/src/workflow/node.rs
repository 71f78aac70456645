//! A node as a workflow holds it: a name, a function, options.

use std::{fmt, pin::Pin, sync::Arc};

use super::Retry;
use crate::{NodeContext, NodeResult};

/// The running body of a node.
pub type NodeFuture = Pin<Box<dyn Future<Output = NodeResult> + Send>>;

/// A node's body behind a pointer, as definitions and libraries keep it.
pub type NodeFn = Arc<dyn Fn(NodeContext) -> NodeFuture + Send + Sync>;

/// Hides the type of an async function over a [`NodeContext`].
pub(super) fn node_fn<F, Fut>(function: F) -> NodeFn
where
    F: Fn(NodeContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = NodeResult> + Send + 'static,
{
    Arc::new(move |context| Box::pin(function(context)))
}

/// What can be set for one node of a workflow.
///
/// ```
/// use kortyx_runtime::workflow::{NodeOptions, Retry};
///
/// let options = NodeOptions::new().retry(Retry::attempts(3));
/// assert_eq!(options.retry.map(|retry| retry.attempts), Some(3));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct NodeOptions {
    /// How the node is tried again when it fails. `None` fails the run at the first failure.
    pub retry: Option<Retry>,
}

impl NodeOptions {
    /// The defaults: no retry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tries the node again when it fails.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = Some(retry);
        self
    }
}

/// A node of a [`Definition`](super::Definition).
#[derive(Clone)]
#[non_exhaustive]
pub struct NodeDefinition {
    /// The name, unique in its workflow.
    pub name: Arc<str>,
    /// The body.
    pub function: NodeFn,
    /// How the body is run.
    pub options: NodeOptions,
}

impl fmt::Debug for NodeDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeDefinition")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
