//! Child workflows.

use std::{
    future::{Future, poll_fn},
    pin::Pin as Pinned,
    sync::Arc,
    task::{Context, Poll},
};

use kortyx_protocol::{Failure, FailureCode, RawJson};
use serde::{Serialize, de::DeserializeOwned};
use tracing::Span;

use crate::{
    CallError, NodeContext, Workflow,
    event::Event,
    flow::{self, FrameEnd},
    meter::{self, CHILD_CALLS, Draw},
    observe::ChildTold,
    pass::{Call, Known, PassOver, PassRef},
    scheduler::{FrameDriver, FrameStatus},
    shared::Core,
    state::{CallKey, Entry, EntryValue, Kind, Pin, unreadable},
    workflow::Definition,
};

impl NodeContext {
    /// Runs a registered workflow within this one and returns its output.
    ///
    /// The child has data and state of its own. Its questions are asked through this run and name the child's workflow and
    /// node; while it waits for people, so does this node. A child that has ended never runs again. Calls that are joined
    /// run at once. At most 16 levels deep, 64 calls in one activation (see [`Limits`](crate::Limits)); all calls of a run and its
    /// children together are [`CHILD_CALLS`](crate::CHILD_CALLS), beyond which it asks whether to go on.
    ///
    /// # Errors
    /// The child is not registered, its input does not fit, a limit is reached, it is called within a step, or it failed.
    /// A recorded output that no longer reads as `O` parks the run, until code that reads it is deployed.
    pub fn call<I, O>(
        &self,
        id: &str,
        workflow: &Workflow<I, O>,
        input: I,
    ) -> impl Future<Output = Result<O, CallError>> + Send + use<I, O>
    where
        I: Serialize,
        O: DeserializeOwned,
    {
        let pass = self.0.clone();
        let key = pass.with_pass(|state| state.next_key(id));
        let definition = workflow.definition().clone();
        let input = RawJson::of(&input).map_err(CallError::Json);
        async move {
            let key = key?;
            let (output, known) = called(&pass, key.clone(), &definition, input?).await?;
            let error = match output.decode() {
                Ok(output) => return Ok(output),
                Err(error) => error,
            };
            if known != Known::Completed && !pass.shared.is_restored {
                return Err(CallError::Json(error));
            }
            // The child is done: without its output the node must neither go on nor call it again.
            let text = format!("the output of the call `{}` has another type: {error}", key.id);
            pass.park(unreadable(&pass.node, &text)).await
        }
    }
}

async fn called(
    pass: &Arc<PassRef>,
    key: CallKey,
    definition: &Arc<Definition>,
    input: RawJson,
) -> Result<(RawJson, Known), CallError> {
    let identity: Arc<str> = format!("{}@{}", definition.id(), definition.version()).into();
    let (mut call, known) = Call::begin(pass, key.clone(), Kind::Call, &identity)?;
    if known == Known::InStep {
        return Err(CallError::InStep(key.id.to_string()));
    }
    if known == Known::No {
        let content = pass.shared.captures.input.then(|| input.clone());
        let (frame, again) = child_frame(pass, &key, &identity, definition, input).await?;
        call.begin_work();
        let mut told = ChildTold::begin(pass, &key, definition, again, content.filter(|_| !again));
        let end = driven(&call, Running::new(pass, frame, told.span.clone())).await?;
        told.end(&end);
        drop(told);
        let value = match end {
            Ok(output) => EntryValue::Value(output),
            Err(failure) => EntryValue::Failed(Box::new(failure)),
        };
        call.complete(Entry::new(key, Kind::Call, identity, value))?;
        let busy = crate::pass::InFlight::enter(pass);
        pass.shared.stored().await;
        drop(busy);
    }
    match call.revealed().await? {
        EntryValue::Value(output) => Ok((output, known)),
        EntryValue::Failed(failure) => Err(CallError::Failed(*failure)),
        EntryValue::Answer(_) => {
            let failure = Failure::new(FailureCode::ReplayDiverged, "the journal entry of a child call is an answer");
            Err(CallError::Failed(failure))
        }
    }
}

/// Runs a child to its end, unless the pass ends before: a task that outlives it must leave the child to the next pass.
async fn driven(call: &Call, mut child: Running) -> Result<FrameEnd, PassOver> {
    poll_fn(|cx| match call.poll_revealed(cx.waker()) {
        Ok(_) => Pinned::new(&mut child).poll(cx).map(Ok),
        Err(over) => Poll::Ready(Err(over)),
    })
    .await
}

/// The frame of a call: the recorded one, or a new one when the call may be made; and whether it was recorded.
async fn child_frame(
    pass: &Arc<PassRef>,
    key: &CallKey,
    identity: &Arc<str>,
    definition: &Arc<Definition>,
    input: RawJson,
) -> Result<(u32, bool), CallError> {
    let recorded = pass.with(|core| {
        let journal = &core.state.activations.get(&pass.activation)?.journal;
        journal.children.iter().find(|child| child.key == *key).map(|child| child.frame)
    })?;
    if let Some(frame) = recorded {
        return Ok((frame, true));
    }
    let registered = pass.shared.registry.get(definition.id(), definition.version());
    if registered.is_none_or(|known| known.fingerprint() != definition.fingerprint()) {
        let (id, version) = (definition.id().to_string(), definition.version().to_string());
        return Err(CallError::Unknown { id, version });
    }
    definition
        .validate_input(&input)
        .map_err(|issues| CallError::Input { workflow: definition.id().to_string(), issues })?;
    pass.with(|core| check_bounds(core, pass))??;
    meter::take(pass, key, &[Draw::One(CHILD_CALLS)]).await?;
    pass.with(|core| {
        // Others may have been called while this one waited.
        check_bounds(core, pass)?;
        let frame = core.state.next_frame;
        let (key, identity, pin) = (key.clone(), identity.clone(), Pin::of(definition));
        core.emit(Event::Called { activation: pass.activation, key, identity, frame, pin, input });
        flow::begin_frame(core, definition, frame);
        Ok((frame, false))
    })?
}

/// Refuses a call that is nested too deeply, or one too many of its activation.
fn check_bounds(core: &Core, pass: &PassRef) -> Result<(), CallError> {
    let limits = &pass.shared.limits;
    let depth = core.state.frame(pass.frame).map_or(0, |frame| frame.depth);
    let calls = core.state.activations.get(&pass.activation).map_or(0, |activation| activation.journal.calls);
    if depth >= limits.call_depth {
        return Err(CallError::Limit(format!("child workflows are nested more than {} deep", limits.call_depth)));
    }
    if calls >= limits.calls_per_activation {
        let most = limits.calls_per_activation;
        return Err(CallError::Limit(format!("the node `{}` makes more than {most} child calls", pass.node)));
    }
    Ok(())
}

/// Drives a child's frame as part of its caller's future, and tells the caller's pass whether the child works or waits.
struct Running {
    pass: Arc<PassRef>,
    driver: FrameDriver,
    counted: Counted,
    span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    No,
    Busy,
    Waiting,
}

impl Running {
    fn new(pass: &Arc<PassRef>, frame: u32, span: Span) -> Self {
        Self { pass: pass.clone(), driver: FrameDriver::new(pass.shared.clone(), frame), counted: Counted::No, span }
    }

    fn count(&mut self, now: Counted) {
        let before = std::mem::replace(&mut self.counted, now);
        if before == now {
            return;
        }
        let _ = self.pass.with_pass(|pass| {
            match before {
                Counted::No => {}
                Counted::Busy => pass.in_flight = pass.in_flight.saturating_sub(1),
                Counted::Waiting => pass.waiting_children = pass.waiting_children.saturating_sub(1),
            }
            match now {
                Counted::No => {}
                Counted::Busy => pass.in_flight = pass.in_flight.saturating_add(1),
                Counted::Waiting => pass.waiting_children = pass.waiting_children.saturating_add(1),
            }
            pass.nudge();
        });
    }
}

impl Future for Running {
    type Output = FrameEnd;

    fn poll(self: Pinned<&mut Self>, cx: &mut Context<'_>) -> Poll<FrameEnd> {
        let this = self.get_mut();
        let status = this.span.in_scope(|| this.driver.poll(cx));
        match status {
            FrameStatus::Ended(end) => {
                this.count(Counted::No);
                return Poll::Ready(end);
            }
            FrameStatus::Live => this.count(Counted::Busy),
            FrameStatus::Waiting => this.count(Counted::Waiting),
        }
        Poll::Pending
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.count(Counted::No);
    }
}

impl From<PassOver> for CallError {
    fn from(_: PassOver) -> Self {
        Self::Limit("the activation is over; do not use its context from a task that outlives the node".into())
    }
}
