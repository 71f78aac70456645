//! The exact events of every kind of fact, held against the schema of the receiver.

use std::{sync::Arc, time::Duration};

use kortyx_orchestrator::{
    CallName, CancelReason, Content as Captured, Correlation, End, Fact, ModelName, ResumeOutcome, ResumeReason,
    TraceIds, Visit,
};
use kortyx_protocol::{CheckpointId, FailureCode, RawJson, RequestId, RunId, SessionId, Timestamp, Usage, json};
use kortyx_store::{RunStatus, WorkflowPin};
use serde_json::Value;

use super::*;
use crate::studio::queue::Queue;

fn session_id() -> SessionId {
    SessionId::new("session-1").unwrap()
}

fn request_id() -> RequestId {
    RequestId::new("human-1").unwrap()
}

fn checkpoint_id() -> CheckpointId {
    CheckpointId::new("checkpoint-1").unwrap()
}

fn about() -> Correlation {
    let context: BTreeMap<String, Scalar> = [
        ("user", Scalar::Text("ada".into())),
        ("tenant", Scalar::Int(7)),
        ("beta", Scalar::Bool(true)),
        ("planted", Scalar::Text("planted".into())),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    Correlation::new(RunId::new("run-1").unwrap(), session_id()).bound_to(pin()).with_context(context)
}

fn at() -> Correlation {
    about().at("review", "draft")
}

fn pin() -> WorkflowPin {
    WorkflowPin { id: "review".into(), version: "2".into(), fingerprint: "f".into() }
}

/// About the run of a fork.
fn forked() -> Correlation {
    Correlation::new(RunId::new("run-2").unwrap(), SessionId::new("session-2").unwrap()).bound_to(pin())
}

#[expect(clippy::unnecessary_wraps, reason = "facts hold it so")]
fn content(text: &str) -> Option<Captured> {
    Some(Captured::new(RawJson::parse(text).unwrap()))
}

#[expect(clippy::unnecessary_wraps, reason = "facts hold it so")]
fn usage() -> Option<Usage> {
    let mut usage = Usage::default();
    (usage.input, usage.output, usage.total) = (20, 5, 25);
    Some(usage)
}

const SAID: &str = r#"{"said":"content","api_key":"planted"}"#;

fn of_runs() -> Vec<Fact> {
    let code = Some(FailureCode::NoRoute);
    let finished =
        |status, code| Fact::RunFinished { about: about(), status, code, usage: usage(), output: content(SAID) };
    let resumed = |reason| Fact::RunResumed { about: about(), fence: 2, reason, answers: 1, earlier: None };
    vec![
        Fact::RunStarted { about: about(), input: content(SAID) },
        Fact::RunSuspended { about: about(), fence: 1, open: 2, usage: usage() },
        resumed(ResumeReason::Answered),
        finished(RunStatus::Completed, None),
        finished(RunStatus::Failed, code),
        finished(RunStatus::Cancelled, None),
        finished(RunStatus::Expired, None),
        Fact::RunParked { about: about(), code: FailureCode::WorkflowChanged },
        Fact::LeaseLost { about: about(), fence: 3 },
        Fact::SessionCheckpointed { about: about(), checkpoint_id: checkpoint_id() },
        Fact::SessionForked {
            about: forked(),
            session_id: forked().session_id().clone(),
            parent_session_id: session_id(),
            checkpoint_id: checkpoint_id(),
        },
        Fact::SessionRolledBack { about: about(), session_id: session_id(), checkpoint_id: checkpoint_id() },
    ]
}

fn of_questions() -> Vec<Fact> {
    let resolved = |outcome| Fact::InterruptResolved {
        request_id: request_id(),
        about: at(),
        outcome,
        resolved_at: Timestamp::from_millis(1_767_225_600_000),
        wait: Duration::from_millis(1500),
        actor: Some("planted".to_owned()),
        answer: content(r#"{"type":"select","ids":["content"]}"#),
    };
    let expired = |by_default, is_derived| Fact::InterruptExpired {
        request_id: request_id(),
        about: at(),
        by_default,
        expires_at: Timestamp::from_millis(1_767_225_600_000),
        is_derived,
    };
    let cancelled = |reason| Fact::InterruptCancelled { request_id: request_id(), about: at(), reason };
    vec![
        resolved(ResumeOutcome::Resumed),
        resolved(ResumeOutcome::Kept),
        resolved(ResumeOutcome::Failed(FailureCode::WorkflowChanged)),
        expired(true, false),
        expired(true, true),
        cancelled(CancelReason::Answer),
        cancelled(CancelReason::Run),
        Fact::InterruptSuperseded { request_id: request_id(), about: at() },
    ]
}

fn of_nodes() -> Vec<Fact> {
    let visit = Arc::new(Visit::new("review", "2", "draft"));
    let (call, failed) = (CallName::new("fetch", 1), End::Failed(FailureCode::ProviderHttpError));
    let left = |end, retries| Fact::NodeLeft { about: at(), visit: visit.clone(), end, retries, output: content(SAID) };
    let entered = || Fact::NodeEntered { about: at(), visit: visit.clone() };
    let step =
        |end| Fact::StepEnded { about: at(), visit: visit.clone(), call: call.clone(), end, output: content(SAID) };
    let child = (Arc::<str>::from("translate"), Arc::<str>::from("1"));
    vec![
        entered(),
        Fact::StepStarted { about: at(), visit: visit.clone(), call: call.clone() },
        step(End::Completed),
        step(failed),
        Fact::ChildStarted {
            about: at(),
            visit: visit.clone(),
            call: call.clone(),
            workflow: child.0.clone(),
            version: child.1.clone(),
            again: false,
            input: content(SAID),
        },
        Fact::ChildEnded {
            about: at(),
            visit: visit.clone(),
            call,
            workflow: child.0,
            version: child.1,
            end: End::Paused,
            output: None,
        },
        left(failed, true),
        left(End::Completed, false),
        left(End::Paused, false),
        left(End::Dropped, false),
        Fact::WorkflowTransitioned {
            about: at(),
            visit: visit.clone(),
            to: Some("publish".into()),
            condition: Some("what a person said: content".to_owned()),
        },
        Fact::WorkflowHandedOff { about: at(), visit, workflow: "billing".into(), version: "3".into() },
    ]
}

fn of_models() -> Vec<Fact> {
    let visit = Arc::new(Visit::new("review", "2", "draft"));
    let model = ModelName::new("gpt-5").of("openai");
    let ended = |end| Fact::ModelEnded {
        about: at(),
        visit: visit.clone(),
        step: "reason/0".to_owned(),
        model: model.clone(),
        end,
        usage: usage(),
        finish: Some("tool_calls".to_owned()),
        tool_calls: 1,
        output: content(SAID),
    };
    let tool = |end| Fact::ToolEnded {
        about: at(),
        visit: visit.clone(),
        step: "reason/tool".to_owned(),
        tool: "search".to_owned(),
        call_id: "call-1".to_owned(),
        end,
        output: content(SAID),
    };
    vec![
        Fact::ModelStarted {
            about: at(),
            visit: visit.clone(),
            step: "reason/0".to_owned(),
            model: model.clone(),
            input: content(SAID),
        },
        ended(End::Completed),
        ended(End::Failed(FailureCode::ProviderHttpError)),
        Fact::ToolStarted {
            about: at(),
            visit: visit.clone(),
            step: "reason/tool".to_owned(),
            tool: "search".to_owned(),
            call_id: "call-1".to_owned(),
            approved: true,
            input: content(SAID),
        },
        tool(End::Completed),
        tool(End::Paused),
        tool(End::Failed(FailureCode::ProviderHttpError)),
    ]
}

/// The events of these facts, without what differs each time.
fn events(facts: &[Fact], captures: bool) -> Vec<Value> {
    let config = StudioConfig::new("http://localhost", "key", "production", "desk").unwrap().deployment("abc123");
    let config = config.user("user").tenant("tenant").metadata("beta").tag("blue");
    let config = config.capture_input(captures).capture_output(captures);
    let (mut mapper, revisions) = (Mapper::new(&config), Revisions::new(&config).unwrap());
    let schema: Value = json::from_str(include_str!("../../../tests/schema/events.json")).unwrap();
    let schema = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let queue = Queue::new(config.bounds.clone());
    let mut made = Vec::new();
    for fact in facts {
        let Mapped::Event(event) = mapper.event(&Noted::of(fact), &revisions, &queue.counts) else {
            panic!("no event of {fact:?}");
        };
        let mut event: Value = json::from_str(&json::to_string(&*event).unwrap()).unwrap();
        let batch = serde_json::json!({"events": [event]});
        let faults: Vec<String> = schema.iter_errors(&batch).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{faults:?} in {event}");
        for at in ["/eventId", "/occurredAt", "/correlation/spanId", "/correlation/parentSpanId", "/payload/durationMs"]
        {
            if let Some(value) = event.pointer_mut(at) {
                *value = Value::from("…");
            }
        }
        made.push(event);
    }
    made
}

fn all() -> Vec<Fact> {
    [of_runs(), of_questions(), of_nodes(), of_models()].concat()
}

fn lines(events: &[Value]) -> String {
    events.iter().map(|event| json::canonical(event).unwrap()).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_fact_has_its_exact_event_without_content() {
    let text = lines(&events(&all(), false));
    assert!(!text.contains("content") && !text.contains("planted"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn every_fact_has_its_exact_event_with_content() {
    let text = lines(&events(&all(), true));
    assert!(!text.contains("planted"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn every_type_but_questions_that_are_created_has_a_fact_here() {
    let made = events(&all(), false);
    let made: Vec<&str> = made.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let missing: Vec<_> = Payload::TYPES.iter().filter(|name| !made.contains(name)).collect();
    assert_eq!(missing, [&"interrupt.created"], "an agent's test makes them: their facts are the agent's to make");
}

#[test]
fn what_tracing_knows_of_a_span_counts_before_what_is_made_up() {
    let ids = TraceIds::new([1; 16], [2; 8], true).unwrap().below([3; 8]);
    let fact = Fact::RunParked { about: about().traced(Some(ids)), code: FailureCode::WorkflowChanged };
    let correlation = events(&[fact], false).remove(0)["correlation"].take();
    assert_eq!(correlation["traceId"], "01".repeat(16));
}

#[test]
fn spans_begin_and_end_with_one_id_below_that_of_their_run() {
    let config = StudioConfig::new("http://localhost", "key", "production", "desk").unwrap();
    let (mut mapper, revisions) = (Mapper::new(&config), Revisions::new(&config).unwrap());
    let queue = Queue::new(config.bounds.clone());
    let mut placed = |fact: &Fact| {
        let Mapped::Event(event) = mapper.event(&Noted::of(fact), &revisions, &queue.counts) else {
            panic!("no event")
        };
        (event.correlation.span_id, event.correlation.parent_span_id)
    };
    let run = placed(&of_runs()[0]);
    let nodes = of_nodes();
    let (node, step, step_end, node_end) = (placed(&nodes[0]), placed(&nodes[1]), placed(&nodes[2]), placed(&nodes[7]));
    assert_eq!((node.1.as_ref(), step.1.as_ref()), (run.0.as_ref(), node.0.as_ref()));
    assert_eq!((step_end, node_end), (step, node));
}
