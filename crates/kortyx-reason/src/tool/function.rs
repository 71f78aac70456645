//! Tools that are functions.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::BoxFuture};
use kortyx_contracts::{OutputContract, OutputError};
use kortyx_protocol::{Issue, RawJson};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Approval, OnError, Tool, ToolContext, ToolError, ToolOutput, ToolPolicy};

type Run<A> = Arc<dyn Fn(A, ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync>;
type Decide<A> = Arc<dyn Fn(A) -> BoxFuture<'static, bool> + Send + Sync>;

/// A tool from an async function.
///
/// The schema that the model sees is that of `A`. The function is called with arguments that fit it; what it returns is anything that
/// serializes. Arguments are written back before they are shown or approved, so what a person sees has every default filled in:
/// `A` must read what it writes.
///
/// ```
/// use kortyx_reason::{ToolContext, ToolError, tool};
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Transfer {
///     to: String,
///     /// In cents.
///     amount: u64,
/// }
///
/// async fn transfer(order: Transfer, ctx: ToolContext) -> Result<String, ToolError> {
///     let receipt = bank(&order, &ctx.idempotency_key()).await?;
///     Ok(format!("transferred, receipt {receipt}"))
/// }
/// # async fn bank(_: &Transfer, _: &str) -> Result<u32, std::io::Error> { Ok(1) }
///
/// let tool = tool("transfer", "Transfers money.", transfer)
///     .approve_when(|order: Transfer| async move { order.amount > 100_00 });
/// # let _ = tool;
/// ```
pub fn tool<A, R, E, F, Fut>(name: impl Into<String>, description: impl Into<String>, f: F) -> FunctionTool<A>
where
    A: DeserializeOwned + Serialize + JsonSchema + Send + 'static,
    R: Serialize,
    E: Into<ToolError>,
    F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
{
    let run: Run<A> = Arc::new(move |arguments, ctx| {
        let running = f(arguments, ctx);
        async move { Ok(ToolOutput::of(&running.await.map_err(Into::into)?)?) }.boxed()
    });
    FunctionTool {
        name: name.into(),
        description: description.into(),
        policy: ToolPolicy::default(),
        run,
        decide: None,
        arguments: PhantomData,
    }
}

/// A tool that is a function; made by [`tool`].
#[must_use]
pub struct FunctionTool<A> {
    name: String,
    description: String,
    policy: ToolPolicy,
    run: Run<A>,
    decide: Option<Decide<A>>,
    arguments: PhantomData<fn(A)>,
}

impl<A: DeserializeOwned + Serialize + JsonSchema + Send + 'static> FunctionTool<A> {
    /// The contract that judges arguments; its name is no part of them.
    const ARGUMENTS: OutputContract<A> =
        OutputContract::new("arguments").description("Arguments of a tool").schema_id("kortyx.arguments").version("1");

    /// Every call needs a person's approval.
    pub fn approve_always(mut self) -> Self {
        self.policy = self.policy.approval(Approval::Always);
        self
    }

    /// A call needs a person's approval when this says so, once for each call, of the arguments that would be executed.
    pub fn approve_when<F, Fut>(mut self, needs: F) -> Self
    where
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = bool> + Send + 'static,
    {
        self.policy = self.policy.approval(Approval::Decide);
        self.decide = Some(Arc::new(move |arguments| needs(arguments).boxed()));
        self
    }

    /// How long an approval may be given; see [`ToolPolicy::approval_expires_in`].
    pub fn approval_expires_in(mut self, time: Duration) -> Self {
        self.policy = self.policy.approval_expires_in(time);
        self
    }

    /// How long a call may take; see [`ToolPolicy::timeout`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.policy = self.policy.timeout(timeout);
        self
    }

    /// How long a result may be; see [`ToolPolicy::max_result_bytes`].
    pub fn max_result_bytes(mut self, bytes: usize) -> Self {
        self.policy = self.policy.max_result_bytes(bytes);
        self
    }

    /// How many questions a call may ask; see [`ToolPolicy::max_questions`].
    pub fn max_questions(mut self, questions: usize) -> Self {
        self.policy = self.policy.max_questions(questions);
        self
    }

    /// What becomes of an error; see [`ToolPolicy::on_error`].
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.policy = self.policy.on_error(on_error);
        self
    }

    /// Hides a part of arguments and results; see [`ToolPolicy::redact`].
    pub fn redact(mut self, pointer: impl Into<String>) -> Self {
        self.policy = self.policy.redact(pointer);
        self
    }

    fn decode(arguments: &Value) -> Result<A, Vec<Issue>> {
        Self::ARGUMENTS.decode(arguments).map_err(|error| match error {
            OutputError::Invalid { issues, .. } => issues,
            other => vec![Issue::new("", "schema", other.to_string())],
        })
    }
}

impl<A: DeserializeOwned + Serialize + JsonSchema + Send + 'static> Tool for FunctionTool<A> {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn parameters(&self) -> Result<RawJson, String> {
        Self::ARGUMENTS.schema().map_err(|error| error.to_string())
    }

    fn policy(&self) -> &ToolPolicy {
        &self.policy
    }

    fn accept(&self, arguments: &Value) -> Result<Value, Vec<Issue>> {
        let decoded = Self::decode(arguments)?;
        let written = RawJson::of(&decoded).and_then(|raw| raw.to_value());
        written.map_err(|error| vec![Issue::new(error.path, "json", error.message)])
    }

    fn needs_approval<'a>(&'a self, arguments: &'a Value) -> BoxFuture<'a, bool> {
        match (&self.decide, Self::decode(arguments)) {
            (Some(decide), Ok(arguments)) => decide(arguments),
            _ => async { true }.boxed(),
        }
    }

    fn call(&self, arguments: Value, ctx: ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        match Self::decode(&arguments) {
            Ok(arguments) => (self.run)(arguments, ctx),
            Err(_) => async { Err(ToolError::new("the arguments do not fit")) }.boxed(),
        }
    }
}
