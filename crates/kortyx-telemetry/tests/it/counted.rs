//! What a recorder is told of runs, questions and stores.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use kortyx_contracts::{AskExt as _, Text};
use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{
    Agent, Correlation, End, ExecuteOptions, Fact, ModelName, OrchestratorError, TelemetrySink as _, Visit,
};
use kortyx_protocol::{ExecutionResult, FailureCode, RequestId, ResumeResponse, RunId, SessionId, Timestamp, Usage};
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, NodeResult, Workflow};
use kortyx_store::{CancelTarget, InterruptQuery, ManualClock, Scope, Store};
use kortyx_telemetry::{
    StudioReporter,
    metrics::{MeteredStore, Metrics, Watch, names},
};
use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Label, Metadata, Recorder, SharedString, Unit, set_default_local_recorder,
};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use serde_json::json;

use crate::world::{config, run_through, workflow};

/// The metrics at one moment: reading them empties histograms.
struct Read(Vec<(String, DebugValue)>);

impl Read {
    fn of(snapshotter: &Snapshotter) -> Self {
        let shown = |key: &Key| {
            let labels: Vec<_> = key.labels().map(Label::value).collect();
            [&[key.name()], &labels[..]].concat().join(" ")
        };
        let all = snapshotter.snapshot().into_vec().into_iter();
        Self(all.map(|(key, _, _, value)| (shown(key.key()), value)).collect())
    }

    fn value(&self, shown: &str) -> Option<&DebugValue> {
        self.0.iter().find(|(key, _)| key == shown).map(|(_, value)| value)
    }

    /// A counter's value, a gauge's, how many values a histogram has; 0 of what was never told.
    fn number(&self, shown: &str) -> u64 {
        match self.value(shown) {
            None => 0,
            Some(DebugValue::Counter(count)) => *count,
            Some(DebugValue::Gauge(value)) => format!("{value:.0}").parse().unwrap(),
            Some(DebugValue::Histogram(values)) => {
                assert!(values.iter().all(|seconds| (0.0..60.0).contains(&seconds.0)), "{values:?}");
                values.len() as u64
            }
        }
    }

    #[track_caller]
    fn assert(&self, expected: &[(&str, u64)]) {
        for (shown, number) in expected {
            assert_eq!(self.number(shown), *number, "{shown} in {:#?}", self.0);
        }
    }
}

async fn ask(ctx: NodeContext) -> NodeResult {
    let said = ctx.interrupt("text", Text::new("why?").expires_in(Duration::from_mins(1))).await?;
    if said == "fail" { Err(NodeError::message("planted-failure")) } else { Ok(NodeOutput::new()) }
}

fn question() -> Workflow {
    Workflow::builder("question").node("ask", ask).build().unwrap()
}

fn scope() -> Scope {
    Scope::session(SessionId::new("planted-session").unwrap())
}

/// An agent whose store has this clock, and a store that is metered.
async fn world(clock: &Arc<ManualClock>) -> Agent {
    let store = MeteredStore::new("memory", MemoryStore::builder().with_clock(clock.clone()).build());
    let agent = Agent::builder().workflow(&question()).workflow(&workflow()).store(store).telemetry(Metrics::new());
    agent.without_worker().build().await.unwrap()
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_millis(1_000_000)))
}

async fn asked(agent: &Agent) -> ExecutionResult {
    agent
        .execute(&question(), json!({}), ExecuteOptions::new().session(SessionId::new("planted-session").unwrap()))
        .await
        .unwrap()
}

async fn answer(
    agent: &Agent,
    asked: &ExecutionResult,
    said: ResumeResponse,
) -> Result<ExecutionResult, OrchestratorError> {
    agent.resume(&asked.interrupts()[0].resume, said).await
}

#[tokio::test]
async fn a_run_with_two_answers_is_counted_and_timed() {
    let recorder = DebuggingRecorder::new();
    let _local = set_default_local_recorder(&recorder);
    run_through(&world(&clock()).await).await;

    Read::of(&recorder.snapshotter()).assert(&[
        ("kortyx_questions_opened_total review", 2),
        ("kortyx_questions_closed_total review answered", 2),
        ("kortyx_question_wait_seconds review", 2),
        ("kortyx_answers_total review accepted", 2),
        ("kortyx_pause_seconds review", 2),
        ("kortyx_resume_seconds review", 2),
        ("kortyx_drive_seconds review suspended", 2),
        ("kortyx_drive_seconds review completed", 1),
        ("kortyx_runs_started_total review", 1),
        ("kortyx_runs_suspended_total review", 2),
        ("kortyx_runs_resumed_total review answered", 2),
        ("kortyx_runs_finished_total review completed", 1),
        ("kortyx_store_seconds memory answer", 2),
        ("kortyx_store_seconds memory suspend", 2),
        ("kortyx_store_seconds memory finish", 1),
    ]);
}

#[tokio::test]
async fn answers_that_are_not_accepted_are_counted_by_why() {
    let recorder = DebuggingRecorder::new();
    let _local = set_default_local_recorder(&recorder);
    let agent = world(&clock()).await;
    let first = asked(&agent).await;
    answer(&agent, &first, ResumeResponse::select(["nothing"])).await.unwrap_err();
    answer(&agent, &first, ResumeResponse::text("because")).await.unwrap();
    answer(&agent, &first, ResumeResponse::text("because")).await.unwrap();
    answer(&agent, &first, ResumeResponse::text("of that")).await.unwrap_err();

    Read::of(&recorder.snapshotter()).assert(&[
        ("kortyx_answers_total question accepted", 1),
        ("kortyx_answers_total question invalid", 1),
        ("kortyx_answers_total question duplicate", 1),
        ("kortyx_answers_total question conflict", 1),
        ("kortyx_questions_closed_total question answered", 1),
    ]);
}

#[tokio::test]
async fn a_question_that_expires_is_closed_once_whoever_notices_first() {
    let recorder = DebuggingRecorder::new();
    let _local = set_default_local_recorder(&recorder);
    let clock = clock();
    let agent = world(&clock).await;
    let asked = asked(&agent).await;
    clock.advance(Duration::from_mins(2));
    answer(&agent, &asked, ResumeResponse::text("late")).await.unwrap_err();
    agent.worker().pass().await.unwrap();

    Read::of(&recorder.snapshotter()).assert(&[
        ("kortyx_answers_total question late", 1),
        ("kortyx_questions_closed_total question expired", 1),
        ("kortyx_runs_finished_total question expired", 1),
        ("kortyx_drive_seconds question expired", 0),
    ]);
}

#[tokio::test]
async fn runs_that_are_cancelled_and_that_fail_are_counted_by_how_they_ended() {
    let recorder = DebuggingRecorder::new();
    let _local = set_default_local_recorder(&recorder);
    let agent = world(&clock()).await;
    let cancelled = asked(&agent).await;
    agent.cancel(CancelTarget::Run(cancelled.run_id().clone()), scope(), None).await.unwrap();
    let failed = asked(&agent).await;
    answer(&agent, &failed, ResumeResponse::text("fail")).await.unwrap();

    let read = Read::of(&recorder.snapshotter());
    read.assert(&[
        ("kortyx_questions_opened_total question", 2),
        ("kortyx_questions_closed_total question cancelled", 1),
        ("kortyx_runs_finished_total question cancelled", 1),
        ("kortyx_runs_finished_total question failed", 1),
        ("kortyx_drive_seconds question failed", 1),
    ]);
    for hidden in ["planted", cancelled.run_id().as_str()] {
        assert!(read.0.iter().all(|(shown, _)| !shown.contains(hidden)), "{hidden} is in {:#?}", read.0);
    }
}

#[tokio::test]
async fn a_store_that_fails_is_counted_by_call_and_kind() {
    let recorder = DebuggingRecorder::new();
    let _local = set_default_local_recorder(&recorder);
    let store = MeteredStore::new("memory", MemoryStore::new());
    store.list_interrupts(InterruptQuery::default()).await.unwrap_err();
    store.now().await.unwrap();
    store.close().await;
    store.now().await.unwrap_err();
    Watch::new().store("memory", Arc::new(store)).read().await;

    Read::of(&recorder.snapshotter()).assert(&[
        ("kortyx_store_errors_total memory list_interrupts scope_required", 1),
        ("kortyx_store_errors_total memory now closed", 1),
        ("kortyx_store_seconds memory now", 2),
        ("kortyx_store_stats_failures_total memory", 1),
    ]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_says_what_there_is_now_whoever_did_it() {
    let recorder = DebuggingRecorder::new();
    let _local = set_default_local_recorder(&recorder);
    let agent = world(&clock()).await;
    let reporter = StudioReporter::start(&config("http://127.0.0.1:9").batch(1000, Duration::from_hours(1))).unwrap();
    reporter.record(&Fact::RunRecovered { about: about() });
    let watch = Watch::new().store("memory", agent.store().clone()).agent(&agent).streams(|| 3).reporter(&reporter);
    let watching = tokio::spawn(watch.run(Duration::from_secs(10)));
    let first = asked(&agent).await;
    asked(&agent).await;
    let read = async |expected: &[(&str, u64)]| {
        tokio::time::sleep(Duration::from_secs(11)).await;
        Read::of(&recorder.snapshotter()).assert(expected);
    };
    read(&[
        ("kortyx_questions_open memory", 2),
        ("kortyx_runs memory suspended", 2),
        ("kortyx_runs_driven", 0),
        ("kortyx_streams_open", 3),
    ])
    .await;
    answer(&agent, &first, ResumeResponse::text("because")).await.unwrap();
    read(&[
        ("kortyx_questions_open memory", 1),
        ("kortyx_runs memory suspended", 1),
        ("kortyx_runs memory completed", 1),
    ])
    .await;
    watching.abort();
}

fn about() -> Correlation {
    Correlation::new(RunId::from_random([1; 16]), SessionId::new("session-1").unwrap()).at("question", "ask")
}

#[test]
fn what_only_facts_show_is_counted_by_names_of_the_code() {
    let recorder = DebuggingRecorder::new();
    let _local = set_default_local_recorder(&recorder);
    let metrics = Metrics::new();
    let visit = Arc::new(Visit::new("question", "1", "ask"));
    let (step, call_id) = (String::new(), String::new());
    metrics.record(&Fact::ModelEnded {
        about: about(),
        visit: visit.clone(),
        step: step.clone(),
        model: ModelName::new("small"),
        end: End::Completed,
        usage: Some(Usage { input: 7, output: 3, total: 10 }),
        finish: None,
        tool_calls: 0,
        output: None,
    });
    let (tool, end) = ("search".to_owned(), End::Failed(FailureCode::ProviderHttpError));
    metrics.record(&Fact::ToolEnded { about: about(), visit, step, tool, call_id, end, output: None });
    metrics.record(&Fact::RunRecovered { about: about() });
    metrics.record(&Fact::RunParked { about: about(), code: FailureCode::WorkflowChanged });
    metrics.record(&Fact::RunDiverged { about: about(), code: FailureCode::ReplayDiverged });
    metrics.record(&Fact::LeaseLost { about: about(), fence: 2 });
    metrics.record(&Fact::AnswerLate { request_id: RequestId::from_random([1; 16]), about: None });
    let (request_id, superseded) = (RequestId::from_random([1; 16]), about());
    metrics.record(&Fact::InterruptSuperseded { request_id, about: superseded });

    Read::of(&recorder.snapshotter()).assert(&[
        ("kortyx_model_passes_total question small completed", 1),
        ("kortyx_model_tokens_total question small input", 7),
        ("kortyx_model_tokens_total question small output", 3),
        ("kortyx_tool_calls_total question search failed", 1),
        ("kortyx_runs_recovered_total question", 1),
        ("kortyx_runs_parked_total question WORKFLOW_CHANGED", 1),
        ("kortyx_runs_diverged_total question REPLAY_DIVERGED", 1),
        ("kortyx_leases_lost_total question", 1),
        ("kortyx_answers_total unknown late", 1),
        ("kortyx_questions_closed_total question superseded", 1),
    ]);
}

/// Panics whatever it is told, and keeps the names of what is described to it.
#[derive(Default)]
struct Broken(Mutex<Vec<String>>);

impl Recorder for Broken {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.0.lock().unwrap().push(name.as_str().to_owned());
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.0.lock().unwrap().push(name.as_str().to_owned());
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
        assert_eq!(unit, Some(Unit::Seconds));
        self.0.lock().unwrap().push(name.as_str().to_owned());
    }

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        panic!("broken recorder");
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        panic!("broken recorder");
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        panic!("broken recorder");
    }
}

#[tokio::test]
async fn a_recorder_that_panics_harms_no_run_and_no_watch() {
    let recorder = Broken::default();
    let _local = set_default_local_recorder(&recorder);
    let agent = world(&clock()).await;
    run_through(&agent).await;
    Watch::new().store("memory", agent.store().clone()).agent(&agent).read().await;

    let described = recorder.0.lock().unwrap();
    assert!(names::ALL.iter().all(|metric| described.iter().any(|name| name == metric.name)));
}
