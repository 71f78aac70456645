//! A run under way: from where it stands to its next pause or its end.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use kortyx_protocol::{FailureCode, Usage};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::{
    Moment,
    flow::FrameEnd,
    io::{IoFuture, RecordError},
    scheduler::{FrameDriver, FrameStatus},
    shared::{Halt, Shared},
    state::ROOT,
    trace::TurnState,
    turn::{DeliveredAnswer, Ending, EngineError, Outcome, Turn},
    workflow::DefinitionPin,
};

/// A run under way. Dropping it leaves the run at its last durable point.
pub struct Execution {
    pub(crate) shared: Arc<Shared>,
    root: FrameDriver,
    /// The write on its way to storage.
    writing: Option<IoFuture<'static, Result<(), RecordError>>>,
    publishing: Publishing,
    /// Wakes the execution when somebody asks the run to stop.
    cancelled: Option<std::pin::Pin<Box<WaitForCancellationFutureOwned>>>,
    grace: Option<IoFuture<'static, ()>>,
    grace_over: bool,
}

/// Questions of a branch that waits while others work.
enum Publishing {
    Idle,
    /// Others may pause too.
    Delayed(IoFuture<'static, ()>),
    /// The next batch carries them.
    Due,
}

/// Reaches an execution from outside while it advances.
#[derive(Clone)]
pub struct ExecutionHandle(Arc<Shared>);

impl ExecutionHandle {
    /// Hands over answers. Those received before are ignored.
    pub fn deliver(&self, answers: Vec<DeliveredAnswer>) {
        self.0.lock().deliver(answers);
    }

    /// Asks the run to stop: nodes see it through their token.
    pub fn cancel(&self) {
        self.0.cancel.cancel();
    }

    /// Has the recorder called soon, with whatever there is to store, be it nothing: for one that stores more than batches. A
    /// run that storage does not know is opened.
    pub fn flush(&self) {
        self.0.flush();
    }

    /// The highest answer number received.
    pub fn answers_seen(&self) -> u64 {
        self.0.lock().state.answers_seen
    }

    /// Whether the run has completed its response.
    pub fn is_response_completed(&self) -> bool {
        self.0.lock().state.response_completed
    }

    /// The tokens that the run has used so far, with its children; `None` when it has used none that anybody told of.
    pub fn usage(&self) -> Option<Usage> {
        self.0.lock().state.meters.usage()
    }

    /// Where the drive that stored the run last is found in tracing, as [`set_trace_parent`](Self::set_trace_parent) gave it there; or this
    /// drive, once it did.
    pub fn trace_parent(&self) -> Option<Arc<str>> {
        self.0.lock().state.trace_parent.clone()
    }

    /// Has the run's snapshots say where this drive is found in tracing: the `traceparent` of W3C Trace Context. A run that nobody gives
    /// one stores none.
    pub fn set_trace_parent(&self, parent: impl Into<Arc<str>>) {
        self.0.lock().state.trace_parent = Some(parent.into());
    }

    /// The workflow that the run is in now, and what a session would keep of the turn under way; `None` unless the run is
    /// [tracked](crate::Start::tracked), and once its response is complete.
    pub fn turn(&self) -> Option<(DefinitionPin, TurnState)> {
        let core = self.0.lock();
        Some((core.state.pin(), core.state.turn()?))
    }
}

impl Execution {
    /// Stands where the state says.
    pub(crate) fn new(shared: Shared) -> Self {
        let shared = Arc::new(shared);
        Self {
            root: FrameDriver::new(shared.clone(), ROOT),
            shared,
            writing: None,
            publishing: Publishing::Idle,
            cancelled: None,
            grace: None,
            grace_over: false,
        }
    }

    /// A handle for other tasks.
    pub fn handle(&self) -> ExecutionHandle {
        ExecutionHandle(self.shared.clone())
    }

    /// Runs until the run waits for people or has ended. When storage says that answers have arrived meanwhile, hand them
    /// over with [`ExecutionHandle::deliver`] and advance again.
    pub async fn advance(&mut self) -> Result<Turn, EngineError> {
        poll_fn(|cx| self.poll_advance(cx)).await
    }

    fn poll_advance(&mut self, cx: &mut Context<'_>) -> Poll<Result<Turn, EngineError>> {
        loop {
            self.poll_grace(cx);
            let status = self.root.poll(cx);
            let halted = self.shared.lock().take_halt();
            if let Some(error) = halted {
                self.tell_halt(&error);
                return Poll::Ready(Err(error));
            }
            match status {
                _ if self.writing.is_some() || self.shared.lock().is_completing_response() => {}
                FrameStatus::Ended(end) => return Poll::Ready(Ok(Turn::Finished(self.ending(end)))),
                FrameStatus::Waiting if !self.shared.cancel.is_cancelled() => return Poll::Ready(self.suspension()),
                FrameStatus::Live if !self.grace_over => {}
                FrameStatus::Waiting | FrameStatus::Live => {
                    return Poll::Ready(Ok(Turn::Finished(self.ended(Outcome::Cancelled))));
                }
            }
            if !self.poll_storage(cx) && !self.poll_cancelled(cx) {
                return Poll::Pending;
            }
        }
    }

    fn tell_halt(&self, error: &EngineError) {
        if let EngineError::Parked(failure) = error
            && failure.code == FailureCode::ReplayDiverged
        {
            self.shared.tell(&Moment::Diverged { failure });
        }
    }

    fn poll_grace(&mut self, cx: &mut Context<'_>) {
        if !self.shared.cancel.is_cancelled() || self.grace_over {
            return;
        }
        let grace = self.grace.get_or_insert_with(|| {
            self.shared.lock().wake_frames();
            self.shared.io.host.sleep(self.shared.limits.cancel_grace)
        });
        self.grace_over = grace.as_mut().poll(cx).is_ready();
    }

    /// Whether somebody has asked the run to stop since the last look. Else the execution is woken when somebody does.
    fn poll_cancelled(&mut self, cx: &mut Context<'_>) -> bool {
        let token = &self.shared.cancel;
        let cancelled = self.cancelled.get_or_insert_with(|| Box::pin(token.clone().cancelled_owned()));
        self.grace.is_none() && cancelled.as_mut().poll(cx).is_ready()
    }

    /// Goes on with the write on its way, or begins the next one. `true`: something changed, look again.
    fn poll_storage(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(write) = &mut self.writing {
            let Poll::Ready(written) = write.as_mut().poll(cx) else { return false };
            self.writing = None;
            if let Err(error) = written {
                self.shared.lock().halt_with(Halt::Storage(error));
            }
            return true;
        }
        // Who completes the response says which questions are open then.
        let publish = self.poll_publish_delay(cx) || self.shared.lock().is_completing_response();
        if !publish && !self.shared.lock().is_write_wanted() {
            return false;
        }
        if publish && self.shared.lock().is_durable() {
            self.publishing = Publishing::Idle;
        }
        let shared = self.shared.clone();
        self.writing = Some(Box::pin(async move { shared.write(publish).await }));
        true
    }

    /// Whether the questions of waiting branches are to be published while others work.
    fn poll_publish_delay(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.shared.lock().has_news() {
            self.publishing = Publishing::Idle;
            return false;
        }
        if let Publishing::Idle = self.publishing {
            self.publishing = Publishing::Delayed(self.shared.io.host.sleep(self.shared.limits.publish_delay));
        }
        if let Publishing::Delayed(delay) = &mut self.publishing {
            if delay.as_mut().poll(cx).is_pending() {
                return false;
            }
            self.publishing = Publishing::Due;
        }
        true
    }

    fn suspension(&mut self) -> Result<Turn, EngineError> {
        self.publishing = Publishing::Idle;
        self.shared.lock().suspension().map(Turn::Suspended).map_err(EngineError::Storage)
    }

    fn ending(&self, end: FrameEnd) -> Ending {
        self.ended(match end {
            _ if self.shared.cancel.is_cancelled() => Outcome::Cancelled,
            Ok(data) => Outcome::Completed(data),
            Err(failure) => Outcome::Failed(failure),
        })
    }

    fn ended(&self, outcome: Outcome) -> Ending {
        let core = self.shared.lock();
        let (answers_seen, durable) = (core.state.answers_seen, core.is_durable());
        let outcome = match (&core.state.meters.stopped, outcome) {
            // Whoever stops a run at its limit ends it as one that was asked to stop.
            (Some(failure), Outcome::Cancelled) => Outcome::Failed(failure.clone()),
            (_, outcome) => outcome,
        };
        Ending { outcome, answers_seen, workflow: core.state.pin(), durable, turn: core.state.turn() }
    }
}
