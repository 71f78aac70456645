//! Calls that `genai` tells as far as they are, told on as what is new of each.

use genai::chat::ToolCall;
use serde_json::Value;

use crate::ModelEvent;

/// The calls of an answer.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Begun>);

#[derive(Debug)]
struct Begun {
    id: String,
    tool: String,
    /// The arguments that were told.
    told: String,
    is_whole: bool,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes in a call as far as it is: text grows, a value is whole.
    pub(super) fn take(&mut self, call: &ToolCall) -> Option<ModelEvent> {
        let Some(text) = call.fn_arguments.as_str() else {
            return Some(self.take_whole(call));
        };
        let place = self.0.iter().rposition(|begun| {
            !begun.is_whole && begun.id == call.call_id && begun.tool == call.fn_name && text.starts_with(&begun.told)
        });
        match place {
            Some(place) => self.grow(place, text),
            None => Some(self.begin(call, text.to_owned(), false)),
        }
    }

    /// Takes in a call that is told once.
    pub(super) fn take_whole(&mut self, call: &ToolCall) -> ModelEvent {
        self.begin(call, whole(&call.fn_arguments), true)
    }

    /// Compares with what the end says of all calls, and tells what is still missing.
    pub(super) fn settle(&mut self, calls: &[&ToolCall]) -> Result<Vec<ModelEvent>, String> {
        let mut missing = Vec::new();
        for (place, call) in calls.iter().enumerate() {
            let is_it = |begun: &Begun| begun.id == call.call_id && begun.tool == call.fn_name;
            let here = self.0.get(place).is_some_and(is_it).then_some(place);
            match here.or_else(|| self.0.iter().position(is_it)) {
                Some(place) => missing.extend(self.complete(place, &call.fn_arguments)?),
                None => missing.push(self.take_whole(call)),
            }
        }
        Ok(missing)
    }

    fn begin(&mut self, call: &ToolCall, arguments: String, is_whole: bool) -> ModelEvent {
        let index = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        let (id, tool) = (call.call_id.clone(), call.fn_name.clone());
        self.0.push(Begun { id, tool: tool.clone(), told: arguments.clone(), is_whole });
        ModelEvent::ToolCall { index, tool, arguments }
    }

    fn grow(&mut self, place: usize, text: &str) -> Option<ModelEvent> {
        let begun = self.0.get_mut(place)?;
        let new = text.get(begun.told.len()..).filter(|new| !new.is_empty())?.to_owned();
        begun.told.push_str(&new);
        let index = u32::try_from(place).unwrap_or(u32::MAX);
        Some(ModelEvent::ToolCall { index, tool: String::new(), arguments: new })
    }

    fn complete(&mut self, place: usize, arguments: &Value) -> Result<Option<ModelEvent>, String> {
        let Some(begun) = self.0.get(place) else { return Ok(None) };
        let text = match arguments {
            Value::String(text) if text.starts_with(&begun.told) => text.clone(),
            Value::Object(fields) if fields.is_empty() && begun.told.is_empty() => return Ok(None),
            value if begun.told.is_empty() => whole(value),
            value if serde_json::from_str::<Value>(&begun.told).is_ok_and(|told| told == *value) => return Ok(None),
            _ => return Err(format!("the arguments of a call of `{}` were told in two versions", begun.tool)),
        };
        Ok(self.grow(place, &text))
    }
}

/// Arguments that are there at once, as JSON text.
fn whole(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str, tool: &str, arguments: impl Into<Value>) -> ToolCall {
        ToolCall { call_id: id.into(), fn_name: tool.into(), fn_arguments: arguments.into(), thought_signatures: None }
    }

    fn event(index: u32, tool: &str, arguments: &str) -> ModelEvent {
        ModelEvent::ToolCall { index, tool: tool.into(), arguments: arguments.into() }
    }

    #[test]
    fn what_grows_is_told_once() {
        let mut calls = Calls::default();
        let told: Vec<_> = ["", "{\"a\"", "{\"a\"", "{\"a\":1}"]
            .iter()
            .filter_map(|text| calls.take(&call("x", "t", *text)))
            .collect();
        assert_eq!(told, [event(0, "t", ""), event(0, "", "{\"a\""), event(0, "", ":1}")]);
        assert_eq!(calls.settle(&[&call("x", "t", json!({"a": 1}))]), Ok(vec![]));
        assert!(calls.settle(&[&call("x", "t", json!({"a": 2}))]).is_err());
    }

    #[test]
    fn calls_of_one_tool_without_ids_stay_apart() {
        let mut calls = Calls::default();
        let told: Vec<_> = [json!({"a": 1}), json!({"a": 1})].map(|value| calls.take(&call("", "t", value))).into();
        assert_eq!(told, [Some(event(0, "t", "{\"a\":1}")), Some(event(1, "t", "{\"a\":1}"))]);
        assert_eq!(calls.take(&call("", "t", "{\"b")), Some(event(2, "t", "{\"b")));
    }

    #[test]
    fn whole_calls_stay_apart_however_alike_they_are() {
        let mut calls = Calls::default();
        let told = ["{\"a\"", "{\"a\":1}"].map(|text| calls.take_whole(&call("x", "t", text)));
        assert_eq!(told, [event(0, "t", "{\"a\""), event(1, "t", "{\"a\":1}")]);
    }

    #[test]
    fn what_only_the_end_tells_is_told_then() {
        let mut calls = Calls::default();
        assert_eq!(calls.take(&call("x", "t", "")), Some(event(0, "t", "")));
        let end = [call("x", "t", json!({"a": 1})), call("y", "u", "{\"cut")];
        let missing = calls.settle(&end.iter().collect::<Vec<_>>());
        assert_eq!(missing, Ok(vec![event(0, "", "{\"a\":1}"), event(1, "u", "{\"cut")]));
    }
}
