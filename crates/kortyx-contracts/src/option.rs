//! Options: of a question, of a builder, of an enum.

use kortyx_protocol::{InterruptOption, JsonError, RawJson};
use serde::{Deserialize, Deserializer, Serialize};

/// One option of a stored question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionOption {
    id: String,
    label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    value: Option<RawJson>,
}

impl QuestionOption {
    /// What an answer names.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What a person reads.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// More for a person to read.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// What the option stands for. It stays on the server.
    pub fn value(&self) -> Option<&RawJson> {
        self.value.as_ref()
    }

    /// What a client may see of it.
    pub(crate) fn public(&self) -> InterruptOption {
        let mut option = InterruptOption::new(self.id.as_str(), self.label.as_str());
        option.description.clone_from(&self.description);
        option
    }
}

/// One option of a [`Choice`](crate::Choice) or [`MultiChoice`](crate::MultiChoice), with more than an id and a label.
///
/// ```
/// use kortyx_contracts::{Choice, ChoiceOption};
///
/// let ask = Choice::new("Which region?").option_with(
///     ChoiceOption::new("eu", "Europe").description("Frankfurt and Dublin").value(["eu-central-1", "eu-west-1"]),
/// );
/// # let _ = ask;
/// ```
#[derive(Debug, Clone)]
pub struct ChoiceOption {
    option: QuestionOption,
    mistake: Option<JsonError>,
}

impl ChoiceOption {
    /// An option: what an answer names, and what a person reads.
    pub fn new(id: impl Into<String>, label: impl Into<String>) -> Self {
        let option = QuestionOption { id: id.into(), label: label.into(), description: None, value: None };
        Self { option, mistake: None }
    }

    /// More for a person to read.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.option.description = Some(description.into());
        self
    }

    /// What the option stands for: any JSON. It is stored with the question and never sent to a client.
    #[must_use]
    pub fn value(mut self, value: impl Serialize) -> Self {
        match exact(&value) {
            Ok(value) => self.option.value = Some(value),
            Err(mistake) => self.mistake = Some(mistake),
        }
        self
    }

    pub(crate) fn into_parts(self) -> (QuestionOption, Option<JsonError>) {
        (self.option, self.mistake)
    }
}

impl From<&StaticOption> for ChoiceOption {
    fn from(option: &StaticOption) -> Self {
        let mut choice = Self::new(option.id, option.label);
        choice.option.description = option.description.map(str::to_owned);
        choice
    }
}

/// One option that the source of a program fixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticOption {
    /// What an answer names.
    pub id: &'static str,
    /// What a person reads.
    pub label: &'static str,
    /// More for a person to read.
    pub description: Option<&'static str>,
}

/// A fieldless enum whose variants are the options of a choice, so that a `match` on the answer is exhaustive.
///
/// Derive it with `#[derive(ChoiceOptions)]`. The id is the variant's name in `snake_case`, the label the first line of its
/// doc comment or else its name in words; `#[choice(id = "…", label = "…", description = "…")]` overrides them. Ids are
/// stored and sent: rename a variant freely, but keep its id while questions with it are open.
///
/// ```
/// use kortyx_contracts::{Choice, ChoiceOptions};
///
/// #[derive(Debug, PartialEq, ChoiceOptions)]
/// enum Decision {
///     /// Publish the draft.
///     Approve,
///     SendBack,
///     #[choice(id = "legal", label = "Ask legal", description = "Takes a day")]
///     Escalate,
/// }
///
/// assert_eq!(Decision::OPTIONS[0].label, "Publish the draft");
/// assert_eq!(Decision::SendBack.option_id(), "send_back");
/// assert_eq!(Decision::from_option_id("legal"), Some(Decision::Escalate));
///
/// let ask = Choice::of::<Decision>("What now?"); // its answer is a `Decision`
/// # let _ = ask;
/// ```
pub trait ChoiceOptions: Sized + Send + 'static {
    /// Every option, in order, with distinct ids.
    const OPTIONS: &'static [StaticOption];

    /// The id of this one.
    fn option_id(&self) -> &'static str;

    /// The one with this id.
    fn from_option_id(id: &str) -> Option<Self>;
}

/// JSON of which no number is lost: refuses NaN, infinities and integers outside `i64::MIN..=u64::MAX`.
pub(crate) fn exact(value: &impl Serialize) -> Result<RawJson, JsonError> {
    let raw = RawJson::of(value)?;
    raw.to_value()?;
    Ok(raw)
}

/// Reads a field that is there as `Some`, also when it is `null`.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
