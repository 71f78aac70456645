//! The resume metadata of a chat message.

use serde_json::{Map, Value, json};

use crate::{ChatMessage, RequestId, ResumeToken};

/// A message's resume metadata: which question it answers, and what it says.
#[derive(Debug, Clone)]
pub struct ResumeMeta {
    /// The question's secret.
    pub token: ResumeToken,
    /// The question.
    pub request_id: RequestId,
    /// Ids of selected options, in the order of selection.
    pub selected: Vec<String>,
    /// A typed text.
    pub text: Option<String>,
    /// A structured answer; `Some(Value::Null)` is one.
    pub value: Option<Value>,
    /// The person cancelled.
    pub cancel: bool,
}

impl ResumeMeta {
    /// Metadata that names a question and says nothing yet.
    pub fn new(token: ResumeToken, request_id: RequestId) -> Self {
        Self { token, request_id, selected: Vec::new(), text: None, value: None, cancel: false }
    }

    pub(crate) fn to_value(&self) -> Value {
        let mut resume = json!({"token": self.token.expose(), "requestId": self.request_id.as_str()});
        let mut set = |key: &str, value: Option<Value>| {
            if let (Some(fields), Some(value)) = (resume.as_object_mut(), value) {
                fields.insert(key.to_owned(), value);
            }
        };
        set("selected", (!self.selected.is_empty()).then(|| self.selected.clone().into()));
        set("text", self.text.clone().map(Value::from));
        set("value", self.value.clone());
        set("cancel", self.cancel.then_some(Value::Bool(true)));
        resume
    }
}

/// Reads a message's resume metadata, under `metadata.resume`.
///
/// `None` when there is none or when it lacks a well-formed `token` and `requestId`: the message is an ordinary turn then.
/// Everything else of an unexpected type is as if it were absent. Never panics.
///
/// - `selected`: a string; an array of strings, numbers, booleans (as text) and objects with a string `id`, whose other
///   members are skipped; an object with `choice: {id}` or `choices: [{id}, …]`. When that gives nothing, `choice` and
///   `choices` directly under `resume`.
/// - `value`: verbatim, also when it is `null`, `false`, `0`, `""`, `[]` or `{}`.
/// - `text`: a string. `cancel`: only when exactly `true`.
///
/// ```
/// use kortyx_protocol::{ChatMessage, json, parse_resume_meta};
///
/// let message: ChatMessage = json::from_str(
///     r#"{"role":"user","content":"Product",
///         "metadata":{"resume":{"token":"secret","requestId":"human-1","selected":["product"]}}}"#,
/// )?;
/// let meta = parse_resume_meta(&message).unwrap();
/// assert_eq!(meta.selected, ["product"]);
/// assert!(parse_resume_meta(&ChatMessage::user("Product")).is_none());
/// # Ok::<(), kortyx_protocol::JsonError>(())
/// ```
pub fn parse_resume_meta(message: &ChatMessage) -> Option<ResumeMeta> {
    let resume = message.metadata.as_ref()?.get("resume")?.as_object()?;
    let mut selected = resume.get("selected").map(selected).unwrap_or_default();
    if selected.is_empty() {
        selected = chosen(resume);
    }
    Some(ResumeMeta {
        token: ResumeToken::parse(resume.get("token")?.as_str()?).ok()?,
        request_id: RequestId::new(resume.get("requestId")?.as_str()?).ok()?,
        selected,
        text: resume.get("text").and_then(Value::as_str).map(str::to_owned),
        value: resume.get("value").cloned(),
        cancel: resume.get("cancel") == Some(&Value::Bool(true)),
    })
}

fn selected(value: &Value) -> Vec<String> {
    match value {
        Value::String(id) => vec![id.clone()],
        Value::Array(members) => members.iter().filter_map(member).collect(),
        Value::Object(fields) => chosen(fields),
        _ => Vec::new(),
    }
}

fn member(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        other => id(other),
    }
}

/// The ids under `choice`, or else under `choices`.
fn chosen(fields: &Map<String, Value>) -> Vec<String> {
    if let Some(id) = fields.get("choice").and_then(id) {
        return vec![id];
    }
    fields
        .get("choices")
        .and_then(Value::as_array)
        .map(|choices| choices.iter().filter_map(id).collect())
        .unwrap_or_default()
}

fn id(value: &Value) -> Option<String> {
    Some(value.as_object()?.get("id")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary::json_value;

    fn message(resume: Value) -> ChatMessage {
        let mut message = ChatMessage::user("text");
        message.metadata = Some(Map::from_iter([("resume".to_owned(), resume)]));
        message
    }

    /// Parses metadata that names a question and holds these fields too.
    fn parse(fields: &Value) -> ResumeMeta {
        let mut resume = json!({"token": "secret", "requestId": "human-1"});
        resume.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        parse_resume_meta(&message(resume)).unwrap()
    }

    #[test]
    fn token_and_request_id_must_be_well_formed() {
        for resume in [
            json!(null),
            json!("token"),
            json!([]),
            json!({}),
            json!({"token": "secret"}),
            json!({"requestId": "human-1"}),
            json!({"token": "", "requestId": "human-1"}),
            json!({"token": "secret", "requestId": "  "}),
            json!({"token": 7, "requestId": "human-1"}),
            json!({"token": "secret", "requestId": ["human-1"]}),
            json!({"token": "sec\0ret", "requestId": "human-1"}),
            json!({"token": "x".repeat(10_000), "requestId": "human-1"}),
        ] {
            assert!(parse_resume_meta(&message(resume.clone())).is_none(), "{resume}");
        }
        assert!(parse_resume_meta(&ChatMessage::user("text")).is_none());
    }

    #[test]
    fn selected_is_read_in_every_form() {
        for (fields, expected) in [
            (json!({}), &[][..]),
            (json!({"selected": "a"}), &["a"]),
            (json!({"selected": ["a", 1, true, {"id": "b"}, {"id": 2}, null, [], {}]}), &["a", "1", "true", "b"]),
            (json!({"selected": {"choice": {"id": "a"}}}), &["a"]),
            (json!({"selected": {"choices": [{"id": "a"}, {"id": "b"}, 3, "c", {"id": null}]}}), &["a", "b"]),
            (json!({"selected": {"choice": "x", "choices": [{"id": "a"}]}}), &["a"]),
            (json!({"selected": {"choice": {"id": "a"}, "choices": [{"id": "b"}]}}), &["a"]),
            (json!({"selected": [], "choice": {"id": "a"}}), &["a"]),
            (json!({"selected": 7, "choices": [{"id": "a"}, {"id": "b"}]}), &["a", "b"]),
            (json!({"selected": ["a"], "choice": {"id": "b"}}), &["a"]),
            (json!({"selected": {"id": "a"}}), &[]),
        ] {
            assert_eq!(parse(&fields).selected, expected, "{fields}");
        }
    }

    #[test]
    fn a_value_counts_when_it_is_there() {
        for value in
            [json!(null), json!(false), json!(0), json!(0.0), json!(""), json!([]), json!({}), json!({"1": "v"})]
        {
            assert_eq!(parse(&json!({"value": value})).value, Some(value));
        }
        assert_eq!(parse(&json!({})).value, None);
    }

    #[test]
    fn only_true_cancels() {
        assert!(parse(&json!({"cancel": true})).cancel);
        for cancel in [json!(false), json!("true"), json!(1), json!(null), json!({}), json!([true])] {
            assert!(!parse(&json!({"cancel": cancel})).cancel);
        }
    }

    #[test]
    fn only_a_string_is_a_text() {
        assert_eq!(parse(&json!({"text": ""})).text.as_deref(), Some(""));
        assert_eq!(parse(&json!({"text": 7})).text, None);
        assert_eq!(parse(&json!({"text": null})).text, None);
    }

    #[test]
    fn the_token_stays_out_of_debug_output() {
        assert!(!format!("{:?}", parse(&json!({}))).contains("secret"));
    }

    /// Metadata that is nearly right: known keys with arbitrary values, token and request id mostly good.
    fn resume() -> impl Strategy<Value = Value> {
        let key = prop::sample::select(vec![
            "token",
            "requestId",
            "selected",
            "choice",
            "choices",
            "text",
            "value",
            "cancel",
            "id",
        ]);
        let fields = prop::collection::btree_map(key, json_value(), 0..9);
        (fields, any::<bool>()).prop_map(|(fields, good)| {
            let mut resume: Map<String, Value> =
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            if good {
                resume.insert("token".to_owned(), json!("secret"));
                resume.insert("requestId".to_owned(), json!("human-1"));
            }
            resume.into()
        })
    }

    proptest! {
        #[test]
        fn any_metadata_is_read_or_ignored(resume in prop_oneof![json_value(), resume()]) {
            if let Some(meta) = parse_resume_meta(&message(resume.clone())) {
                prop_assert_eq!(meta.value.as_ref(), resume.get("value"));
                prop_assert_eq!(Some(meta.token.expose()), resume.get("token").and_then(Value::as_str));
            }
        }

        #[test]
        fn what_was_written_is_read(
            selected in prop::collection::vec(".*", 0..4),
            text: Option<String>,
            value in prop::option::of(json_value()),
            cancel: bool,
        ) {
            let token = ResumeToken::mint([1; 16], [2; 32]);
            let mut meta = ResumeMeta::new(token.clone(), RequestId::from_random([1; 16]));
            (meta.selected, meta.text, meta.value, meta.cancel) = (selected, text, value, cancel);
            let read = parse_resume_meta(&ChatMessage::user("x").with_resume(&meta)).unwrap();
            prop_assert!(read.token.matches(&token));
            prop_assert_eq!(read.request_id, meta.request_id);
            prop_assert_eq!(read.selected, meta.selected);
            prop_assert_eq!(read.text, meta.text);
            prop_assert_eq!(read.value, meta.value);
            prop_assert_eq!(read.cancel, meta.cancel);
        }
    }
}
