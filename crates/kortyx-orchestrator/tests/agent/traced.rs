//! Where runs are found in tracing: the client is told, and the next drive is linked, in whatever process.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use kortyx_orchestrator::{Agent, Answer, ChatOptions, Correlation, Fact, TelemetrySink, TraceIds};
use kortyx_protocol::{ResumeHandle, ResumeResponse, StreamChunk};
use kortyx_store::{ClaimRequest, Driver, Store};
use tracing::{
    Dispatch, Event, Metadata, Span, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::{
    talk::say,
    world::{World, ask, handle, review},
};

/// Gives every span a number, and keeps its name and its fields.
#[derive(Clone, Default)]
struct Numbers(Arc<AtomicU64>, Arc<Mutex<BTreeMap<u64, Fields>>>);

/// The fields of a span, its name among them.
#[derive(Clone, Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl Numbers {
    /// The spans of this name, in the order in which they began.
    fn named(&self, name: &str) -> Vec<BTreeMap<String, String>> {
        let spans = self.1.lock().unwrap();
        spans.values().filter(|fields| fields.0["name"] == name).map(|fields| fields.0.clone()).collect()
    }
}

impl Subscriber for Numbers {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        let mut fields = Fields([("name".to_owned(), span.metadata().name().to_owned())].into());
        span.record(&mut fields);
        self.1.lock().unwrap().insert(id, fields);
        Id::from_u64(id)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        values.record(self.1.lock().unwrap().get_mut(&id.into_u64()).unwrap());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A sink with a tracing layer: all spans are of one trace, named by its number.
#[derive(Clone)]
struct Traced {
    trace: u8,
    facts: Arc<Mutex<Vec<Fact>>>,
    links: Arc<Mutex<Vec<String>>>,
}

impl Traced {
    fn new(trace: u8) -> Self {
        Self { trace, facts: Arc::default(), links: Arc::default() }
    }
}

impl TelemetrySink for Traced {
    fn record(&self, fact: &Fact) {
        self.facts.lock().unwrap().push(fact.clone());
    }

    fn trace(&self, span: &Span) -> Option<TraceIds> {
        TraceIds::new([self.trace; 16], span.id()?.into_u64().to_be_bytes(), true)
    }

    fn link(&self, _: &Span, earlier: &TraceIds) {
        self.links.lock().unwrap().push(earlier.trace_id());
    }

    fn user<'a>(&self, about: &'a Correlation) -> Option<&'a str> {
        Some(about.session_id().as_str())
    }
}

async fn agent(world: &World, sink: impl TelemetrySink) -> Agent {
    let store: Arc<dyn Store> = world.store.clone();
    Agent::builder().shared_store(store).telemetry(sink).without_worker().workflow(&review()).build().await.unwrap()
}

fn run_in<R>(work: impl Future<Output = R>) -> R {
    run_seen(&Numbers::default(), work)
}

/// Has spans be made wherever a subscriber of a thread may want them. What `tracing` knows of a place is of the process: as long as one
/// subscriber is all there is, a thread without any may settle that nobody wants the spans of a place.
fn keep_subscribers() {
    static KEPT: OnceLock<[Dispatch; 2]> = OnceLock::new();
    KEPT.get_or_init(|| [Dispatch::new(Numbers::default()), Dispatch::new(Numbers::default())]);
}

fn run_seen<R>(spans: &Numbers, work: impl Future<Output = R>) -> R {
    keep_subscribers();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tracing::subscriber::with_default(spans.clone(), || runtime.block_on(work))
}

fn hex(byte: u8) -> String {
    format!("{byte:02x}").repeat(16)
}

#[test]
fn a_drive_is_linked_to_the_one_that_stored_its_run_last() {
    let (world, one, two) = (World::new(), Traced::new(1), Traced::new(2));
    let asked = run_in(async { handle(&ask(&agent(&world, one.clone()).await, &review()).await, "approval") });
    run_in(async {
        agent(&world, two.clone()).await.resume(&asked, ResumeResponse::select(["approve"])).await.unwrap()
    });
    assert_eq!((one.links.lock().unwrap().len(), two.links.lock().unwrap().clone()), (0, vec![hex(1)]));
    let earlier = two.facts.lock().unwrap().iter().find_map(|fact| match fact {
        Fact::RunResumed { earlier, .. } => *earlier,
        _ => None,
    });
    assert_eq!(earlier.map(|ids| ids.trace_id()), Some(hex(1)));
    for (sink, trace) in [(&one, 1), (&two, 2)] {
        for fact in sink.facts.lock().unwrap().iter().filter(|fact| !matches!(fact, Fact::InterruptResolved { .. })) {
            let found = fact.about().and_then(Correlation::trace).map(TraceIds::trace_id);
            assert_eq!(found, Some(hex(trace)), "{fact:?}");
        }
    }
}

#[test]
fn a_client_is_told_once_where_its_response_is_found() {
    let (world, sink) = (World::new(), Traced::new(7));
    let said = run_in(async { say(&agent(&world, sink.clone()).await, "go", ChatOptions::new()).await });
    assert_eq!(said.kinds(), ["session", "trace", "interrupt", "checkpoint", "done"]);
    let StreamChunk::Trace { trace_id, span_id, run_id, root_span_name } = &said.0[1] else { panic!("{said:?}") };
    assert_eq!((&**trace_id, &**root_span_name), (&*hex(7), "kortyx.run"));
    let facts = sink.facts.lock().unwrap();
    let about = facts[0].about().unwrap();
    assert_eq!(about.run_id(), run_id);
    assert_eq!(about.trace().unwrap().span_id(), **span_id);
}

/// The stored state of a run whose question is answered.
async fn snapshot(world: &World, asked: &ResumeHandle) -> String {
    let accepting = world.builder().accept_only().build().await.unwrap();
    accepting.submit(vec![Answer::with_handle(asked, ResumeResponse::select(["approve"]))]).await.unwrap();
    let pin = world.store.run(&asked.run_id).await.unwrap().unwrap().workflow;
    let driver = Driver { id: "test".into(), ttl: Duration::from_secs(1) };
    let request = ClaimRequest { driver, workflows: vec![pin], parked_before: None, limit: 1 };
    let claimed = world.store.claim_orphans(request).await.unwrap().remove(0);
    String::from_utf8(claimed.snapshot.to_vec()).unwrap()
}

#[test]
fn without_ids_nothing_is_sent_and_nothing_is_stored() {
    let world = World::new();
    let said = run_in(async { say(&agent(&world, world.facts.clone()).await, "go", ChatOptions::new()).await });
    assert_eq!(said.kinds(), ["session", "interrupt", "checkpoint", "done"]);
    let asked = run_in(async { handle(&ask(&agent(&world, world.facts.clone()).await, &review()).await, "approval") });
    let stored = run_in(snapshot(&world, &asked));
    assert!(!stored.contains("trace_parent"), "{stored}");

    let world = World::new();
    let asked = run_in(async { handle(&ask(&agent(&world, Traced::new(3)).await, &review()).await, "approval") });
    let stored = run_in(snapshot(&world, &asked));
    assert!(stored.contains(&format!("\"trace_parent\":\"00-{}-", hex(3))), "{stored}");
}

#[test]
fn b181_every_drive_has_a_span_and_a_pause_is_no_error_in_it() {
    let (world, spans) = (World::new(), Numbers::default());
    run_seen(&spans, async {
        let agent = agent(&world, Traced::new(1)).await;
        let asked = handle(&ask(&agent, &review()).await, "approval");
        agent.resume(&asked, ResumeResponse::select(["approve"])).await.unwrap();
    });
    let runs = spans.named("kortyx.run");
    let outcomes: Vec<_> = runs.iter().map(|run| run["kortyx.outcome"].as_str()).collect();
    assert_eq!(outcomes, ["paused", "completed"]);
    for run in &runs {
        assert!(!run.contains_key("otel.status_code") && !run.contains_key("error.type"), "{run:?}");
        assert_eq!((run["session.id"].as_str(), run["user.id"].as_str()), ("session-1", "session-1"));
        assert_eq!((run["otel.name"].as_str(), run["kortyx.workflow"].as_str()), ("run review", "review"));
    }
    let transitions: Vec<_> =
        spans.named("kortyx.store").iter().map(|span| span["kortyx.transition"].clone()).collect();
    assert_eq!(transitions, ["suspend", "answer", "finish"]);
}
