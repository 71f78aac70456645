//! A step or a child call as it is told: its span, its beginning, and its end once.

use std::sync::Arc;

use kortyx_protocol::RawJson;
use tracing::{Span, field, info_span};

use super::{CallName, Content, End, Moment, Visit, node::close};
use crate::{NodeError, flow::FrameEnd, pass::PassRef, state::CallKey, workflow::Definition};

/// A step that runs now. Dropping it ends it as dropped.
pub(crate) struct StepTold {
    pass: Arc<PassRef>,
    pub(crate) span: Span,
    key: CallKey,
    call: CallName,
    is_open: bool,
}

impl StepTold {
    /// The step begins.
    pub(crate) fn begin(pass: &Arc<PassRef>, key: &CallKey) -> Self {
        let span = info_span!(
            "kortyx.step",
            otel.name = %format_args!("step {}", key.id),
            otel.status_code = field::Empty,
            kortyx.step = &*key.id,
            kortyx.occurrence = key.occ,
            kortyx.outcome = field::Empty,
            error.type = field::Empty,
        );
        let told = Self { pass: pass.clone(), span, key: key.clone(), call: key.into(), is_open: true };
        let call = &told.call;
        tell(pass, &told.span, |visit| Moment::StepStarted { visit, call });
        told
    }

    /// The step has ended.
    pub(crate) fn end(&mut self, result: &Result<RawJson, NodeError>) {
        let end = result.as_ref().map_or_else(|error| End::Failed(error.code()), |_| End::Completed);
        let output = result.as_ref().ok().filter(|_| self.pass.shared.captures.output && !self.is_told_in_parts());
        self.close(end, output);
    }

    /// Whether its parts were told, perhaps without what its result holds.
    fn is_told_in_parts(&self) -> bool {
        self.pass.with_pass(|pass| pass.is_told_in_parts(&self.key)).unwrap_or(true)
    }

    fn close(&mut self, end: End, output: Option<&RawJson>) {
        if !std::mem::replace(&mut self.is_open, false) {
            return;
        }
        close(&self.span, end);
        let output = captured(&self.pass, output);
        let (call, output) = (&self.call, output.as_ref());
        tell(&self.pass, &self.span, |visit| Moment::StepEnded { visit, call, end, output });
    }
}

impl Drop for StepTold {
    fn drop(&mut self) {
        self.close(End::Dropped, None);
    }
}

/// A child that runs now. Dropping it ends it as paused when its caller waits for people, else as dropped.
pub(crate) struct ChildTold {
    pass: Arc<PassRef>,
    pub(crate) span: Span,
    call: CallName,
    definition: Arc<Definition>,
    is_open: bool,
}

impl ChildTold {
    /// The child is called, with this input where it is told, or goes on.
    pub(crate) fn begin(
        pass: &Arc<PassRef>,
        key: &CallKey,
        definition: &Arc<Definition>,
        again: bool,
        input: Option<RawJson>,
    ) -> Self {
        let span = info_span!(
            "kortyx.child",
            otel.name = %format_args!("child {}", definition.id()),
            otel.status_code = field::Empty,
            kortyx.call = &*key.id,
            kortyx.occurrence = key.occ,
            kortyx.workflow = &**definition.id(),
            kortyx.workflow.version = &**definition.version(),
            kortyx.outcome = field::Empty,
            error.type = field::Empty,
        );
        let told = Self { pass: pass.clone(), span, call: key.into(), definition: definition.clone(), is_open: true };
        let content = input.map(Content::new);
        let (call, (workflow, version)) = (&told.call, (definition.id(), definition.version()));
        let input = content.as_ref();
        tell(pass, &told.span, |visit| Moment::ChildStarted { visit, call, workflow, version, again, input });
        told
    }

    /// The child has ended.
    pub(crate) fn end(&mut self, end: &FrameEnd) {
        match end {
            Ok(output) => self.close(End::Completed, Some(output)),
            Err(failure) => self.close(End::Failed(failure.code), None),
        }
    }

    fn close(&mut self, end: End, output: Option<&RawJson>) {
        if !std::mem::replace(&mut self.is_open, false) {
            return;
        }
        close(&self.span, end);
        let output = captured(&self.pass, output);
        let (call, output) = (&self.call, output.as_ref());
        let (workflow, version) = (self.definition.id(), self.definition.version());
        tell(&self.pass, &self.span, |visit| Moment::ChildEnded { visit, call, workflow, version, end, output });
    }
}

impl Drop for ChildTold {
    fn drop(&mut self) {
        if self.is_open {
            let is_paused = self.pass.shared.lock().state.is_waiting(self.pass.activation);
            self.close(if is_paused { End::Paused } else { End::Dropped }, None);
        }
    }
}

fn tell<'a>(pass: &'a PassRef, span: &Span, moment: impl FnOnce(&'a Arc<Visit>) -> Moment<'a>) {
    if let Some(visit) = &pass.visit {
        span.in_scope(|| pass.shared.tell(&moment(visit)));
    }
}

fn captured(pass: &PassRef, output: Option<&RawJson>) -> Option<Content> {
    output.filter(|_| pass.shared.captures.output).cloned().map(Content::new)
}

impl From<&CallKey> for CallName {
    fn from(key: &CallKey) -> Self {
        Self { id: key.id.clone(), occurrence: key.occ }
    }
}
