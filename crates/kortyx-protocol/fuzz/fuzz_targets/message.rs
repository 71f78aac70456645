//! A chat message with arbitrary metadata: it is read or ignored, never a panic, and what is read can be written.
#![no_main]

use kortyx_protocol::{
    ChatMessage, ChatRequest, CheckpointRequest, ExecuteRequest, Limits, ResumeRequest, json, parse_resume_meta,
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let limits = Limits::default();
    let _ = ChatRequest::from_slice(data, &limits);
    let _ = ExecuteRequest::from_slice(data, &limits);
    let _ = ResumeRequest::from_slice(data, &limits);
    if let Ok(request) = CheckpointRequest::from_slice(data, &limits) {
        let text = json::to_vec(&request).unwrap();
        assert_eq!(CheckpointRequest::from_slice(&text, &limits).unwrap(), request);
    }

    // The input as it is, and as the resume metadata of a message that is otherwise well-formed.
    let Ok(value) = json::from_slice::<Value>(data) else { return };
    assert_eq!(json::from_str::<Value>(&json::canonical(&value).unwrap()).unwrap(), value);
    let mut message = ChatMessage::user("text");
    message.metadata = Some(serde_json::Map::from_iter([("resume".to_owned(), value.clone())]));
    check(&message);
    if let Value::Object(mut resume) = value {
        resume.insert("token".to_owned(), "token".into());
        resume.insert("requestId".to_owned(), "human-1".into());
        message.metadata = Some(serde_json::Map::from_iter([("resume".to_owned(), resume.into())]));
        assert!(parse_resume_meta(&message).is_some());
        check(&message);
    }
});

fn check(message: &ChatMessage) {
    let Some(meta) = parse_resume_meta(message) else { return };
    let again = parse_resume_meta(&ChatMessage::user("text").with_resume(&meta)).unwrap();
    assert!(again.token.matches(&meta.token));
    assert_eq!(
        (again.request_id, again.selected, again.text, again.value, again.cancel),
        (meta.request_id, meta.selected, meta.text, meta.value, meta.cancel)
    );
}
