//! A process that dies while a model writes: a client that follows the run ends up with each output once, and with no half of one.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, Answer, ExecuteOptions};
use kortyx_protocol::{ResumeResponse, RunId, SessionId, StreamChunk, StructuredStreams, Timestamp};
use kortyx_reason::{Interrupts, ModelEvent, ReasonExt as _, Script, ScriptedModel, partial::Field};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use kortyx_store::{InterruptQuery, ManualClock, RunStatus, Scope, Store};
use kortyx_testkit::{Faulty, When};
use serde_json::{Value, json};

use crate::{
    deliveries::{EMIT, RETURN, both},
    world::{ASK, CLARIFY, Effects, with},
};

/// A store, and a model that writes something else each time it is asked.
struct World {
    store: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
    model: ScriptedModel,
    run: Arc<Mutex<Option<RunId>>>,
}

/// A call whose arguments come in two parts with so much time between that the first is stored.
fn slowly(script: Script, index: u32, tool: &str, first: String, rest: &str) -> Script {
    let part = |tool: &str, arguments: String| ModelEvent::ToolCall { index, tool: tool.into(), arguments };
    script.event(part(tool, first)).wait(Duration::from_millis(250)).event(part("", rest.into()))
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_767_225_600_000)));
        let store = Arc::new(MemoryStore::builder().with_clock(clock.clone()).build());
        let attempts = AtomicUsize::new(0);
        let model = ScriptedModel::from_fn(move |messages| {
            let attempt = attempts.fetch_add(1, Ordering::SeqCst);
            let spoken = messages.iter().filter(|message| matches!(message, kortyx_reason::Message::Assistant { .. }));
            let card = |name: &str| format!(r#"{{"title":"{name} of attempt {attempt}"#);
            if spoken.count() == 0 {
                let script = slowly(Script::new(), 0, EMIT, card("first"), r#"","tags":["x"]}"#);
                let script = script.event(ModelEvent::ToolCall {
                    index: 1,
                    tool: ASK.into(),
                    arguments: r#"{"question":"?"}"#.into(),
                });
                return slowly(script, 2, EMIT, card("second"), r#""}"#);
            }
            let script = slowly(Script::new(), 0, EMIT, card("third"), r#" and last"}"#);
            slowly(script, 1, RETURN, r#"{"good":true"#.into(), "}")
        });
        Self { store, clock, model, run: Arc::default() }
    }

    fn workflow(&self) -> Workflow {
        let (model, run) = (self.model.clone(), self.run.clone());
        let node = move |ctx: NodeContext| {
            *run.lock().unwrap() = Some(ctx.run_id().clone());
            let asking = Interrupts::required().contract(&CLARIFY);
            let reason = with(&model).tool(Effects::default().tool("note")).interrupts(asking);
            let reason = reason.outputs(both().fields([Field::set("good")]));
            async move {
                let done = ctx.reason("brief", reason).await?;
                let mut all: Vec<Value> = done.emissions.all().iter().map(|emission| emission.data.clone()).collect();
                all.extend(done.returned.map(|returned| returned.data));
                Ok(NodeOutput::new().data("all", &all))
            }
        };
        Workflow::builder("delivering").node("brief", node).build().unwrap()
    }

    /// One life of a process, which ends with what was delivered or with its death.
    fn live(&self, writes: u64, death: When) -> Option<Vec<Value>> {
        let mut process = tokio::runtime::Builder::new_current_thread();
        process.enable_all().start_paused(true).build().unwrap().block_on(async {
            let mortal = Faulty::dying(self.store.clone(), writes, death);
            let workflow = self.workflow();
            let store: Arc<dyn Store> = mortal.clone();
            let agent =
                Agent::builder().workflow(&workflow).shared_store(store).without_worker().build().await.unwrap();
            tokio::select! {
                biased;
                () = mortal.died() => None,
                all = self.work(&agent, &workflow) => Some(all),
            }
        })
    }

    async fn work(&self, agent: &Agent, workflow: &Workflow) -> Vec<Value> {
        let scope = || Scope::session(SessionId::new("session-1").unwrap());
        let mut worker = agent.worker();
        for _ in 0..100 {
            let begun = self.run.lock().unwrap().clone();
            let run = match begun {
                Some(run) => agent.get_run(&run, &scope()).await.unwrap(),
                None => None,
            };
            match run {
                None => {
                    let options = ExecuteOptions::new().session(SessionId::new("session-1").unwrap());
                    agent.execute(workflow, json!({}), options).await.unwrap();
                }
                Some(run) if run.status == RunStatus::Completed => {
                    let data = run.data.unwrap().to_value().unwrap();
                    return serde_json::from_value(data["all"].clone()).unwrap();
                }
                Some(run) => assert!(run.failure.is_none(), "{run:?}"),
            }
            worker.pass().await.unwrap();
            let query = InterruptQuery { scope: scope(), limit: 10, ..Default::default() };
            for question in agent.list_interrupts(query).await.unwrap().interrupts {
                let yes = ResumeResponse::value(json!({"text": "Yes."}));
                agent.submit(vec![Answer::in_scope(question.id, scope(), yes)]).await.unwrap();
            }
            while agent.driven_runs() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        panic!("the run does not end");
    }
}

/// What a client has that followed the run from its beginning, stream by stream.
fn followed(world: &World) -> StructuredStreams {
    let run = world.run.lock().unwrap().clone().unwrap();
    let reading = async { world.store.chunks(&run, 0, 1_000).await.unwrap() };
    let page = reading.now_or_never().expect("memory is read at once");
    let mut client = StructuredStreams::default();
    for record in page.map(|page| page.chunks).unwrap_or_default() {
        let chunk: StreamChunk = serde_json::from_slice(&record.chunk).unwrap();
        client.apply(&chunk).unwrap();
    }
    client
}

/// The client has what was delivered, once and in order, and nothing that is not final.
fn check(world: &World, all: &[Value], place: &str) {
    let client = followed(world);
    assert!(client.iter().all(kortyx_protocol::StructuredData::is_final), "{place}: {client:?}");
    let mut had: Vec<&Value> = client.iter().filter_map(|stream| stream.value()).collect();
    let mut delivered: Vec<&Value> = all.iter().collect();
    had.sort_by_key(ToString::to_string);
    delivered.sort_by_key(ToString::to_string);
    assert_eq!(had, delivered, "{place}");
    assert_eq!(all.len(), 4, "{place}: {all:?}");
}

/// Kills the process at one write after the other, until the run needs no more. Gives how many there are, and how often a
/// process died whose client saw something that the next one took back.
fn kill_at_every_write(death: When) -> (u64, usize) {
    let mut halves = 0;
    for writes in 0.. {
        let (world, place) = (World::new(), format!("{death:?} write {writes}"));
        if let Some(all) = world.live(writes, death) {
            check(&world, &all, &place);
            return (writes, halves);
        }
        let is_half = |world: &World| followed(world).iter().any(|stream| !stream.is_final());
        halves += usize::from(world.run.lock().unwrap().is_some() && is_half(&world));
        world.clock.advance(Duration::from_secs(31));
        let all = world.live(u64::MAX, death).unwrap();
        check(&world, &all, &place);
    }
    unreachable!("a run ends");
}

#[test]
fn whoever_follows_a_run_whose_process_dies_at_any_write_has_each_output_once() {
    for death in [When::Before, When::After] {
        let (writes, halves) = kill_at_every_write(death);
        assert!(writes >= 10 && halves >= 3, "{writes} writes, {halves} halves");
    }
}

#[test]
fn whoever_follows_a_run_whose_processes_die_again_and_again_has_each_output_once() {
    for (writes, death) in [(2, When::After), (3, When::Before), (4, When::After)] {
        let world = World::new();
        let mut lives = 0;
        let all = loop {
            lives += 1;
            assert!(lives < 100, "it gets nowhere");
            match world.live(writes, death) {
                Some(all) => break all,
                None => world.clock.advance(Duration::from_secs(31)),
            }
        };
        assert!(lives > 2, "{lives}");
        check(&world, &all, &format!("{lives} lives of {writes} writes"));
    }
}
