//! An answer that comes as a whole.

use genai::chat::ChatResponse;

use super::{calls::Calls, ending::Ending, fault::Faults, seen::Seen};
use crate::{ModelError, ModelEvent};

/// The events of an answer.
pub(super) fn events(answer: genai::Result<ChatResponse>, faults: &Faults) -> Result<Vec<ModelEvent>, ModelError> {
    let mut seen = Seen::default();
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            if let genai::Error::ChatResponseGeneration { response_body, .. } = &error {
                seen.value(response_body);
            }
            return Err(faults.of(error, &seen));
        }
    };
    if let Some(body) = &answer.captured_raw_body {
        seen.value(body);
    }
    let text = answer.content.texts().concat();
    let mut events = vec![ModelEvent::Text(text)];
    let mut calls = Calls::default();
    events.extend(answer.content.tool_calls().into_iter().map(|call| calls.take_whole(call)));
    let ending =
        Ending { reason: answer.stop_reason.clone(), usage: Some(answer.usage.clone()), has_calls: !calls.is_empty() };
    events.extend(ending.events(&seen, faults)?);
    Ok(events)
}
