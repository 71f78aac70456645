//! Answers as storage compares them.

use kortyx_protocol::{JsonError, ResumeResponse, json};
use serde::Serialize;

/// The canonical JSON of an answer. Answers without a structured value need no detour over a `Value`.
pub(super) fn canonical(response: &ResumeResponse) -> Result<String, JsonError> {
    match response {
        ResumeResponse::Select { ids } => json::to_string(&Select { ids, kind: "select" }),
        ResumeResponse::Text { text } => json::to_string(&Text { text, kind: "text" }),
        response => json::canonical(response),
    }
}

/// Fields in the order of their names.
#[derive(Serialize)]
struct Select<'a> {
    ids: &'a [String],
    #[serde(rename = "type")]
    kind: &'static str,
}

/// Fields in the order of their names.
#[derive(Serialize)]
struct Text<'a> {
    text: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_short_way_writes_what_the_long_way_does() {
        for response in [
            ResumeResponse::select(["b", "a", "é\"\n\u{0}"]),
            ResumeResponse::select(Vec::<String>::new()),
            ResumeResponse::text("null \u{1f600}\t"),
            ResumeResponse::text(""),
            ResumeResponse::value(json!({"b": null, "a": [1.5, u64::MAX]})),
            ResumeResponse::Cancel,
        ] {
            let long = json::canonical(&response).unwrap();
            assert_eq!(canonical(&response).unwrap(), long);
            assert_eq!(json::from_str::<ResumeResponse>(&long).unwrap(), response);
        }
    }
}
