//! The call: what a model is given and may do.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use kortyx_contracts::SchemaValidator;
use kortyx_protocol::RawJson;
use kortyx_runtime::{NodeContext, NodeError};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    Interrupts, Message, Model, ModelRetry, ModelSettings, Outputs, ReasonError, Reasoned, Tool, ToolDeclaration,
    model::Patience,
    output::{Output, Streamed},
    partial::Field,
    run::{Reasoning, forget_rejection},
};

/// How many passes a call may take when it does not say.
const MAX_STEPS: u32 = 10;

/// What the names of tools of an application may not begin with.
const RESERVED: &str = "kortyx_";

/// What becomes of the other calls of a model's turn while one waits for a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhileWaiting {
    /// The calls before it are made; those after it wait too, and are made in order.
    #[default]
    Hold,
    /// Calls that wait for nobody are made, and each that waits is made as soon as its own answer is there.
    Proceed,
}

/// What a model is given, and what it may do, to come to a result.
///
/// ```
/// use kortyx_reason::{Reason, ReasonExt, Script, ScriptedModel};
/// use kortyx_runtime::{NodeContext, NodeOutput, NodeResult};
///
/// async fn brief(ctx: NodeContext) -> NodeResult {
///     let model = ScriptedModel::new([Script::new().text("Three points.")]);
///     let reason = Reason::new(model).system("You brief the board.").input("Brief us on Q3.").max_steps(8);
///     let brief = ctx.reason("brief", reason).await?;
///     Ok(NodeOutput::new().data("brief", &brief.text))
/// }
/// # let _ = brief;
/// ```
#[must_use]
pub struct Reason<T = ()> {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) system: Option<String>,
    pub(crate) history: Vec<Message>,
    pub(crate) input: Option<String>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) interrupts: Option<Interrupts>,
    pub(crate) max_steps: u32,
    pub(crate) while_waiting: WhileWaiting,
    pub(crate) emit: bool,
    pub(crate) retry: ModelRetry,
    pub(crate) patience: Patience,
    pub(crate) settings: ModelSettings,
    pub(crate) outputs: Outputs,
    pub(crate) output: Output<T>,
    pub(crate) streamed: Option<Streamed>,
}

impl Reason {
    /// Begins with a model.
    pub fn new(model: impl Model + 'static) -> Self {
        Self {
            model: Arc::new(model),
            system: None,
            history: Vec::new(),
            input: None,
            tools: Vec::new(),
            interrupts: None,
            max_steps: MAX_STEPS,
            while_waiting: WhileWaiting::default(),
            emit: false,
            retry: ModelRetry::default(),
            patience: Patience::default(),
            settings: ModelSettings::default(),
            outputs: Outputs::default(),
            output: Output::none(),
            streamed: None,
        }
    }

    /// The final answer is to be an object of this type, in JSON. One that does not fit is corrected once.
    pub fn output<T: DeserializeOwned + JsonSchema + 'static>(self) -> Reason<T> {
        Reason {
            model: self.model,
            system: self.system,
            history: self.history,
            input: self.input,
            tools: self.tools,
            interrupts: self.interrupts,
            max_steps: self.max_steps,
            while_waiting: self.while_waiting,
            emit: self.emit,
            retry: self.retry,
            patience: self.patience,
            settings: self.settings,
            outputs: self.outputs,
            output: Output::of(),
            streamed: self.streamed,
        }
    }
}

impl<T> Reason<T> {
    /// The application's instructions.
    pub fn system(mut self, instructions: impl Into<String>) -> Self {
        self.system = Some(instructions.into());
        self
    }

    /// Earlier messages of the conversation, such as those of [`NodeContext::history`].
    pub fn history<M: Into<Message>>(mut self, messages: impl IntoIterator<Item = M>) -> Self {
        self.history.extend(messages.into_iter().map(Into::into));
        self
    }

    /// What is asked of the model.
    pub fn input(mut self, input: impl Into<String>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Lets it call a tool.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Lets it call tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Lets it ask people.
    pub fn interrupts(mut self, interrupts: Interrupts) -> Self {
        self.interrupts = Some(interrupts);
        self
    }

    /// Lets it emit values of contracts, and has it return one.
    ///
    /// A contract to return with and [`output`](Reason::output) exclude each other: each says what the call ends with.
    pub fn outputs(mut self, outputs: Outputs) -> Self {
        self.outputs = outputs;
        self
    }

    /// Streams the final [`output`](Reason::output) to the client, as structured data of this type: these fields while the model
    /// writes them, the whole when it is accepted. A field that the object has twice is a mistake then. With [`emit`](Self::emit) the text
    /// of the object is sent as well.
    ///
    /// ```
    /// use kortyx_reason::{Reason, ScriptedModel, partial::Field};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Rating { stars: u8, why: String }
    ///
    /// let model = ScriptedModel::new([]);
    /// let reason = Reason::new(model).input("Rate our tea.").output::<Rating>();
    /// let reason = reason.stream_output("rating", [Field::set("stars"), Field::text_delta("why")]);
    /// # let _ = reason;
    /// ```
    pub fn stream_output(mut self, data_type: impl Into<Arc<str>>, fields: impl IntoIterator<Item = Field>) -> Self {
        self.streamed = Some(Streamed::new(data_type.into(), fields.into_iter().collect()));
        self
    }

    /// How many passes there may be in all, those before a pause among them; 10 where nothing is said.
    pub fn max_steps(mut self, steps: u32) -> Self {
        self.max_steps = steps;
        self
    }

    /// What becomes of the other calls of a turn while one waits for a person.
    pub fn while_waiting(mut self, policy: WhileWaiting) -> Self {
        self.while_waiting = policy;
        self
    }

    /// Streams the model's text and its calls of tools to the client.
    pub fn emit(mut self) -> Self {
        self.emit = true;
        self
    }

    /// When a pass is tried again.
    pub fn retry(mut self, retry: ModelRetry) -> Self {
        self.retry = retry;
        self
    }

    /// How long a pass may take, with all its attempts and the waits between them; 15 minutes where nothing is said.
    ///
    /// A model that is not done by then fails the call, as does one that is silent for the
    /// [longest silence](Self::silence_timeout): the run is not held for ever. Nothing of such a pass is recorded.
    pub fn pass_timeout(mut self, time: Duration) -> Self {
        self.patience.pass = time;
        self
    }

    /// How long to wait for the next event of a model; 5 minutes where nothing is said.
    ///
    /// A model that has said nothing yet is [asked again](Self::retry), within the [time of the pass](Self::pass_timeout).
    pub fn silence_timeout(mut self, time: Duration) -> Self {
        self.patience.silence = time;
        self
    }

    /// How much chance is in the answers.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.settings.temperature = Some(temperature);
        self
    }

    /// The most tokens of one pass.
    pub fn max_output_tokens(mut self, tokens: u32) -> Self {
        self.settings.max_output_tokens = Some(tokens);
        self
    }

    pub(crate) fn find_tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// The schema of the output, when one is asked for.
    pub(crate) fn output_schema(&self) -> Result<Option<RawJson>, ReasonError> {
        let schema = self.output.schema.clone().transpose();
        schema.map_err(|error| ReasonError::Definition(format!("the output cannot be asked for: {error}")))
    }

    /// The tools as the model sees them, or what is wrong with the call.
    pub(crate) fn declarations(&self) -> Result<Vec<ToolDeclaration>, ReasonError> {
        let mut declared = Vec::with_capacity(self.tools.len());
        let mut names = BTreeSet::new();
        for tool in &self.tools {
            let declaration = declared_tool(&**tool).map_err(ReasonError::Definition)?;
            if !names.insert(declaration.name.clone()) {
                return Err(ReasonError::Definition(format!("two tools are named `{}`", declaration.name)));
            }
            declared.push(declaration);
        }
        let asking = self.interrupts.as_ref().map(Interrupts::declarations).transpose();
        let asking = asking.map_err(|error| ReasonError::Definition(error.to_string()))?.unwrap_or_default();
        let delivering = self.outputs.declarations().map_err(ReasonError::Definition)?;
        for declaration in asking.into_iter().chain(delivering) {
            if !names.insert(declaration.name.clone()) {
                return Err(ReasonError::Definition(format!("two contracts are named alike: `{}`", declaration.name)));
            }
            declared.push(declaration);
        }
        if self.interrupts.as_ref().is_some_and(|interrupts| interrupts.required && !interrupts.can_ask()) {
            let text = "the model is required to ask and cannot: add a contract, and allow a question";
            return Err(ReasonError::Definition(text.into()));
        }
        self.check_end()?;
        if !declared.is_empty() && !self.model.capabilities().tools {
            let text = format!(
                "the model `{}` cannot call tools, by which it also asks people and delivers",
                self.model.name()
            );
            return Err(ReasonError::Definition(text));
        }
        Ok(declared)
    }

    /// Whether it is clear what the call ends with, and how that is streamed.
    fn check_end(&self) -> Result<(), ReasonError> {
        let schema = self.output_schema()?;
        if schema.is_some() && self.outputs.endings().next().is_some() {
            let text = "the call ends with an output or with what is returned by a contract: declare one of them";
            return Err(ReasonError::Definition(text.into()));
        }
        match (&self.streamed, schema) {
            (None, _) => Ok(()),
            (Some(streamed), Some(schema)) => {
                streamed.check(&schema).map_err(|why| ReasonError::Definition(format!("the output: {why}")))
            }
            (Some(_), None) => Err(ReasonError::Definition("there is no output to stream: call `output` too".into())),
        }
    }
}

fn declared_tool(tool: &dyn Tool) -> Result<ToolDeclaration, String> {
    let name = tool.name();
    let fits = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'_' || letter == b'-';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(fits) {
        return Err(format!("the tool name `{name}` is not valid: 1 to 64 ASCII letters, digits, `_` and `-`"));
    }
    if name.starts_with(RESERVED) {
        return Err(format!("the tool name `{name}` is not valid: names that begin with `{RESERVED}` are reserved"));
    }
    let parameters =
        tool.parameters().map_err(|why| format!("the schema of the tool `{name}` cannot be used: {why}"))?;
    SchemaValidator::compile_raw(&parameters).map_err(|why| format!("the schema of the tool `{name}`: {why}"))?;
    Ok(ToolDeclaration { name: name.to_owned(), description: tool.description().to_owned(), parameters })
}

/// Reasoning in a node.
pub trait ReasonExt {
    /// Has a model work until it has a result, with what it is given, through any number of pauses.
    ///
    /// Every pass of the model, result of a tool, answer and decision is recorded when it is there. After a pause or a crash
    /// nothing that was recorded happens again, and the model is given the conversation that it had.
    ///
    /// Using an id again is another call with records of its own.
    ///
    /// # Errors
    /// See [`ReasonError`]. A pause is never an error.
    fn reason<T: Send + 'static>(
        &self,
        id: &str,
        reason: Reason<T>,
    ) -> impl Future<Output = Result<Reasoned<T>, ReasonError>> + Send;

    /// Lets a call of a tool be asked again that a person has rejected in this run.
    ///
    /// The arguments are those that were rejected, as the question showed them.
    ///
    /// # Errors
    /// The arguments are not JSON that can be kept, or the activation is over.
    fn reopen_tool_call(&self, tool: &str, arguments: &Value) -> Result<(), NodeError>;
}

impl ReasonExt for NodeContext {
    fn reason<T: Send + 'static>(
        &self,
        id: &str,
        reason: Reason<T>,
    ) -> impl Future<Output = Result<Reasoned<T>, ReasonError>> + Send {
        let begun = self.occurrence(id).map(|use_of_id| format!("{id}#{use_of_id}"));
        async move { Reasoning::begin(self, begun?, &reason)?.run().await }
    }

    fn reopen_tool_call(&self, tool: &str, arguments: &Value) -> Result<(), NodeError> {
        forget_rejection(self, tool, arguments)
    }
}
