//! The four formats, and what a model says in each of them.

use futures_util::StreamExt as _;
use kortyx_reason::{
    FinishReason, GenaiModel, Message, Model as _, ModelError, ModelEvent, ModelRequest, ModelSettings,
    ToolDeclaration, Usage,
};
use serde_json::{Value, json};

use crate::{
    formats,
    provider::{Provider, Reply},
};

pub(crate) const KEY: &str = "sk-very-secret";

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Chat,
    Responses,
    Anthropic,
    Gemini,
}

pub(crate) const ALL: [Format; 4] = [Format::Chat, Format::Responses, Format::Anthropic, Format::Gemini];

/// What a model says: texts and arguments in pieces.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    pub(crate) text: Vec<&'static str>,
    pub(crate) calls: Vec<(&'static str, Vec<&'static str>)>,
    pub(crate) end: End,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum End {
    #[default]
    Done,
    /// The most tokens are reached.
    Cut,
    /// The model, or a filter, refuses. The text is the refusal's where the format has one.
    Refused,
}

impl Said {
    pub(crate) fn text(text: &'static str) -> Self {
        Self { text: vec![text], ..Self::default() }
    }

    pub(crate) fn call(tool: &'static str, arguments: &'static str) -> Self {
        Self { calls: vec![(tool, vec![arguments])], ..Self::default() }
    }

    /// A text and two calls, with characters of several bytes.
    pub(crate) fn much() -> Self {
        Self {
            text: vec!["Ei", "n Tässchen ", "🫖"],
            calls: vec![
                ("order", vec!["{\"wh", "at\":\"thé 🍵", " vert\",\"amo", "unt\":2}"]),
                ("note", vec!["{\"what\":", "\"\\u00e9\"}"]),
            ],
            end: End::Done,
        }
    }

    pub(crate) fn end(mut self, end: End) -> Self {
        self.end = end;
        self
    }
}

impl Format {
    pub(crate) fn model(self) -> &'static str {
        match self {
            Self::Chat => "gpt-4o-mini",
            Self::Responses => "gpt-5-mini",
            Self::Anthropic => "claude-sonnet-4-5",
            Self::Gemini => "gemini-3-flash",
        }
    }

    pub(crate) fn frames(self, said: &Said) -> Vec<String> {
        match self {
            Self::Chat => formats::chat::frames(said),
            Self::Responses => formats::responses::frames(said),
            Self::Anthropic => formats::anthropic::frames(said),
            Self::Gemini => formats::gemini::frames(said),
        }
    }

    pub(crate) fn whole(self, said: &Said) -> Value {
        match self {
            Self::Chat => formats::chat::whole(said),
            Self::Responses => formats::responses::whole(said),
            Self::Anthropic => formats::anthropic::whole(said),
            Self::Gemini => formats::gemini::whole(said),
        }
    }

    pub(crate) fn reply(self, said: &Said, buffered: bool) -> Reply {
        if buffered { Reply::json(200, &self.whole(said)) } else { Reply::stream(&self.frames(said)) }
    }

    /// The model at this server.
    pub(crate) fn at(self, provider: &Provider, buffered: bool) -> GenaiModel {
        let model = GenaiModel::new(self.model()).unwrap().endpoint(provider.url()).api_key(KEY);
        if buffered { model.buffered() } else { model }
    }

    /// What comes of one reply.
    pub(crate) async fn hears(self, reply: Reply, buffered: bool) -> Result<Heard, ModelError> {
        let provider = Provider::start([reply]).await;
        hear(&self.at(&provider, buffered), &[Message::user("Tea.")], &[]).await
    }
}

/// What a model said, put together.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Heard {
    pub(crate) text: String,
    pub(crate) calls: Vec<(String, Value)>,
    pub(crate) usage: Usage,
    pub(crate) metadata: Value,
    pub(crate) finish: Option<FinishReason>,
    pub(crate) events: Vec<ModelEvent>,
}

/// One pass.
pub(crate) async fn hear(
    model: &GenaiModel,
    messages: &[Message],
    tools: &[ToolDeclaration],
) -> Result<Heard, ModelError> {
    let settings = ModelSettings::default();
    let mut request = ModelRequest::new(messages, &settings);
    request.tools = tools;
    hear_request(model, request).await
}

pub(crate) async fn hear_request(model: &GenaiModel, request: ModelRequest<'_>) -> Result<Heard, ModelError> {
    let mut events = model.stream(request).await?;
    let (mut heard, mut calls) = (Heard::default(), Vec::<(String, String)>::new());
    while let Some(event) = events.next().await {
        let event = event?;
        assert_eq!(heard.finish, None, "nothing comes after the end");
        heard.events.push(event.clone());
        match event {
            ModelEvent::Text(text) => heard.text.push_str(&text),
            ModelEvent::ToolCall { index, tool, arguments } => {
                let index = index as usize;
                calls.resize(calls.len().max(index + 1), (String::new(), String::new()));
                calls[index].0.push_str(&tool);
                calls[index].1.push_str(&arguments);
            }
            ModelEvent::Usage(usage) => heard.usage = usage,
            ModelEvent::ProviderMetadata(metadata) => heard.metadata = metadata,
            ModelEvent::Finish(reason) => heard.finish = Some(reason),
            other => panic!("{other:?}"),
        }
    }
    assert!(heard.finish.is_some(), "a stream that is over has said why");
    let value = |text: String| serde_json::from_str(&text).unwrap_or_else(|_| json!(text));
    heard.calls = calls.into_iter().map(|(tool, arguments)| (tool, value(arguments))).collect();
    Ok(heard)
}
