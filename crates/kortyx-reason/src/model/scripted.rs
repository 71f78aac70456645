//! A model that plays scripts.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use kortyx_protocol::Usage;
use serde_json::Value;

use super::{Capabilities, FinishReason, Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream};
use crate::Message;

/// A model that plays scripts, for tests and demos. Cheap to clone; clones share what they recorded.
///
/// A conversation in which the model has spoken `n` times since the last message of a person gets script `n`. So a pass that is
/// made again after a crash plays the same script again, and a new turn of a chat begins with the first. What depends on
/// what was said is played [by a function](Self::from_fn) of the conversation.
///
/// ```
/// use kortyx_reason::{Script, ScriptedModel};
/// use serde_json::json;
///
/// let model = ScriptedModel::new([
///     Script::new().text("I look that up.").call("weather", json!({"city": "Bern"})),
///     Script::new().text("It rains in Bern.").split(3),
/// ]);
/// # let _ = model;
/// ```
#[derive(Clone)]
pub struct ScriptedModel {
    inner: Arc<Inner>,
    capabilities: Capabilities,
}

/// Says what to play for a conversation.
type Choose = Box<dyn Fn(&[Message]) -> Script + Send + Sync>;

struct Inner {
    choose: Choose,
    played: Mutex<Vec<Played>>,
    /// How often a conversation, by its canonical form, was given a script.
    attempts: Mutex<HashMap<String, usize>>,
}

/// A request that a [`ScriptedModel`] was given.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Played {
    /// The conversation.
    pub messages: Vec<Message>,
    /// The names of the tools.
    pub tools: Vec<String>,
    /// Whether JSON was asked for.
    pub json: bool,
}

impl ScriptedModel {
    /// Plays these, by the place in the conversation. A conversation that goes on after the last one fails.
    pub fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        let scripts: Vec<Script> = scripts.into_iter().collect();
        Self::from_fn(move |messages| {
            let turn = messages.iter().rev().take_while(|message| !message.is_user());
            let spoken = turn.filter(|message| message.is_assistant()).count();
            scripts.get(spoken).cloned().unwrap_or_else(|| {
                let text = format!("there is no script {spoken}: the model speaks once more than expected");
                Script::new().fail(ModelError::new(ModelErrorKind::Configuration, text))
            })
        })
    }

    /// Plays what a function says for a conversation. The same conversation should be given the same script.
    ///
    /// ```
    /// use kortyx_reason::{Message, Script, ScriptedModel};
    /// use serde_json::json;
    ///
    /// let model = ScriptedModel::from_fn(|messages| match messages.last() {
    ///     Some(Message::Tool { content, is_error: false, .. }) => Script::new().text(format!("It is {content}.")),
    ///     Some(Message::User { content }) if content.contains("weather") => Script::new().call("weather", json!({})),
    ///     _ => Script::new().text("I only know the weather."),
    /// });
    /// # let _ = model;
    /// ```
    pub fn from_fn(choose: impl Fn(&[Message]) -> Script + Send + Sync + 'static) -> Self {
        let choose: Choose = Box::new(choose);
        let inner = Inner { choose, played: Mutex::default(), attempts: Mutex::default() };
        Self { inner: Arc::new(inner), capabilities: Capabilities::default() }
    }

    /// Says what it is capable of.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Every request so far.
    pub fn played(&self) -> Vec<Played> {
        self.inner.played.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The conversation of every request so far, as canonical JSON.
    pub fn conversations(&self) -> Vec<String> {
        self.played().iter().map(|played| Message::canonical(&played.messages).unwrap_or_default()).collect()
    }

    fn note(&self, request: ModelRequest<'_>) -> usize {
        let played = Played {
            messages: request.messages.to_vec(),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
            json: request.json_schema.is_some(),
        };
        let key = Message::canonical(&played.messages).unwrap_or_default();
        self.inner.played.lock().unwrap_or_else(PoisonError::into_inner).push(played);
        let mut attempts = self.inner.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = attempts.entry(key).or_default();
        *count = count.saturating_add(1);
        count.saturating_sub(1)
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn stream<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>> {
        let attempt = self.note(request);
        let script = (self.inner.choose)(request.messages);
        async move {
            if let Some(error) = script.first_failures.get(attempt) {
                return Err(error.clone());
            }
            let events = stream::iter(script.events()).then(|cue| async move {
                match cue {
                    Cue::Wait(time) => {
                        tokio::time::sleep(time).await;
                        None
                    }
                    Cue::Event(event) => Some(Ok(event)),
                    Cue::Fail(error) => Some(Err(error)),
                }
            });
            Ok(events.filter_map(|event| async move { event }).boxed())
        }
        .boxed()
    }
}

/// What a [`ScriptedModel`] does in one pass.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Script {
    first_failures: Vec<ModelError>,
    cues: Vec<Cue>,
    split: Option<usize>,
    pace: Option<Duration>,
    calls: u32,
    finish: Option<FinishReason>,
    is_cut: bool,
}

#[derive(Debug, Clone)]
enum Cue {
    Wait(Duration),
    Event(ModelEvent),
    Fail(ModelError),
}

impl Script {
    /// One that says nothing and finishes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says a text.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.event(ModelEvent::Text(text.into()))
    }

    /// Calls a tool.
    pub fn call(self, tool: impl Into<String>, arguments: impl Into<Value>) -> Self {
        self.call_text(tool, arguments.into().to_string())
    }

    /// Calls a tool with this text for its arguments, which need not be JSON.
    pub fn call_text(mut self, tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        let index = self.calls;
        self.calls = self.calls.saturating_add(1);
        self.event(ModelEvent::ToolCall { index, tool: tool.into(), arguments: arguments.into() })
    }

    /// Says what it costs.
    pub fn usage(self, input: u64, output: u64) -> Self {
        self.event(ModelEvent::Usage(Usage { input, output, total: input.saturating_add(output) }))
    }

    /// Sends any event.
    pub fn event(mut self, event: ModelEvent) -> Self {
        self.cues.push(Cue::Event(event));
        self
    }

    /// Waits, at this place.
    pub fn wait(mut self, time: Duration) -> Self {
        self.cues.push(Cue::Wait(time));
        self
    }

    /// Fails, at this place.
    pub fn fail(mut self, error: ModelError) -> Self {
        self.cues.push(Cue::Fail(error));
        self
    }

    /// Ends without a finish, as when a connection breaks.
    pub fn cut(mut self) -> Self {
        self.is_cut = true;
        self
    }

    /// Fails before it says anything, the first times that a conversation is played to it: once for each error.
    pub fn after_failures(mut self, errors: impl IntoIterator<Item = ModelError>) -> Self {
        self.first_failures.extend(errors);
        self
    }

    /// Sends texts and arguments in pieces of so many characters.
    pub fn split(mut self, characters: usize) -> Self {
        self.split = Some(characters.max(1));
        self
    }

    /// Waits so long before every piece, as a model does that writes.
    pub fn pace(mut self, pause: Duration) -> Self {
        self.pace = Some(pause);
        self
    }

    /// Finishes for this reason. Without it, for the calls if there are some, else because it is done.
    pub fn finish(mut self, reason: FinishReason) -> Self {
        self.finish = Some(reason);
        self
    }

    fn events(self) -> Vec<Cue> {
        let default = if self.calls == 0 { FinishReason::Stop } else { FinishReason::ToolCalls };
        let end = (!self.is_cut).then(|| Cue::Event(ModelEvent::Finish(self.finish.unwrap_or(default))));
        let (split, pace) = (self.split, self.pace.map(Cue::Wait));
        let cues = self.cues.into_iter().flat_map(|cue| match (cue, split) {
            (Cue::Event(event), Some(size)) => pieces(event, size).into_iter().map(Cue::Event).collect(),
            (cue, _) => vec![cue],
        });
        let paced = cues.flat_map(|cue| pace.clone().into_iter().chain([cue]));
        paced.chain(end).collect()
    }
}

/// An event in pieces.
fn pieces(event: ModelEvent, size: usize) -> Vec<ModelEvent> {
    match event {
        ModelEvent::Text(text) => chunks(&text, size).into_iter().map(ModelEvent::Text).collect(),
        ModelEvent::ToolCall { index, tool, arguments } => {
            let mut name = Some(tool);
            let pieces = chunks(&arguments, size).into_iter().map(|arguments| {
                let tool = name.take().unwrap_or_default();
                ModelEvent::ToolCall { index, tool, arguments }
            });
            pieces.collect()
        }
        other => vec![other],
    }
}

fn chunks(text: &str, size: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    if characters.is_empty() {
        return vec![String::new()];
    }
    characters.chunks(size).map(|piece| piece.iter().collect()).collect()
}
