//! Marks: what nodes note for the whole run.

use std::sync::Arc;

use crate::{NodeContext, NodeError, event::Event, state::CallKey};

impl NodeContext {
    /// Marks something for the whole run, or takes the mark away: for all its nodes, its branches and its children, and for runs that are
    /// forked from it later.
    ///
    /// It takes effect at once, and once for each use of `id`: replay and retries do not do it again.
    ///
    /// # Errors
    /// It is done within a step, which replay does not run again, or the activation is over.
    pub fn mark(&self, id: &str, mark: &str, on: bool) -> Result<(), NodeError> {
        let activation = self.0.activation;
        if self.0.with(|core| core.is_in_step(activation))? {
            let text =
                format!("`{mark}` is marked within a step: return what was decided from the step and mark it after");
            return Err(NodeError::message(text));
        }
        let key: CallKey = self.0.with_pass(|pass| pass.next_key(id))?;
        self.0.with(|core| {
            let journal = core.state.activations.get(&activation).map(|activation| &activation.journal);
            if journal.is_some_and(|journal| !journal.marked.contains(&key)) {
                core.emit(Event::Marked { activation, key, mark: Arc::from(mark), on });
            }
        })?;
        Ok(())
    }

    /// Whether something is marked in this run. Others may change that at any time, so only a step may ask: its result stands.
    ///
    /// # Errors
    /// It is asked outside of a step, or the activation is over.
    pub fn is_marked(&self, mark: &str) -> Result<bool, NodeError> {
        let marked = self.0.with(|core| core.is_in_step(self.0.activation).then(|| core.state.marks.contains(mark)))?;
        marked.ok_or_else(|| {
            NodeError::message(format!("whether `{mark}` is marked is asked outside of a step: ask in one"))
        })
    }
}
