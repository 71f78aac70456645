//! The exact JSON of everything that crosses a process border.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "the functions that build samples are tests too")]

use std::{collections::BTreeSet, sync::Arc};

use kortyx_protocol::{
    BatchAnswer, BufferedResponse, CheckpointEffects, CheckpointId, CheckpointSummary, CheckpointView, DoneData,
    ExecuteRequest, ExecutionResult, Failure, FailureCode, Forked, InterruptChunk, InterruptInput, InterruptKind,
    InterruptOption, Issue, PendingQuestion, PendingRequest, RawJson, RequestId, ResumeAnswers, ResumeHandle,
    ResumeRequest, ResumeResponse, ResumeToken, RolledBack, RunId, SessionId, StreamChunk, StructuredChange,
    StructuredChunk, TextDelta, TextMark, Timestamp, Usage, json,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

/// Each value's JSON on its own line. Every one must read back to the same.
fn lines<T: Serialize + DeserializeOwned>(values: impl IntoIterator<Item = T>) -> String {
    let line = |value: T| {
        let text = json::to_string(&value).unwrap();
        let again: T = json::from_str(&text).unwrap();
        assert_eq!(json::to_string(&again).unwrap(), text);
        text
    };
    values.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

fn name(text: &str) -> Arc<str> {
    Arc::from(text)
}

fn run_id() -> RunId {
    RunId::from_random([1; 16])
}

fn session_id() -> SessionId {
    SessionId::new("session-1").unwrap()
}

fn request_id() -> RequestId {
    RequestId::from_random([2; 16])
}

fn checkpoint_id() -> CheckpointId {
    CheckpointId::from_random([3; 16])
}

fn token() -> ResumeToken {
    ResumeToken::mint([2; 16], [4; 32])
}

fn expires_at() -> Timestamp {
    "2026-01-01T00:15:00.000Z".parse().unwrap()
}

fn choice() -> InterruptInput {
    let mut input = InterruptInput::new(InterruptKind::Choice);
    input.question = Some("Approve this draft?".to_owned());
    input.id = Some("approval".to_owned());
    input.options = vec![InterruptOption::new("approve", "Approve"), InterruptOption::new("revise", "Revise")];
    input.options[0].description = Some("Publish it".to_owned());
    input
}

fn inputs() -> [InterruptInput; 5] {
    let mut multi = InterruptInput::new(InterruptKind::MultiChoice);
    multi.question = Some("Where?".to_owned());
    multi.options = vec![InterruptOption::new("web", "Web")];
    (multi.min, multi.max) = (Some(1), Some(2));
    let mut text = InterruptInput::new(InterruptKind::Text);
    (text.min_length, text.max_length) = (Some(1), Some(500));
    let mut picker = InterruptInput::new(InterruptKind::Choice);
    picker.question = Some("Which job?".to_owned());
    picker.schema_id = Some("jobs".to_owned());
    picker.schema_version = Some("1".to_owned());
    picker.meta = Some(json!({"icon": null}));
    let mut custom = InterruptInput::new(InterruptKind::Custom);
    custom.contract = Some("release".to_owned());
    custom.request = Some(json!({"draft": 7}));
    custom.schema_id = Some("release".to_owned());
    custom.schema_version = Some("2".to_owned());
    custom.response_schema = Some(json!({"type": "object"}));
    [choice(), multi, text, picker, custom]
}

fn interrupt(input: InterruptInput) -> StreamChunk {
    InterruptChunk {
        request_id: request_id(),
        resume_token: token(),
        workflow: "review".to_owned(),
        node: "approval".to_owned(),
        id: input.id.clone(),
        schema_id: input.schema_id.clone(),
        schema_version: input.schema_version.clone(),
        expires_at: expires_at(),
        input,
    }
    .into()
}

fn text_chunks() -> Vec<StreamChunk> {
    let mark = TextMark {
        node: Some(name("write")),
        id: Some(name("draft")),
        op_id: Some(name("op-1")),
        segment_id: Some(name("segment-1")),
    };
    vec![
        StreamChunk::TextStart(TextMark::default()),
        StreamChunk::TextStart(mark.clone()),
        StreamChunk::text_delta("Hel"),
        StreamChunk::TextDelta(TextDelta::of(&mark, "lo\n")),
        StreamChunk::TextEnd(mark),
        StreamChunk::message("Hello"),
        StreamChunk::Message { content: String::new(), node: Some(name("write")) },
    ]
}

fn tool_chunks() -> Vec<StreamChunk> {
    let (node, op_id, tool, tool_call_id) = (name("write"), name("op-1"), name("search"), name("call-1"));
    let result = |structured_content| StreamChunk::ToolCallResult {
        node: node.clone(),
        op_id: op_id.clone(),
        tool: tool.clone(),
        tool_call_id: tool_call_id.clone(),
        content: json!([{"text": "found", "type": "text"}]),
        structured_content,
    };
    let mut chunks = vec![result(None), result(Some(json!(null)))];
    chunks.push(StreamChunk::ToolCallError {
        node: node.clone(),
        op_id: op_id.clone(),
        tool: tool.clone(),
        tool_call_id: tool_call_id.clone(),
        message: "timed out".to_owned(),
    });
    chunks.insert(0, StreamChunk::ToolCallStart { node, op_id, tool, tool_call_id, input: json!({"query": "x"}) });
    chunks
}

fn structured_chunks() -> Vec<StreamChunk> {
    let mut full = StructuredChunk::new(
        "report",
        "demo.report",
        StructuredChange::Set { path: "title".to_owned(), value: json!(null) },
    );
    full.node = Some(name("write"));
    full.schema_id = Some(name("report"));
    full.schema_version = Some(name("1"));
    full.id = Some(name("r1"));
    let chunk = |change| StructuredChunk::new("report", "demo.report", change).into();
    vec![
        full.into(),
        chunk(StructuredChange::Append { path: "rows".to_owned(), items: vec![json!(1), json!({"a": []})] }),
        chunk(StructuredChange::TextDelta { path: "rows.1.b".to_owned(), delta: "x".to_owned() }),
        chunk(StructuredChange::Final { data: json!({"half": 0.5, "max": u64::MAX, "min": i64::MIN}) }),
        StreamChunk::StructuredDataInvalidated { stream_id: name("report"), checkpoint_id: None },
        StreamChunk::StructuredDataInvalidated { stream_id: name("report"), checkpoint_id: Some(checkpoint_id()) },
    ]
}

fn run_chunks() -> Vec<StreamChunk> {
    let done = DoneData {
        run_id: run_id(),
        status: "suspended".to_owned(),
        current_workflow: "review".to_owned(),
        awaiting_human_input: true,
        data: json!({}),
    };
    let checkpoint =
        |label| StreamChunk::Checkpoint { id: checkpoint_id(), session_id: session_id(), turn_index: 1, label };
    vec![
        StreamChunk::Transition { transition_to: name("publish"), payload: json!(null) },
        StreamChunk::LimitReached { run_id: run_id(), limit: name("nodeExecutions"), maximum: 100, consumed: 100 },
        checkpoint(None),
        checkpoint(Some("session start".to_owned())),
        StreamChunk::Cancelled { reason: None },
        StreamChunk::Cancelled { reason: Some("the person cancelled".to_owned()) },
        StreamChunk::error(Failure::new(FailureCode::ExecutionFailed, "the workflow failed")),
        StreamChunk::done(None),
        StreamChunk::done(Some(done)),
    ]
}

fn chunks() -> Vec<StreamChunk> {
    let mut chunks = vec![
        StreamChunk::session(session_id()),
        StreamChunk::Trace {
            trace_id: name("trace-1"),
            span_id: name("span-1"),
            run_id: run_id(),
            root_span_name: name("chat"),
        },
        StreamChunk::status("thinking"),
        StreamChunk::Status { message: "writing".to_owned(), node: Some(name("write")) },
    ];
    chunks.extend(text_chunks());
    chunks.extend(tool_chunks());
    chunks.extend(structured_chunks());
    chunks.extend(inputs().map(interrupt));
    chunks.extend(run_chunks());
    chunks
}

/// Every `type` of PROTOCOL section 3.
const CHUNK_TYPES: [&str; 19] = [
    "cancelled",
    "checkpoint",
    "done",
    "error",
    "interrupt",
    "limit-reached",
    "message",
    "session",
    "status",
    "structured-data",
    "structured-data-invalidated",
    "text-delta",
    "text-end",
    "text-start",
    "tool-call-error",
    "tool-call-result",
    "tool-call-start",
    "trace",
    "transition",
];

// Keys of free-form objects in these samples are sorted, so that the order in which a build of `serde_json` keeps them is the same.

#[test]
fn every_chunk_has_its_exact_json() {
    let seen: BTreeSet<_> = chunks().iter().map(StreamChunk::kind).collect();
    assert_eq!(seen, BTreeSet::from(CHUNK_TYPES));
    for chunk in chunks() {
        let value: serde_json::Value = json::from_str(&json::to_string(&chunk).unwrap()).unwrap();
        assert_eq!(value["type"], chunk.kind());
    }
    insta::assert_snapshot!(lines(chunks()));
}

#[test]
fn every_chunk_stands_in_the_readme() {
    let rows = include_str!("../README.md").lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let named: Vec<&str> = rows.flat_map(|cell| cell.split(", ")).collect();
    for kind in CHUNK_TYPES {
        assert!(named.contains(&format!("`{kind}`").as_str()), "{kind}");
    }
}

#[test]
fn every_failure_code_has_its_exact_json() {
    let failures = FailureCode::ALL.iter().map(|code| Failure::new(*code, "message"));
    insta::assert_snapshot!(lines(failures));
}

#[test]
fn a_failure_has_all_its_parts_in_its_exact_json() {
    let cause = Failure::new(FailureCode::ProviderHttpError, "the provider is busy")
        .with_status(429)
        .with_retryable(Some(true))
        .with_details(json!(null));
    let failure = Failure::new(FailureCode::InvalidResponse, "the answer does not fit")
        .with_issues([Issue::new("/ids", "required", "select exactly one option")])
        .with_details(json!({"requestId": "human-1"}))
        .with_cause(cause);
    insta::assert_snapshot!(lines([failure]), @r#"{"version":1,"code":"INVALID_RESPONSE","category":"validation","message":"the answer does not fit","retryable":false,"status":422,"issues":[{"path":"/ids","code":"required","message":"select exactly one option"}],"details":{"requestId":"human-1"},"cause":{"version":1,"code":"PROVIDER_HTTP_ERROR","category":"provider","message":"the provider is busy","retryable":true,"status":429,"details":null}}"#);
}

fn handle() -> ResumeHandle {
    ResumeHandle { token: token(), request_id: request_id(), session_id: session_id(), run_id: run_id() }
}

fn question(node: &str) -> PendingQuestion {
    PendingQuestion {
        workflow: "review".to_owned(),
        node: node.to_owned(),
        request_id: request_id(),
        expires_at: expires_at(),
        input: choice(),
        resume: handle(),
    }
}

#[test]
fn every_execution_result_has_its_exact_json() {
    let usage = Usage { input: 1, output: 2, total: 3 };
    let results = [
        ExecutionResult::completed(run_id(), session_id(), json!({"decision": "approve"})),
        ExecutionResult::completed(run_id(), session_id(), json!(null))
            .with_checkpoint(checkpoint_id())
            .with_usage(usage),
        ExecutionResult::suspended(run_id(), session_id(), vec![question("first"), question("second")]),
        ExecutionResult::suspended(run_id(), session_id(), vec![question("first")]).with_checkpoint(checkpoint_id()),
        ExecutionResult::cancelled(run_id(), session_id(), None),
        ExecutionResult::cancelled(run_id(), session_id(), Some("withdrawn".to_owned())).with_usage(usage),
        ExecutionResult::failed(run_id(), session_id(), Failure::new(FailureCode::NoRoute, "no edge fits")),
    ];
    insta::assert_snapshot!(lines(results));
}

fn summary() -> CheckpointSummary {
    CheckpointSummary {
        id: checkpoint_id(),
        session_id: session_id(),
        turn_index: 0,
        created_at: Timestamp::from_millis(1_767_225_600_000),
        nodes: Vec::new(),
        workflow: "review".to_owned(),
        workflow_version: None,
        label: Some("session start".to_owned()),
        parent_checkpoint_id: None,
        parent_session_id: None,
        forked_from: None,
    }
}

fn full_summary() -> CheckpointSummary {
    CheckpointSummary {
        turn_index: 7,
        nodes: vec!["write".to_owned(), "approval".to_owned()],
        workflow_version: Some("2".to_owned()),
        label: None,
        parent_checkpoint_id: Some(CheckpointId::from_random([5; 16])),
        parent_session_id: Some(SessionId::new("session-0").unwrap()),
        forked_from: Some(CheckpointId::from_random([6; 16])),
        ..summary()
    }
}

fn pending(input: InterruptInput) -> PendingRequest {
    let (schema, options) = input.into();
    PendingRequest {
        token: token(),
        request_id: request_id(),
        session_id: session_id(),
        run_id: run_id(),
        workflow: "review".to_owned(),
        node: "approval".to_owned(),
        schema,
        options,
        created_at: Timestamp::from_millis(1_767_225_600_000),
        ttl_ms: 900_000,
    }
}

fn view() -> CheckpointView {
    CheckpointView {
        summary: full_summary(),
        run_id: Some(run_id()),
        state: RawJson::of(&json!({"draft": "Hello"})).unwrap(),
        effects: CheckpointEffects {
            structured_stream_ids: vec!["report".to_owned()],
            interrupt_tokens: vec![token()],
        },
        active_pending_requests: vec![pending(choice())],
    }
}

#[test]
fn every_checkpoint_reply_has_its_exact_json() {
    let start = CheckpointView {
        summary: summary(),
        run_id: None,
        state: RawJson::of(&json!({})).unwrap(),
        effects: CheckpointEffects::default(),
        active_pending_requests: Vec::new(),
    };
    let rolled_back = RolledBack {
        session_id: session_id(),
        head: checkpoint_id(),
        invalidated_structured_stream_ids: vec!["report".to_owned()],
        invalidated_interrupt_tokens: vec![token()],
        active_pending_requests: vec![pending(choice())],
    };
    let forked = Forked {
        session_id: SessionId::new("session-2").unwrap(),
        parent_session_id: session_id(),
        forked_from: checkpoint_id(),
        checkpoint: view(),
    };
    assert_eq!(pending(choice()).expires_at(), expires_at());
    insta::assert_snapshot!(
        [
            lines([summary(), full_summary()]),
            lines([start, view()]),
            lines(inputs().map(pending)),
            lines([rolled_back]),
            lines([forked]),
        ]
        .join("\n")
    );
}

#[test]
fn a_typed_result_reads_and_maps() {
    let text = r#"{"runId":"run-1","sessionId":"s","status":"completed","data":18446744073709551615,"future":1}"#;
    let result: ExecutionResult<u64> = json::from_str(text).unwrap();
    let doubled = result.clone().try_map(|data| data.checked_mul(2).ok_or("too large"));
    assert_eq!(doubled.unwrap_err(), "too large");
    assert!(matches!(
        result.try_map(|data| Ok::<_, ()>(u128::from(data) + 1)),
        Ok(ExecutionResult::Completed { data: 18_446_744_073_709_551_616, .. })
    ));
    for (status, missing) in
        [("completed", "data"), ("suspended", "interrupts"), ("failed", "error"), ("parked", "parked")]
    {
        let text = format!(r#"{{"runId":"run-1","sessionId":"s","status":"{status}"}}"#);
        let error = json::from_str::<ExecutionResult>(&text).unwrap_err();
        assert!(error.message.contains(missing), "{error}");
    }
}

#[test]
fn requests_have_their_exact_json() {
    let mut execute = ExecuteRequest::new("review", RawJson::parse(r#"{"b":1.50,"a":[]}"#).unwrap());
    insta::assert_snapshot!(json::to_string(&execute).unwrap(), @r#"{"workflow":"review","input":{"b":1.50,"a":[]}}"#);
    execute.version = Some("2".to_owned());
    execute.session_id = Some(session_id());
    execute.context = Some(serde_json::Map::from_iter([("tenant".to_owned(), json!("t1"))]));
    insta::assert_snapshot!(json::to_string(&execute).unwrap(), @r#"{"workflow":"review","version":"2","input":{"b":1.50,"a":[]},"sessionId":"session-1","context":{"tenant":"t1"}}"#);

    let mut resume = ResumeRequest::one(handle(), ResumeResponse::select(["approve"]));
    insta::assert_snapshot!(json::to_string(&resume).unwrap(), @r#"{"resume":{"token":"AgICAgICAgICAgICAgICAgQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE","requestId":"human-02020202-0202-4202-8202-020202020202","sessionId":"session-1","runId":"run-01010101-0101-4101-8101-010101010101"},"response":{"type":"select","ids":["approve"]}}"#);
    resume.workflow = Some("review".to_owned());
    resume.answers =
        ResumeAnswers::Batch(vec![BatchAnswer { request_id: request_id(), response: ResumeResponse::Cancel }]);
    insta::assert_snapshot!(json::to_string(&resume).unwrap(), @r#"{"workflow":"review","resume":{"token":"AgICAgICAgICAgICAgICAgQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE","requestId":"human-02020202-0202-4202-8202-020202020202","sessionId":"session-1","runId":"run-01010101-0101-4101-8101-010101010101"},"responses":[{"requestId":"human-02020202-0202-4202-8202-020202020202","response":{"type":"cancel"}}]}"#);
}

#[test]
fn a_buffered_response_has_its_exact_json() {
    let chunk = |stream, change| StructuredChunk::new(stream, "demo", change).into();
    let set = |value| StructuredChange::Set { path: "rows.0".to_owned(), value };
    let response = BufferedResponse::from_chunks(vec![
        StreamChunk::message("Hello, "),
        chunk("gone", set(json!(1))),
        StreamChunk::text_delta("you"),
        chunk("open", set(json!(2))),
        chunk("ended", StructuredChange::Final { data: json!(null) }),
        StreamChunk::StructuredDataInvalidated { stream_id: name("gone"), checkpoint_id: None },
    ])
    .unwrap();
    assert_eq!(response.text, "Hello, you");
    assert_eq!(response.chunks.len(), 6);
    insta::assert_snapshot!(json::to_string(&response.structured).unwrap(), @r#"[{"streamId":"open","dataType":"demo","status":"streaming","data":{"rows":[2]}},{"streamId":"ended","dataType":"demo","status":"done","data":null}]"#);
    let wrong = chunk("open", StructuredChange::Append { path: "rows.7".to_owned(), items: Vec::new() });
    assert!(BufferedResponse::from_chunks(vec![wrong]).is_err());
}

#[test]
fn tokens_do_not_print() {
    let secret = token();
    for text in [
        format!("{:?}", interrupt(choice())),
        format!("{:?}", ExecutionResult::<()>::suspended(run_id(), session_id(), vec![question("first")])),
        format!("{:?}", ResumeRequest::one(handle(), ResumeResponse::Cancel)),
    ] {
        assert!(text.contains("ResumeToken(…)"), "{text}");
        assert!(!text.contains(secret.expose()), "{text}");
    }
}

#[test]
fn a_failure_prints_its_message_and_keeps_its_cause_as_source() {
    let cause = Failure::new(FailureCode::PersistenceError, "the store cannot be reached, try again");
    let failure = Failure::new(FailureCode::ExecutionFailed, "the workflow failed").with_cause(cause);
    assert_eq!(failure.to_string(), "EXECUTION_FAILED: the workflow failed");
    let source = std::error::Error::source(&failure).unwrap();
    assert_eq!(source.to_string(), "PERSISTENCE_ERROR: the store cannot be reached, try again");
}

#[test]
fn every_code_reads_back_and_stands_in_the_readme() {
    let readme = include_str!("../README.md");
    for code in FailureCode::ALL {
        assert_eq!(FailureCode::parse(code.as_str()), Some(*code));
        let retryable = match code.retryable() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "depends",
        };
        let row = format!("| `{code}` | `{}` | {} | {retryable} |", code.category(), code.status());
        assert!(readme.contains(&row), "{row}");
    }
    assert_eq!(FailureCode::parse("SOMETHING_NEW"), None);
}
