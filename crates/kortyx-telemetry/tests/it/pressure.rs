//! Many runs at full speed, whatever becomes of their telemetry.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, ChatOptions, Correlation, ExecuteOptions, Fact, TelemetrySink, TraceIds};
use kortyx_protocol::{ChatMessage, ExecutionResult, SessionId};
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, NodeResult, Workflow};
use kortyx_store::Store;
use kortyx_telemetry::{StudioReporter, Telemetry};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tracing::Span;

use crate::{
    receiver::Receiver,
    world::{LONG, agent, config, run_through},
};

/// One node that keeps a step.
fn quick() -> Workflow {
    async fn add(ctx: NodeContext) -> NodeResult {
        let input: Value = ctx.input()?;
        let sum = || async move { Ok::<_, NodeError>(input["number"].as_u64().unwrap_or_default() + 1) };
        let sum = ctx.step("add", sum).await?;
        Ok(NodeOutput::new().data("sum", &sum))
    }
    Workflow::builder("quick").version("1").node("add", add).build().unwrap()
}

/// Runs the workflow so many times, eight at once, and gives back the sums in order.
async fn sums(agent: &Agent, runs: u64) -> Vec<Value> {
    let lanes = (0..8).map(|lane| {
        let agent = agent.clone();
        tokio::spawn(async move {
            let mut sums = Vec::new();
            for number in (lane..runs).step_by(8) {
                let input = json!({"number": number});
                let result = agent.execute(&quick(), input, ExecuteOptions::new()).await.unwrap();
                let ExecutionResult::Completed { data, .. } = result else { panic!("{result:?}") };
                sums.push((number, data["sum"].clone()));
            }
            sums
        })
    });
    let mut all = Vec::new();
    for lane in lanes.collect::<Vec<_>>() {
        all.extend(lane.await.unwrap());
    }
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, sum)| sum).collect()
}

fn expected(runs: u64) -> Vec<Value> {
    (1..=runs).map(Value::from).collect()
}

async fn quick_agent(sink: impl TelemetrySink) -> Agent {
    let agent = Agent::builder().workflow(&quick()).store(MemoryStore::new()).telemetry(sink);
    agent.without_worker().build().await.unwrap()
}

/// Counts facts that are events, each of which a reporter must account for.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<u64>>);

impl TelemetrySink for Told {
    fn record(&self, fact: &Fact) {
        *self.0.lock().unwrap() += u64::from(!matches!(fact, Fact::RunResponded { .. }));
    }

    fn watches_nodes(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn thousands_of_runs_against_a_dead_receiver_leave_a_bounded_queue_and_counted_drops() {
    const WAITING: usize = 300;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dead = config(&format!("http://{}", listener.local_addr().unwrap()))
        .waiting(WAITING, 1_000_000)
        .batch(100, Duration::ZERO);
    drop(listener);
    let reporter = StudioReporter::start(&dead).unwrap();
    let told = Told::default();
    let both = Telemetry::new().to(told.clone()).to(reporter.clone());

    assert_eq!(sums(&quick_agent(both).await, 2000).await, expected(2000));

    assert!(reporter.flush(LONG).await);
    let (counts, told) = (reporter.counts(), *told.0.lock().unwrap());
    assert!(told > 10_000, "{told}");
    assert!(counts.dropped > 0 && counts.abandoned > 0, "{counts:?}");
    assert_eq!((counts.dropped + counts.abandoned, counts.sent, counts.refused), (told, 0, 0), "each is accounted for");
}

#[tokio::test]
async fn events_of_each_run_arrive_in_their_order_while_many_go_at_once() {
    let receiver = Receiver::start([]).await;
    let ample = config(&receiver.url).waiting(100_000, 100_000_000).batch(50, Duration::from_millis(20));
    let reporter = StudioReporter::start(&ample).unwrap();
    assert_eq!(sums(&quick_agent(reporter.clone()).await, 200).await, expected(200));
    assert!(reporter.flush(LONG).await);

    let seen = receiver.seen();
    let mut by_run: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for event in &seen.events {
        let word = |at: &str| event.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let told = format!("{} {}", word("/type"), word("/payload/kind"));
        by_run.entry(word("/correlation/runId")).or_default().push(told);
    }
    let order = [
        "span.started run",
        "span.started node",
        "span.started step",
        "span.ended step",
        "span.ended node",
        "span.ended run",
    ];
    assert_eq!(by_run.len(), 200);
    for told in by_run.values() {
        let spans: Vec<&String> = told.iter().filter(|told| told.starts_with("span")).collect();
        assert_eq!(spans, order);
    }
}

/// Panics at all that can be asked of it.
struct Broken;

impl TelemetrySink for Broken {
    fn record(&self, _: &Fact) {
        panic!("broken sink");
    }

    fn watches_nodes(&self) -> bool {
        true
    }

    fn trace(&self, _: &Span) -> Option<TraceIds> {
        panic!("broken sink");
    }

    fn user<'a>(&self, _: &'a Correlation) -> Option<&'a str> {
        panic!("broken sink");
    }
}

/// Says of each span that it is another one, and of each run that it is for somebody else.
struct Lying;

impl TelemetrySink for Lying {
    fn record(&self, _: &Fact) {}

    fn watches_nodes(&self) -> bool {
        true
    }

    fn trace(&self, _: &Span) -> Option<TraceIds> {
        TraceIds::new([0xff; 16], [0xff; 8], false)
    }

    fn user<'a>(&self, _: &'a Correlation) -> Option<&'a str> {
        Some("\0 nobody \u{202e}")
    }
}

#[tokio::test]
async fn a_sink_that_panics_or_lies_changes_no_result() {
    assert_eq!(sums(&quick_agent(Broken).await, 20).await, expected(20));
    assert_eq!(sums(&quick_agent(Lying).await, 20).await, expected(20));
    run_through(&agent(Broken).await).await;
    run_through(&agent(Lying).await).await;
}

#[tokio::test]
async fn the_events_of_a_fork_and_a_rollback_are_sent_by_a_process_that_saw_nothing_of_the_session() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let process = || Agent::builder().workflow(&quick()).shared_store(store.clone()).without_worker();
    let session = SessionId::new("session-1").unwrap();
    let first = process().build().await.unwrap();
    let talk = ChatOptions::new().session(session.clone());
    first.stream_chat(vec![ChatMessage::user("hello")], talk).collect().await;
    let receiver = Receiver::start([]).await;
    let reporter = StudioReporter::start(&config(&receiver.url)).unwrap();
    let other = process().telemetry(reporter.clone()).build().await.unwrap();
    // The newest first: going back abandons what came later. The last one is the session's start, which no run left.
    for checkpoint in other.list_checkpoints(&session, None).await.unwrap().iter().rev() {
        other.fork(&checkpoint.id, None, None).await.unwrap();
        other.rollback_to(&checkpoint.id, None).await.unwrap();
    }
    assert!(reporter.flush(LONG).await);

    let mut types: Vec<_> = receiver.seen().types().into_iter().map(str::to_owned).collect();
    types.sort_unstable();
    assert_eq!(types, ["session.forked", "session.forked", "session.rolled_back", "session.rolled_back"]);
    assert_eq!(reporter.counts().unbuildable, 0);
}
