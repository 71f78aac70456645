//! Content: what people, models and tools say. Told only where somebody asks for it.

use std::fmt;

use kortyx_protocol::RawJson;

/// What content is told. Nothing by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Captures {
    /// Answers of people, inputs of runs, children, models and tools.
    pub input: bool,
    /// Questions to people, outputs of runs, nodes, steps, children, models and tools.
    pub output: bool,
    /// Who answered, as the application authenticated them.
    pub actor: bool,
}

impl Captures {
    /// Nothing.
    pub const fn nothing() -> Self {
        Self { input: false, output: false, actor: false }
    }

    /// With inputs and answers, or without.
    #[must_use]
    pub const fn with_input(mut self, on: bool) -> Self {
        self.input = on;
        self
    }

    /// With outputs and questions, or without.
    #[must_use]
    pub const fn with_output(mut self, on: bool) -> Self {
        self.output = on;
        self
    }

    /// With who answered, or without.
    #[must_use]
    pub const fn with_actor(mut self, on: bool) -> Self {
        self.actor = on;
        self
    }
}

/// A piece of content: JSON that does not show in `Debug`.
///
/// ```
/// use kortyx_protocol::RawJson;
/// use kortyx_runtime::Content;
///
/// let content = Content::new(RawJson::parse(r#"{"card":"4111"}"#)?);
/// assert_eq!(format!("{content:?}"), "Content(…)");
/// assert_eq!(content.json().get(), r#"{"card":"4111"}"#);
/// # Ok::<(), kortyx_protocol::JsonError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Content(RawJson);

impl Content {
    /// Content from JSON.
    pub fn new(json: RawJson) -> Self {
        Self(json)
    }

    /// The JSON.
    pub fn json(&self) -> &RawJson {
        &self.0
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Content(…)")
    }
}
