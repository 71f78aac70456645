//! What a provider says and `genai` does not tell: refusals, frames that it skips, the pieces of calls by number.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef};
use serde_json::{Map, Value};

use crate::ModelEvent;

/// Events of Anthropic's format, which are known by the name in front of their data.
const NAMED: [&str; 6] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
];

/// What was seen of one answer.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// What is wrong with a frame.
    pub(super) malformed: Option<String>,
    /// The words of a refusal, or the reason of a filter.
    pub(super) refusal: String,
    /// An error in the place of an answer.
    pub(super) error: Option<Value>,
    /// Why an answer is not complete.
    pub(super) incomplete: Option<String>,
    /// What is told with the result.
    pub(super) metadata: Map<String, Value>,
    /// Pieces of calls in OpenAI's chat format.
    pub(super) pieces: VecDeque<ModelEvent>,
    /// The number and the provider's id of each call that such pieces belong to, by the provider's number.
    calls: BTreeMap<u64, (u32, String)>,
    count: u32,
}

impl Seen {
    /// Whether calls came in OpenAI's chat format.
    pub(super) fn has_pieces(&self) -> bool {
        self.count > 0
    }

    fn frame(&mut self, event: Option<&str>, text: &str) {
        if text.is_empty() || text == "[DONE]" {
            return;
        }
        match serde_json::from_str::<Value>(text) {
            Ok(frame) => {
                // Without its name an event of this format would be skipped.
                if at(&frame, "/type").as_str().is_some_and(|kind| NAMED.contains(&kind) && event != Some(kind)) {
                    self.is_wrong("an event has lost its name");
                }
                self.value(&frame);
            }
            Err(error) => self.is_wrong(&format!("an event is not JSON: {error}")),
        }
    }

    /// Takes in a frame, or a whole answer.
    pub(super) fn value(&mut self, value: &Value) {
        self.note(value);
        self.note(at(value, "/message"));
        self.note(at(value, "/response"));
        self.error(value);
        let choice = at(value, "/choices/0");
        self.refused(at(choice, "/delta/refusal"));
        self.refused(at(choice, "/message/refusal"));
        self.refused(at(value, "/promptFeedback/blockReason"));
        for piece in at(choice, "/delta/tool_calls").as_array().into_iter().flatten() {
            self.piece(piece);
        }
        match at(value, "/type").as_str() {
            Some("response.refusal.delta") => self.refused(at(value, "/delta")),
            Some("response.output_text.delta" | "response.function_call_arguments.delta")
                if !at(value, "/delta").is_string() =>
            {
                self.is_wrong("a delta without its text");
            }
            Some("response.output_item.added") if !at(value, "/output_index").is_u64() => {
                self.is_wrong("an item without its place");
            }
            _ => {}
        }
        for response in [value, at(value, "/response")] {
            if let Some(reason) = at(response, "/incomplete_details/reason").as_str() {
                self.incomplete = Some(reason.to_owned());
            }
        }
        // A whole answer of the responses format; in a stream the deltas have told it.
        for item in at(value, "/output").as_array().into_iter().flatten() {
            for part in at(item, "/content").as_array().into_iter().flatten() {
                self.refused(at(part, "/refusal"));
            }
        }
    }

    fn is_wrong(&mut self, what: &str) {
        self.malformed.get_or_insert_with(|| what.to_owned());
    }

    fn refused(&mut self, words: &Value) {
        self.refusal.push_str(words.as_str().unwrap_or_default());
    }

    fn error(&mut self, value: &Value) {
        let errors = [at(value, "/error"), at(value, "/response/error")];
        if let Some(error) = errors.into_iter().find(|error| !error.is_null()) {
            self.error.get_or_insert_with(|| error.clone());
        }
    }

    fn note(&mut self, value: &Value) {
        let is_answer = ["choices", "content", "output", "candidates"].iter().any(|key| value.get(key).is_some());
        if !is_answer {
            return;
        }
        let fields = [
            ("id", "id"),
            ("responseId", "id"),
            ("model", "model"),
            ("modelVersion", "model"),
            ("system_fingerprint", "systemFingerprint"),
        ];
        for (theirs, ours) in fields {
            if let Some(text) = value.get(theirs).and_then(Value::as_str).filter(|text| !text.is_empty()) {
                self.metadata.entry(ours).or_insert_with(|| text.into());
            }
        }
    }

    fn piece(&mut self, piece: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (id, tool) = (text(at(piece, "/id")), text(at(piece, "/function/name")));
        // Some number no calls, or all of them 0: another id with a name is another call.
        let place = at(piece, "/index").as_u64().unwrap_or_default();
        let known = self.calls.get(&place).filter(|(_, known)| tool.is_empty() || id.is_empty() || *known == id);
        let index = if let Some((index, _)) = known {
            *index
        } else {
            let index = self.count;
            self.count = index.saturating_add(1);
            self.calls.insert(place, (index, id));
            index
        };
        let arguments = match at(piece, "/function/arguments") {
            Value::Object(fields) => Value::Object(fields.clone()).to_string(),
            other => text(other),
        };
        self.pieces.push_back(ModelEvent::ToolCall { index, tool, arguments });
    }
}

/// What is at a place, or null.
pub(super) fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    static NULL: Value = Value::Null;
    value.pointer(pointer).unwrap_or(&NULL)
}

/// Hears the frames of a stream.
#[derive(Debug, Clone, Default)]
pub(super) struct Tap(Arc<Mutex<Seen>>);

impl Tap {
    pub(super) fn sink(&self) -> Arc<dyn ChatFrameSink> {
        Arc::new(self.clone())
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChatFrameSink for Tap {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        self.seen().frame(frame.event, frame.data);
    }
}
