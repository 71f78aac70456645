//! The end of an answer: why, at what cost, and whether it is one.

use genai::chat::{StopReason, Usage as GenaiUsage};
use kortyx_protocol::Usage;
use serde_json::Value;

use super::{fault::Faults, seen::Seen};
use crate::{FinishReason, ModelError, ModelErrorKind, ModelEvent};

/// What ends an answer.
pub(super) struct Ending {
    pub(super) reason: Option<StopReason>,
    pub(super) usage: Option<GenaiUsage>,
    pub(super) has_calls: bool,
}

impl Ending {
    /// The last events, or why the answer is none.
    pub(super) fn events(self, seen: &Seen, faults: &Faults) -> Result<Vec<ModelEvent>, ModelError> {
        if let Some(what) = &seen.malformed {
            return Err(faults.invalid(what));
        }
        if let Some(error) = &seen.error {
            return Err(faults.told(error));
        }
        if !seen.refusal.is_empty() {
            return Err(faults.refused(&seen.refusal));
        }
        let Some(reason) = self.reason else { return Err(faults.cut()) };
        let finish = finish(&reason, self.has_calls, seen, faults)?;
        let mut metadata = seen.metadata.clone();
        metadata.insert("stopReason".into(), reason.raw().into());
        let mut events = Vec::with_capacity(3);
        if let Some(usage) = self.usage {
            let details = usage.prompt_tokens_details.as_ref();
            let cached = details.and_then(|details| details.cached_tokens);
            let reasoning = usage.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
            metadata.extend(cached.map(|tokens| ("cachedTokens".to_owned(), tokens.into())));
            metadata.extend(reasoning.map(|tokens| ("reasoningTokens".to_owned(), tokens.into())));
            events.push(ModelEvent::Usage(counted(&usage)));
        }
        events.push(ModelEvent::ProviderMetadata(Value::Object(metadata)));
        events.push(ModelEvent::Finish(finish));
        Ok(events)
    }
}

fn finish(reason: &StopReason, has_calls: bool, seen: &Seen, faults: &Faults) -> Result<FinishReason, ModelError> {
    Ok(match reason {
        StopReason::MaxTokens(_) if seen.incomplete.as_deref() == Some("content_filter") => {
            return Err(faults.refused("content_filter"));
        }
        StopReason::ContentFilter(reason) => return Err(faults.refused(reason)),
        StopReason::MaxTokens(_) => FinishReason::Length,
        StopReason::Other(reason) if is_failure(reason) => {
            let text = format!("the model's answer is none: {reason}");
            return Err(ModelError::new(ModelErrorKind::InvalidResponse, text).with_transient(true));
        }
        _ if has_calls => FinishReason::ToolCalls,
        StopReason::Completed(_) | StopReason::StopSequence(_) => FinishReason::Stop,
        StopReason::ToolCall(_) | StopReason::Other(_) => FinishReason::Other,
    })
}

/// Reasons that providers give where there is no answer. Another attempt may bring one.
fn is_failure(reason: &str) -> bool {
    let reasons = [
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "MALFORMED_RESPONSE",
        "OTHER",
        "FINISH_REASON_UNSPECIFIED",
        "insufficient_system_resource",
        "ERROR",
        "error",
        "failed",
        "cancelled",
    ];
    reasons.contains(&reason)
}

fn counted(usage: &GenaiUsage) -> Usage {
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let (input, total) = (count(usage.prompt_tokens), count(usage.total_tokens));
    let rest = total.unwrap_or_default().saturating_sub(input.unwrap_or_default());
    let output = count(usage.completion_tokens).unwrap_or(rest);
    let input = input.unwrap_or_default();
    Usage { input, output, total: total.unwrap_or_else(|| input.saturating_add(output)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_provider_broke_off_is_no_answer_and_what_is_too_long_is_told_as_cut() {
        for reason in ["insufficient_system_resource", "OTHER", "FINISH_REASON_UNSPECIFIED", "failed"] {
            let told = StopReason::from(reason.to_owned());
            assert!(matches!(&told, StopReason::Other(reason) if is_failure(reason)), "{told:?}");
        }
        for reason in ["length", "MAX_TOKENS", "model_context_window_exceeded"] {
            assert!(matches!(StopReason::from(reason.to_owned()), StopReason::MaxTokens(_)), "{reason}");
        }
    }
}
