//! The handle of a workflow, with the types of its input and output.

use std::{fmt, marker::PhantomData, sync::Arc};

use serde_json::Value;

use super::{Definition, WorkflowBuilder};

/// A checked workflow whose input is an `I` and whose output is an `O`; cheap to clone.
///
/// The types are the caller's view: the engine passes JSON and validates it against the schemas that the types gave.
/// A loaded workflow, or one built without types, takes and gives any JSON value.
pub struct Workflow<I = Value, O = Value> {
    definition: Arc<Definition>,
    types: PhantomData<fn(I) -> O>,
}

impl Workflow {
    /// Begins a workflow with this id.
    pub fn builder(id: impl Into<Arc<str>>) -> WorkflowBuilder {
        WorkflowBuilder::new(id.into())
    }
}

impl<I, O> Workflow<I, O> {
    pub(super) fn new(definition: Definition) -> Self {
        Self { definition: Arc::new(definition), types: PhantomData }
    }

    /// What the workflow is made of.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    /// The same workflow without its types. Its schemas stay.
    #[must_use]
    pub fn erase(&self) -> Workflow {
        Workflow { definition: Arc::clone(&self.definition), types: PhantomData }
    }
}

impl<I, O> Clone for Workflow<I, O> {
    fn clone(&self) -> Self {
        Self { definition: Arc::clone(&self.definition), types: PhantomData }
    }
}

impl<I, O> fmt::Debug for Workflow<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Workflow").field(&self.definition).finish()
    }
}
