//! What providers do differently.

use genai::adapter::AdapterKind;

use crate::Capabilities;

/// How a provider wants to be spoken to.
#[derive(Debug, Clone)]
pub(super) struct Dialect {
    kind: AdapterKind,
    /// The model's name without its provider's.
    model: String,
}

/// How a provider's wire format takes the results of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Results {
    /// All results of a turn in one message, each with a mark when it is an error.
    Marked,
    /// All results of a turn in one message.
    Together,
    /// A message for each.
    Apart,
}

impl Dialect {
    pub(super) fn of(kind: AdapterKind, name: &str) -> Self {
        let model = name.rsplit_once("::").map_or(name, |(_, model)| model);
        Self { kind, model: model.to_owned() }
    }

    /// The provider, as the OpenTelemetry conventions for generative models name it, else as its library does.
    pub(super) fn provider(&self) -> &'static str {
        match self.kind {
            AdapterKind::OpenAI | AdapterKind::OpenAIResp => "openai",
            AdapterKind::Gemini => "gcp.gemini",
            AdapterKind::Xai => "x_ai",
            kind => kind.as_lower_str(),
        }
    }

    /// The variable that the provider's key is in, where it needs one.
    pub(super) fn key_variable(&self) -> Option<&'static str> {
        self.kind.default_key_env_name()
    }

    pub(super) fn capabilities(&self) -> Capabilities {
        let tools = !matches!(self.kind, AdapterKind::Cohere);
        Capabilities::default().with_tools(tools).with_json_schema(self.takes_schemas())
    }

    /// Whether answers can be held to a schema, whatever else is asked for. Where that is not sure the schema is asked for in words.
    fn takes_schemas(&self) -> bool {
        let older = |names: &[&str]| names.iter().any(|name| self.model.starts_with(name));
        match self.kind {
            AdapterKind::OpenAI => !older(&["gpt-3", "gpt-4-", "o1-mini", "o1-preview"]) && self.model != "gpt-4",
            AdapterKind::OpenAIResp | AdapterKind::Xai => true,
            // Before Gemini 3 a schema and tools exclude each other.
            AdapterKind::Gemini => !older(&["gemini-1", "gemini-2"]),
            AdapterKind::Anthropic => {
                !older(&["claude-2", "claude-3", "claude-instant", "claude-opus-4-0", "claude-sonnet-4-0"])
                    && !older(&["claude-opus-4-2025", "claude-sonnet-4-2025"])
            }
            _ => false,
        }
    }

    /// Whether only the schema of an object can be asked for, with the fields that it names.
    pub(super) fn takes_plain_objects_only(&self) -> bool {
        matches!(self.kind, AdapterKind::OpenAI | AdapterKind::OpenAIResp | AdapterKind::Anthropic | AdapterKind::Xai)
    }

    /// Whether instructions may come in the middle of a conversation. Elsewhere they would be moved to its beginning, which changes
    /// what the model was told before, so they are sent as the user's.
    pub(super) fn takes_instructions_anywhere(&self) -> bool {
        let others = [AdapterKind::OpenAIResp, AdapterKind::Ollama, AdapterKind::OllamaCloud];
        self.speaks_chat_completions() || others.contains(&self.kind)
    }

    fn speaks_chat_completions(&self) -> bool {
        matches!(
            self.kind,
            AdapterKind::OpenAI
                | AdapterKind::Groq
                | AdapterKind::DeepSeek
                | AdapterKind::Xai
                | AdapterKind::OpenRouter
                | AdapterKind::Together
                | AdapterKind::Fireworks
                | AdapterKind::Custom(_)
        )
    }

    pub(super) fn results(&self) -> Results {
        match self.kind {
            AdapterKind::Anthropic | AdapterKind::MiniMax => Results::Marked,
            AdapterKind::Ollama | AdapterKind::OllamaCloud => Results::Apart,
            _ => Results::Together,
        }
    }

    /// Whether a conversation with calls must come with tools, also when none may be called any more.
    pub(super) fn needs_tools_for_calls(&self) -> bool {
        matches!(self.kind, AdapterKind::Anthropic | AdapterKind::MiniMax | AdapterKind::BedrockApi)
    }

    /// Whether ids of calls are nine letters and digits, and nothing else.
    pub(super) fn has_short_call_ids(&self) -> bool {
        self.kind == AdapterKind::Mistral
    }

    /// Whether tools are strict where nothing is said, which changes their schemas.
    pub(super) fn is_strict_by_default(&self) -> bool {
        self.kind == AdapterKind::OpenAIResp
    }

    /// Whether calls are compared with what the end of the stream says of them. In OpenAI's chat format, where they are read from
    /// the frames, the crate would only make room for as many as a provider's number says.
    pub(super) fn tells_calls_at_the_end(&self) -> bool {
        !self.speaks_chat_completions()
    }
}
