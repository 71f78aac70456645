//! A process that dies at any write of a loop with three tools, an approval, a question of the model and one of a tool loses nothing and
//! repeats nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use kortyx_contracts::Text;
use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, Answer, ExecuteOptions};
use kortyx_protocol::{RequestId, ResumeResponse, RunId, SessionId, Timestamp};
use kortyx_reason::{
    FunctionTool, MODEL_PASSES, Message, Reason, ReasonExt as _, Script, ScriptedModel, TOOL_CALLS, ToolContext,
    ToolError, WhileWaiting, tool,
};
use kortyx_runtime::{NodeContext, TOKENS, Workflow};
use kortyx_store::{InterruptQuery, ManualClock, RunStatus, Scope, Store};
use kortyx_testkit::{Faulty, When};
use serde_json::{Value, json};

use crate::world::{ASK, Effects, Order, clarify, output};

struct World {
    store: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
    model: ScriptedModel,
    effects: Effects,
    run: Arc<Mutex<Option<RunId>>>,
    policy: WhileWaiting,
    /// The questions whether to go on at a limit.
    limits: Mutex<BTreeSet<RequestId>>,
}

/// A tool that asks before it does anything.
fn looking(effects: &Effects) -> FunctionTool<Order> {
    let effects = effects.clone();
    tool("look_up", "Looks it up", move |order: Order, ctx: ToolContext| {
        let effects = effects.clone();
        async move {
            let shelf = ctx.ask("shelf", Text::new("Which shelf?")).await?;
            assert_eq!(shelf, "The upper.");
            effects.did(&order, &ctx);
            Ok::<_, ToolError>(json!({"done": order.what}))
        }
    })
}

fn session() -> SessionId {
    SessionId::new("session-1").unwrap()
}

impl World {
    fn new(policy: WhileWaiting) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_767_225_600_000)));
        let store = Arc::new(MemoryStore::builder().with_clock(clock.clone()).build());
        let model = ScriptedModel::new([
            Script::new()
                .text("Let me see.")
                .call("look_up", json!({"what": "stock"}))
                .call(ASK, json!({"question": "Which tea?"})),
            Script::new()
                .call("order", json!({"what": "tea", "amount": 200}))
                .call("note", json!({"what": "tea"}))
                .split(2),
            Script::new().call("note", json!({"what": "bye"})).usage(5, 6),
            Script::new().text("Ordered."),
        ]);
        Self { store, clock, model, effects: Effects::default(), run: Arc::default(), policy, limits: Mutex::default() }
    }

    fn workflow(&self) -> Workflow {
        let (model, effects, run, policy) = (self.model.clone(), self.effects.clone(), self.run.clone(), self.policy);
        let node = move |ctx: NodeContext| {
            *run.lock().unwrap() = Some(ctx.run_id().clone());
            let judge = effects.clone();
            let order = effects.tool("order").approve_when(move |order: Order| {
                judge.judge();
                async move { order.amount > 100 }
            });
            let reason = Reason::new(model.clone()).system("Buy.").input("Buy tea.").interrupts(clarify());
            let reason = reason.tool(looking(&effects)).tool(order).tool(effects.tool("note"));
            let reason = reason.while_waiting(policy).emit();
            async move {
                let output = output(&ctx.reason("buy", reason).await?);
                let used = [MODEL_PASSES, TOOL_CALLS, TOKENS].map(|counter| ctx.level(counter).map(|level| level.used));
                Ok(output.data("used", &used.into_iter().collect::<Result<Vec<_>, _>>()?))
            }
        };
        let buying = Workflow::builder("buying").node("buy", node);
        buying.limit(MODEL_PASSES, 3).limit(TOOL_CALLS, 2).build().unwrap()
    }

    /// One life of a process, which ends with the run's output or with its death.
    fn live(&self, writes: u64, death: When) -> Option<Value> {
        let process = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        process.block_on(async {
            let mortal = Faulty::dying(self.store.clone(), writes, death);
            let workflow = self.workflow();
            let store: Arc<dyn Store> = mortal.clone();
            let agent =
                Agent::builder().workflow(&workflow).shared_store(store).without_worker().build().await.unwrap();
            tokio::select! {
                biased;
                () = mortal.died() => None,
                output = self.work(&agent, &workflow) => Some(output),
            }
        })
    }

    async fn work(&self, agent: &Agent, workflow: &Workflow) -> Value {
        let mut worker = agent.worker();
        for _ in 0..1000 {
            let begun = self.run.lock().unwrap().clone();
            let run = match begun {
                Some(run) => agent.get_run(&run, &Scope::session(session())).await.unwrap(),
                None => None,
            };
            match run {
                None => {
                    let options = ExecuteOptions::new().session(session());
                    agent.execute(workflow, json!({}), options).await.unwrap();
                }
                Some(run) if run.status == RunStatus::Completed => return run.data.unwrap().to_value().unwrap(),
                Some(run) => assert!(run.failure.is_none(), "{run:?}"),
            }
            worker.pass().await.unwrap();
            while agent.driven_runs() > 0 {
                tokio::task::yield_now().await;
            }
            self.answer_all(agent).await;
        }
        panic!("the run does not end");
    }

    async fn answer_all(&self, agent: &Agent) {
        let query = InterruptQuery { scope: Scope::session(session()), limit: 10, ..Default::default() };
        let open = agent.list_interrupts(query).await.unwrap().interrupts;
        for question in open {
            let answer = match question.input.contract.as_deref() {
                None if question.input.options.is_empty() => ResumeResponse::text("The upper."),
                Some("clarify") => ResumeResponse::value(json!({"text": "Green."})),
                Some(_) => {
                    let digest = question.input.request.unwrap()["digest"].clone();
                    ResumeResponse::value(json!({"decision": "approve", "digest": digest}))
                }
                None => {
                    self.limits.lock().unwrap().insert(question.id.clone());
                    ResumeResponse::select(["continue"])
                }
            };
            let scope = Scope::session(session());
            agent.submit(vec![Answer::in_scope(question.id, scope, answer)]).await.unwrap();
            while agent.driven_runs() > 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Every pass was given one conversation, however often it was made, and each continues the one before.
    fn check_conversations(&self) {
        let mut passes: BTreeMap<usize, String> = BTreeMap::new();
        for played in self.model.played() {
            let spoken = played.messages.iter().filter(|message| matches!(message, Message::Assistant { .. })).count();
            let given = Message::canonical(&played.messages).unwrap();
            let before = passes.entry(spoken).or_insert_with(|| given.clone());
            assert_eq!(*before, given, "pass {spoken} was given two conversations");
        }
        // 4 passes of 3, 4 calls of 2: each limit is asked about once.
        assert_eq!(self.limits.lock().unwrap().len(), 2);
        let all: Vec<String> = passes.into_values().collect();
        assert_eq!(all.len(), 4);
        for pair in all.windows(2) {
            assert!(pair[1].starts_with(pair[0].trim_end_matches(']')), "{} does not continue {}", pair[1], pair[0]);
        }
    }
}

fn expected() -> Value {
    json!({
        "text": "Ordered.",
        "steps": 4,
        "answers": [{"text": "Green."}],
        "used": [4, 4, 11],
        "results": [
            ["look_up", "completed", {"done": "stock"}],
            ["order", "completed", {"done": "tea"}],
            ["note", "completed", {"done": "tea"}],
            ["note", "completed", {"done": "bye"}],
        ],
    })
}

/// Kills the process at one write after the other, each in a world of its own, until the run needs no more writes.
fn kill_at_every_write(policy: WhileWaiting, death: When) -> u64 {
    for writes in 0.. {
        let world = World::new(policy);
        let Some(output) = world.live(writes, death) else {
            world.clock.advance(Duration::from_secs(31));
            let output = world.live(u64::MAX, death).unwrap();
            assert_eq!(output, expected(), "killed at write {writes}");
            world.check_conversations();
            assert_eq!(world.effects.distinct(), 4, "killed {death:?} write {writes}");
            let repeated = world.effects.count() - 4;
            // A process that dies between an effect and its record does it again, with the same key.
            assert!(repeated <= usize::from(death == When::Before), "killed at write {writes}: {repeated} repeated");
            continue;
        };
        assert_eq!(output, expected());
        assert_eq!((world.effects.count(), world.effects.judged(), world.model.played().len()), (4, 1, 4));
        return writes;
    }
    unreachable!("a run ends");
}

#[test]
fn a_process_that_dies_before_any_write_repeats_at_most_what_was_under_way() {
    for policy in [WhileWaiting::Hold, WhileWaiting::Proceed] {
        assert!(kill_at_every_write(policy, When::Before) >= 12);
    }
}

#[test]
fn a_process_that_dies_after_any_write_repeats_nothing() {
    for policy in [WhileWaiting::Hold, WhileWaiting::Proceed] {
        assert!(kill_at_every_write(policy, When::After) >= 12);
    }
}

#[test]
fn a_process_that_dies_again_and_again_gets_there() {
    for (writes, death) in [(1, When::After), (2, When::Before), (2, When::After), (3, When::Before)] {
        let world = World::new(WhileWaiting::Hold);
        let mut lives = 0;
        let output = loop {
            lives += 1;
            assert!(lives < 100, "it gets nowhere");
            match world.live(writes, death) {
                Some(output) => break output,
                None => world.clock.advance(Duration::from_secs(31)),
            }
        };
        assert_eq!(output, expected());
        assert!(lives > 3, "{lives}");
        world.check_conversations();
        assert_eq!(world.effects.distinct(), 4);
    }
}
