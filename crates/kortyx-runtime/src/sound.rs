//! Whether a stored state can be gone on with: what reads well may still be broken, and must not hang or panic.

use crate::{
    state::{Activation, Frame, ROOT, RunState},
    workflow::Registry,
};

impl RunState {
    /// Says what is broken. Frames must be a tree that grows downwards, and every activation must be in it.
    pub(crate) fn check(&self, registry: &Registry) -> Result<(), String> {
        if self.frames.get(&ROOT).is_none_or(|root| root.parent.is_some()) {
            return Err("it has no root".into());
        }
        for (id, frame) in &self.frames {
            self.check_frame(*id, frame)?;
        }
        for (id, activation) in &self.activations {
            self.check_activation(*id, activation, registry)?;
        }
        Ok(())
    }

    fn check_frame(&self, id: u32, frame: &Frame) -> Result<(), String> {
        if id >= self.next_frame {
            return Err(format!("frame {id} is not counted"));
        }
        let Some(parent) = &frame.parent else {
            return if id == ROOT { Ok(()) } else { Err(format!("frame {id} has no caller")) };
        };
        let caller = self.activations.get(&parent.activation).filter(|caller| caller.frame < id);
        let mut children = caller.into_iter().flat_map(|caller| &caller.journal.children);
        if children.any(|child| child.frame == id) {
            Ok(())
        } else {
            Err(format!("the caller of frame {id} does not know it"))
        }
    }

    fn check_activation(&self, id: u32, activation: &Activation, registry: &Registry) -> Result<(), String> {
        if id >= self.next_activation {
            return Err(format!("activation {id} is not counted"));
        }
        let frame = self.frames.get(&activation.frame).ok_or(format!("activation {id} is in no frame"))?;
        let is_child = |child: &crate::state::Child| {
            let parent = self.frames.get(&child.frame).and_then(|frame| frame.parent.as_ref());
            parent.is_some_and(|parent| parent.activation == id && parent.key == child.key)
        };
        if !activation.journal.children.iter().all(is_child) {
            return Err(format!("a child of activation {id} is missing"));
        }
        if activation.reached.is_some() {
            let is_own = activation.frame == ROOT && activation.branch.is_none();
            return if is_own { Ok(()) } else { Err(format!("activation {id} asks about a limit where none is kept")) };
        }
        let definition = registry.get(&frame.workflow.id, &frame.workflow.version);
        if definition.is_none_or(|definition| definition.node(&activation.node).is_none()) {
            return Err(format!("the workflow of activation {id} has no such node"));
        }
        if definition.is_some_and(|definition| definition.is_parallel() != activation.branch.is_some()) {
            return Err(format!("activation {id} is no branch of a graph with fan-out, or one of a graph without"));
        }
        Ok(())
    }
}
