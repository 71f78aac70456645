//! Completing the response before the work is done.

use std::{collections::BTreeMap, future::Future, sync::Arc};

use kortyx_protocol::{Failure, FailureCode, JsonError, RawJson, Usage};
use serde::Serialize;

use crate::{
    NodeContext, NodeError, output,
    pass::{Call, InFlight, Known, PassRef},
    state::{Entry, EntryValue, Kind, ROOT},
    trace::TurnState,
    workflow::DefinitionPin,
};

/// The id of the calls in the journal.
const CALL: &str = "complete_response";

/// What a response ends with: a last message and public data, both optional. A text is a message.
///
/// ```
/// use kortyx_runtime::FinalResponse;
///
/// let response = FinalResponse::new().message("Your order is in.").data("order", &4711);
/// # let _: (FinalResponse, FinalResponse) = (response, "Your order is in.".into());
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct FinalResponse {
    message: Option<String>,
    data: BTreeMap<String, RawJson>,
    error: Option<JsonError>,
}

impl FinalResponse {
    /// A response that ends without a message and without data.
    pub fn new() -> Self {
        Self::default()
    }

    /// The last message.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// A top-level field of the data. A value that does not serialize fails the call with `INVALID_OUTPUT` and its path.
    pub fn data<T: Serialize + ?Sized>(mut self, field: impl Into<String>, value: &T) -> Self {
        let field = field.into();
        match RawJson::of(value) {
            Ok(value) => drop(self.data.insert(field, value)),
            Err(error) => drop(self.error.get_or_insert_with(|| output::within(&field, &error))),
        }
        self
    }
}

impl From<&str> for FinalResponse {
    fn from(message: &str) -> Self {
        Self::new().message(message)
    }
}

impl From<String> for FinalResponse {
    fn from(message: String) -> Self {
        Self::new().message(message)
    }
}

/// A response that its run has completed, with the run's state as of then.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CompletedResponse {
    /// The node that completed it.
    pub node: Arc<str>,
    /// The last message.
    pub message: Option<String>,
    /// Its data, an object.
    pub data: RawJson,
    /// The definition that the run was bound to.
    pub workflow: DefinitionPin,
    /// What a session keeps of the turn, which ends here; only of [tracked](crate::Start::tracked) runs. Their later pauses and
    /// their end tell nothing more.
    pub turn: Option<TurnState>,
    /// The tokens that the run has used so far, with its children; `None` when it has used none that anybody told of.
    pub usage: Option<Usage>,
}

impl NodeContext {
    /// Completes the response of the turn: the client gets the message, the questions open now and the end of its response,
    /// and the run goes on without it.
    ///
    /// That the response is complete is durable before the client is told. What the run says from then on is delivered to
    /// nobody, and questions that it publishes from then on are marked as asked after the response. A run completes its
    /// response once, whoever of its nodes calls this first, also branches of a fan-out: for the others, for later calls and
    /// in replay this does nothing.
    ///
    /// # Errors
    /// A child workflow's node calls it, or it is called within a step: only the run's own nodes may. The data does not
    /// serialize.
    ///
    /// ```
    /// # use kortyx_contracts::Choice;
    /// # use kortyx_runtime::{NodeContext, NodeOutput, NodeResult};
    /// async fn order(ctx: NodeContext) -> NodeResult {
    ///     ctx.complete_response("Thanks, we are on it.").await?;
    ///     let stock = Choice::new("Is it in stock?").option("yes", "Yes").option("no", "No");
    ///     let stock = ctx.interrupt("stock", stock).await?; // a question for the staff, found by listing
    ///     Ok(NodeOutput::new().data("stock", &stock))
    /// }
    /// ```
    pub fn complete_response<R: Into<FinalResponse>>(
        &self,
        response: R,
    ) -> impl Future<Output = Result<(), NodeError>> + Send + use<R> {
        complete(self.clone(), response.into())
    }
}

/// The call counts when it is made, not when it is first polled.
fn complete(ctx: NodeContext, response: FinalResponse) -> impl Future<Output = Result<(), NodeError>> + Send {
    let key = ctx.0.with_pass(|pass| pass.next_key(CALL));
    async move {
        let (key, pass) = (key?, &ctx.0);
        check_root(pass)?;
        let (mut call, known) = Call::begin(pass, key.clone(), Kind::Response, "")?;
        if known == Known::InStep {
            return Err(refused("the response is completed within a step: complete it before the step or after it"));
        }
        if let Some(error) = &response.error {
            return Err(output::unwritable(&ctx, "the data of the response", error).into());
        }
        if known == Known::No {
            let busy = InFlight::enter(pass);
            call.begin_work();
            pass.shared.opened().await;
            let completed = completed(pass, response)?;
            pass.with(|core| core.complete_response(completed))?;
            let value = EntryValue::Value(RawJson::null());
            call.complete(Entry::new(key, Kind::Response, Arc::default(), value))?;
            pass.shared.stored().await;
            drop(busy);
        }
        call.revealed().await?;
        Ok(())
    }
}

/// A child's caller decides what the client hears, not the child.
fn check_root(pass: &PassRef) -> Result<(), NodeError> {
    if pass.frame == ROOT {
        return Ok(());
    }
    let (child, node) = (&pass.workflow, &pass.node);
    Err(refused(format!(
        "the node `{node}` of the child workflow `{child}` completes the response, which only nodes of the run's own workflow \
         may: complete it in the node that calls the child"
    )))
}

fn completed(pass: &PassRef, response: FinalResponse) -> Result<CompletedResponse, NodeError> {
    let data = RawJson::of(&response.data)?;
    let FinalResponse { message, .. } = response;
    let node = pass.node.clone();
    Ok(pass.with(|core| CompletedResponse {
        node,
        message,
        data,
        workflow: core.state.pin(),
        turn: core.state.turn(),
        usage: core.state.meters.usage(),
    })?)
}

fn refused(message: impl Into<String>) -> NodeError {
    Failure::new(FailureCode::ExecutionFailed, message).with_retryable(Some(false)).into()
}
