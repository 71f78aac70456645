//! Durable steps.

use std::{future::Future, pin::Pin, sync::Arc, task};

use kortyx_protocol::RawJson;
use serde::{Serialize, de::DeserializeOwned};
use tracing::Span;

use crate::{
    NodeContext, NodeError,
    context::decode,
    meter::{self, Draw},
    observe::StepTold,
    pass::{Call, InFlight, Known, PassRef},
    state::{CallKey, Entry, EntryValue, Kind, unreadable},
};

impl NodeContext {
    /// Does something once.
    ///
    /// The result is durable before the code after it runs, and replay returns it without calling `f`. An error is not
    /// recorded: the step runs again when the node does. If the process dies between the effect and its record, the step
    /// runs again too; hand [`NodeContext::idempotency_key`] to the effect so that it happens once.
    ///
    /// A recorded result that no longer reads as `T` parks the run, until code that reads it is deployed.
    ///
    /// Only the returned value survives, so `f` cannot change what it captures: a closure that borrows mutably is not
    /// `Clone` and does not compile.
    ///
    /// ```
    /// # use kortyx_runtime::{NodeContext, NodeOutput, NodeResult};
    /// # async fn send(text: &str, key: String) -> Result<u64, std::io::Error> { Ok(1) }
    /// async fn notify(ctx: NodeContext) -> NodeResult {
    ///     let text: String = ctx.data("draft")?;
    ///     let receipt = ctx.step("notify", || send(&text, ctx.idempotency_key("notify"))).await?;
    ///     Ok(NodeOutput::new().data("receipt", &receipt))
    /// }
    /// ```
    pub fn step<T, E, F, Fut>(
        &self,
        id: &str,
        f: F,
    ) -> impl Future<Output = Result<T, NodeError>> + Send + use<T, E, F, Fut>
    where
        T: Serialize + DeserializeOwned + Send,
        E: Into<NodeError>,
        F: FnOnce() -> Fut + Clone + Send,
        Fut: Future<Output = Result<T, E>> + Send,
    {
        self.step_within(id, &[], f)
    }

    /// Does something once, within limits that the run shares with its branches and its children: as [`step`](Self::step), but what it
    /// draws on has to be there.
    ///
    /// Where a limit is reached, the run says so (`limit-reached`) and asks a person whether to go on: once, however many calls wait. On
    /// yes all of them go on, with a fresh allowance; on no the run fails with `LIMIT_REACHED`. A step counts when it begins, once,
    /// however often replay or recovery come by it; one that fails and is tried again begins again.
    ///
    /// ```
    /// # use kortyx_runtime::{Counter, Draw, NodeContext, NodeOutput, NodeResult};
    /// # async fn search(text: &str) -> Result<Vec<String>, std::io::Error> { Ok(vec![]) }
    /// const SEARCHES: Counter = Counter::new("searches").limit(20);
    /// const RESULTS: Counter = Counter::new("results").limit(10_000);
    ///
    /// async fn research(ctx: NodeContext) -> NodeResult {
    ///     let found = ctx.step_within("search", &[Draw::One(SEARCHES), Draw::Measured(RESULTS)], || async {
    ///         let found = search("tea").await?;
    ///         ctx.spend(RESULTS, found.len() as u64)?;
    ///         Ok::<_, kortyx_runtime::NodeError>(found)
    ///     });
    ///     Ok(NodeOutput::new().data("found", &found.await?))
    /// }
    /// ```
    pub fn step_within<T, E, F, Fut>(
        &self,
        id: &str,
        draws: &[Draw],
        f: F,
    ) -> impl Future<Output = Result<T, NodeError>> + Send + use<T, E, F, Fut>
    where
        T: Serialize + DeserializeOwned + Send,
        E: Into<NodeError>,
        F: FnOnce() -> Fut + Clone + Send,
        Fut: Future<Output = Result<T, E>> + Send,
    {
        let pass = self.0.clone();
        let key = pass.with_pass(|state| state.next_key(id));
        let draws = draws.to_vec();
        async move {
            let key = key?;
            let (mut call, known) = Call::begin(&pass, key.clone(), Kind::Step, "")?;
            if known == Known::InStep {
                return Err(NodeError::message(format!(
                    "the step `{}` begins within another: make one of them",
                    key.id
                )));
            }
            if known == Known::No {
                if !draws.is_empty() {
                    meter::take(&pass, &key, &draws).await?;
                }
                let busy = InFlight::enter(&pass);
                call.begin_work();
                pass.shared.before_effect().await;
                pass.take_back(&key).await;
                let mut told = StepTold::begin(&pass, &key);
                let span = told.span.clone();
                let work = Running { pass: pass.clone(), key: key.clone(), start: Some(f), work: None, span };
                let value = work.await.map_err(Into::into).and_then(|value| Ok(RawJson::of(&value)?));
                told.end(&value);
                drop(told);
                let value = value.inspect_err(|_| call.fail())?;
                call.complete(Entry::new(key.clone(), Kind::Step, Arc::default(), EntryValue::Value(value)))?;
                pass.shared.stored().await;
                drop(busy);
            }
            match call.revealed().await? {
                EntryValue::Value(value) => match decode(&value, "the result of the step", &key.id) {
                    // The step is done: without its result the node must neither go on nor do it again.
                    Err(error) if known == Known::Completed => pass.park(unreadable(&pass.node, &error)).await,
                    decoded => decoded,
                },
                _ => Err(NodeError::message(format!("the journal entry of the step `{}` is no result", key.id))),
            }
        }
    }
}

/// Runs the work of a step and marks the step as the running one whenever it is polled.
struct Running<F, Fut> {
    pass: Arc<PassRef>,
    key: CallKey,
    start: Option<F>,
    work: Option<Pin<Box<Fut>>>,
    span: Span,
}

impl<F, Fut> Unpin for Running<F, Fut> {}

impl<F: FnOnce() -> Fut, Fut: Future> Future for Running<F, Fut> {
    type Output = Fut::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> task::Poll<Self::Output> {
        let this = self.get_mut();
        let outer = this.pass.with_pass(|pass| pass.running_step.replace(this.key.clone()));
        let entered = this.span.enter();
        if let Some(start) = this.start.take() {
            this.work = Some(Box::pin(start()));
        }
        let poll = match &mut this.work {
            Some(work) => work.as_mut().poll(cx),
            None => task::Poll::Pending,
        };
        drop(entered);
        if let Ok(outer) = outer {
            let _ = this.pass.with_pass(|pass| pass.running_step = outer);
        }
        poll
    }
}
