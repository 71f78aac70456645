//! Node functions by name.

use std::{collections::HashMap, fmt, sync::Arc};

use super::super::{NodeFn, NodeOptions, node};
use crate::{NodeContext, NodeError, NodeResult};

/// The node functions that loaded workflows may use.
#[derive(Clone, Default)]
#[must_use]
pub struct NodeLibrary {
    nodes: HashMap<Arc<str>, LibraryNode>,
    /// What stands for functions that nobody registered.
    stand_in: Option<LibraryNode>,
}

#[derive(Clone)]
pub(super) struct LibraryNode {
    pub(super) function: NodeFn,
    pub(super) options: NodeOptions,
}

impl NodeLibrary {
    /// A library without functions.
    pub fn new() -> Self {
        Self::default()
    }

    /// A library that takes every name, for programs that read the shape of workflows without their code: graph, retries, limits and
    /// schemas are checked as ever, and a node that is entered all the same fails.
    ///
    /// ```
    /// use kortyx_runtime::{Workflow, workflow::NodeLibrary};
    ///
    /// let text = "id: greeting\nversion: 1\nnodes:\n  - { id: greet, use: functions.of.elsewhere }\n";
    /// let workflow = Workflow::from_yaml(text, &NodeLibrary::of_shapes())?;
    /// assert_eq!(&**workflow.definition().start(), "greet");
    /// # Ok::<(), kortyx_runtime::workflow::LoadError>(())
    /// ```
    pub fn of_shapes() -> Self {
        let function =
            node::node_fn(|_| async { Err(NodeError::message("the node's function is not in this program")) });
        Self { nodes: HashMap::new(), stand_in: Some(LibraryNode { function, options: NodeOptions::new() }) }
    }

    /// Adds a function under the name by which workflows use it. A function of the same name is replaced.
    pub fn register<F, Fut>(self, name: impl Into<Arc<str>>, function: F) -> Self
    where
        F: Fn(NodeContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = NodeResult> + Send + 'static,
    {
        self.register_with(name, NodeOptions::new(), function)
    }

    /// Adds a function with the options of the nodes that use it. A `retry` in the text takes precedence.
    pub fn register_with<F, Fut>(mut self, name: impl Into<Arc<str>>, options: NodeOptions, function: F) -> Self
    where
        F: Fn(NodeContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = NodeResult> + Send + 'static,
    {
        self.nodes.insert(name.into(), LibraryNode { function: node::node_fn(function), options });
        self
    }

    /// The names, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.nodes.keys().map(|name| &**name).collect();
        names.sort_unstable();
        names
    }

    pub(super) fn get(&self, name: &str) -> Option<&LibraryNode> {
        self.nodes.get(name).or(self.stand_in.as_ref())
    }
}

impl fmt::Debug for NodeLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NodeLibrary").field(&self.names()).finish()
    }
}
