//! The spans of a run: nested, closed, and a pause is no error in any of them.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use kortyx_runtime::{NodeContext, NodeError, NodeOutput, NodeResult};
use serde_json::json;
use tracing::{
    Dispatch, Event, Instrument as _, Metadata, Subscriber,
    field::{Field, Visit},
    info_span,
    span::{Attributes, Id, Record},
};

use crate::{
    sample::{named, yes_no},
    support::{Drive, World, completed, failed, select},
};

/// A span as it was seen.
#[derive(Debug, Clone, Default)]
struct Seen {
    name: &'static str,
    parent: Option<u64>,
    fields: BTreeMap<String, String>,
    events: Vec<(tracing::Level, String)>,
    is_closed: bool,
}

/// Keeps every span.
#[derive(Clone, Default)]
struct Spans(Arc<Inner>);

#[derive(Default)]
struct Inner {
    last: AtomicU64,
    all: Mutex<BTreeMap<u64, (Seen, usize)>>,
    entered: Mutex<Vec<u64>>,
}

struct Fields<'a>(&'a mut BTreeMap<String, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl Subscriber for Spans {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.0.last.fetch_add(1, Ordering::SeqCst) + 1;
        let current = self.0.entered.lock().unwrap().last().copied();
        let parent = span.parent().map(Id::into_u64).or(current.filter(|_| span.is_contextual()));
        let mut seen = Seen { name: span.metadata().name(), parent, ..Seen::default() };
        span.record(&mut Fields(&mut seen.fields));
        self.0.all.lock().unwrap().insert(id, (seen, 1));
        Id::from_u64(id)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        let mut all = self.0.all.lock().unwrap();
        values.record(&mut Fields(&mut all.get_mut(&id.into_u64()).unwrap().0.fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let current = self.0.entered.lock().unwrap().last().copied();
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        let at = event.parent().map(Id::into_u64).or(current);
        if let Some((seen, _)) = at.and_then(|id| self.0.all.lock().unwrap().get_mut(&id).map(|it| it.clone())) {
            let mut seen = seen;
            seen.events.push((*event.metadata().level(), fields.remove("message").unwrap_or_default()));
            let id = at.unwrap();
            self.0.all.lock().unwrap().get_mut(&id).unwrap().0 = seen;
        }
    }

    fn enter(&self, id: &Id) {
        self.0.entered.lock().unwrap().push(id.into_u64());
    }

    fn exit(&self, id: &Id) {
        let left = self.0.entered.lock().unwrap().pop();
        assert_eq!(left, Some(id.into_u64()), "spans are left in the order in which they were entered");
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.0.all.lock().unwrap().get_mut(&id.into_u64()).unwrap().1 += 1;
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut all = self.0.all.lock().unwrap();
        let (seen, count) = all.get_mut(&id.into_u64()).unwrap();
        *count -= 1;
        seen.is_closed = *count == 0;
        seen.is_closed
    }
}

impl Spans {
    /// The spans of this name.
    fn named(&self, name: &str) -> Vec<(u64, Seen)> {
        let all = self.0.all.lock().unwrap();
        all.iter().filter(|(_, (seen, _))| seen.name == name).map(|(id, (seen, _))| (*id, seen.clone())).collect()
    }

    fn all(&self) -> Vec<Seen> {
        self.0.all.lock().unwrap().values().map(|(seen, _)| seen.clone()).collect()
    }

    /// Whatever an exporter would paint red.
    fn red(&self) -> Vec<Seen> {
        let is_red = |seen: &Seen| {
            seen.fields.contains_key("otel.status_code")
                || seen.fields.contains_key("error.type")
                || seen.events.iter().any(|(level, _)| *level == tracing::Level::ERROR)
        };
        self.all().into_iter().filter(is_red).collect()
    }
}

/// Asks three spans deep in the user's own code.
async fn deep(ctx: NodeContext) -> NodeResult {
    let ask = async { ctx.interrupt("q", yes_no("?")).await }.instrument(info_span!("inner"));
    let answer = ask.instrument(info_span!("middle")).instrument(info_span!("outer")).await?;
    Ok(NodeOutput::new().data("answer", &answer))
}

/// Has spans be made wherever a subscriber of a thread may want them. What `tracing` knows of a place is of the process: as long as one
/// subscriber is all there is, a thread without any may settle that nobody wants the spans of a place.
fn keep_subscribers() {
    static KEPT: OnceLock<[Dispatch; 2]> = OnceLock::new();
    KEPT.get_or_init(|| [Dispatch::new(Spans::default()), Dispatch::new(Spans::default())]);
}

fn run_in<R>(spans: &Spans, work: impl Future<Output = R>) -> R {
    keep_subscribers();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    tracing::subscriber::with_default(spans.clone(), || runtime.block_on(work))
}

#[test]
fn b181_a_pause_is_no_error_in_any_span_at_any_depth() {
    let child = named("child", deep);
    let called = child.clone();
    let middle = named("middle", move |ctx: NodeContext| {
        let child = called.clone();
        async move { Ok(NodeOutput::new().data("child", &ctx.call("c", &child, json!({})).await?)) }
    });
    let called = middle.clone();
    let parent = named("parent", move |ctx: NodeContext| {
        let child = called.clone();
        async move {
            ctx.step("s", || async { Ok::<_, NodeError>(1) }).await?;
            Ok(NodeOutput::new().data("child", &ctx.call("c", &child, json!({})).await?))
        }
    });
    let spans = Spans::default();
    let world = World::new(&[&parent, &middle, &child]);
    run_in(&spans, async {
        let paused = world.run(&parent, json!(null)).await;
        assert!(matches!(paused, Drive::Waiting), "{paused:?}");
    });
    assert!(spans.red().is_empty(), "{:?}", spans.red());
    assert!(spans.all().iter().all(|seen| seen.is_closed), "a pause leaves no span open");
    for name in ["kortyx.node", "kortyx.child"] {
        for (_, seen) in spans.named(name) {
            assert_eq!(seen.fields["kortyx.outcome"], "paused", "{seen:?}");
            assert_eq!(seen.events, [(tracing::Level::INFO, "paused".to_owned())]);
        }
    }
    assert_eq!((spans.named("kortyx.node").len(), spans.named("kortyx.child").len()), (3, 2));
    assert_eq!(spans.named("kortyx.step")[0].1.fields["kortyx.outcome"], "completed");

    let after = Spans::default();
    run_in(&after, async { completed(world.answer("q", select(&["yes"])).await) });
    assert!(after.red().is_empty());
    assert!(after.named("kortyx.step").is_empty(), "what replay finds has no span");
    assert!(after.all().iter().all(|seen| seen.is_closed));
}

#[test]
fn a_span_lies_within_that_of_the_node_or_the_call_that_it_belongs_to() {
    let child = named("child", |_| async { Ok(NodeOutput::new()) });
    let called = child.clone();
    let parent = named("parent", move |ctx: NodeContext| {
        let child = called.clone();
        async move {
            ctx.step("s", || async { Ok::<_, NodeError>(1) }.instrument(info_span!("mine"))).await?;
            ctx.call("c", &child, json!({})).await?;
            Ok(NodeOutput::new())
        }
    });
    let spans = Spans::default();
    let world = World::new(&[&parent, &child]);
    run_in(&spans, async { completed(world.run(&parent, json!(null)).await) });
    let one = |name: &str, of: &str| {
        let found = spans.named(name).into_iter().find(|(_, seen)| seen.fields.values().any(|value| value == of));
        found.unwrap_or_else(|| panic!("no span {name} of {of}"))
    };
    let (outer, step, call) = (one("kortyx.node", "parent"), one("kortyx.step", "s"), one("kortyx.child", "c"));
    assert_eq!(step.1.parent, Some(outer.0));
    assert_eq!(call.1.parent, Some(outer.0));
    assert_eq!(one("kortyx.node", "child").1.parent, Some(call.0));
    assert_eq!(spans.named("mine")[0].1.parent, Some(step.0));
    assert_eq!(outer.1.fields["otel.name"], "node node");
    assert_eq!(outer.1.fields["session.id"], "session-1");
}

#[test]
fn a_failure_is_an_error_with_its_code_and_without_what_it_says() {
    let flow = named("flow", |ctx: NodeContext| async move {
        ctx.step("s", || async { Err::<(), _>(NodeError::message("planted")) }).await?;
        Ok(NodeOutput::new())
    });
    let spans = Spans::default();
    let world = World::new(&[&flow]);
    run_in(&spans, async { failed(world.run(&flow, json!(null)).await) });
    for name in ["kortyx.node", "kortyx.step"] {
        let (_, seen) = spans.named(name).remove(0);
        assert_eq!(seen.fields["error.type"], "EXECUTION_FAILED");
        assert_eq!(seen.fields["otel.status_code"], "ERROR");
        assert!(!format!("{:?}", seen.fields).contains("planted"));
    }
}
