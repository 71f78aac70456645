//! One rich workflow, crashed at every write and at every poll: it always finishes, and every effect counts once.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use kortyx_contracts::Text;
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, NodeResult, Workflow};
use serde_json::{Value, json};

use crate::{
    model_drive::{block_on, kill_after},
    support::{Drive, Wait, World, completed, text},
};

/// The effects that happened: by idempotency key the step, and how often.
#[derive(Clone, Default)]
struct Effects(Arc<Mutex<BTreeMap<String, (String, u32)>>>);

impl Effects {
    async fn step(&self, ctx: &NodeContext, id: &str) -> Result<(), NodeError> {
        let effect = || async {
            let mut effects = self.0.lock().unwrap();
            let place = format!("{}/{}/{id}", ctx.workflow(), ctx.node());
            effects.entry(ctx.idempotency_key(id)).or_insert((place, 0)).1 += 1;
            Ok::<_, NodeError>(())
        };
        ctx.step(id, effect).await
    }

    /// The steps, each with how many different effects it had, and how many effects happened more than once.
    fn counted(&self) -> (BTreeMap<String, u32>, usize) {
        let mut counted = BTreeMap::new();
        let effects = self.0.lock().unwrap();
        for (place, _) in effects.values() {
            *counted.entry(place.clone()).or_default() += 1;
        }
        (counted, effects.values().filter(|(_, times)| *times > 1).count())
    }
}

async fn collect(ctx: NodeContext, effects: Effects) -> NodeResult {
    effects.step(&ctx, "open").await?;
    let mut items = Vec::new();
    for _ in 0..2 {
        items.push(ctx.interrupt("item", Text::new("Which item?")).await?);
        effects.step(&ctx, "reserve").await?;
        ctx.text("reserved ").await;
    }
    Ok(NodeOutput::new().data("items", &items))
}

async fn review(ctx: NodeContext, effects: Effects, child: Workflow) -> NodeResult {
    let round = ctx.workflow_state("round", 0);
    round.set(&(round.get()? + 1))?;
    let (price, date, checked, ()) = tokio::try_join!(
        ctx.interrupt("price", Text::new("Price?")),
        ctx.interrupt("date", Text::new("Date?")),
        async { Ok(ctx.call("check", &child, json!(round.get()?)).await?) },
        effects.step(&ctx, "notify"),
    )?;
    let output = NodeOutput::new().data("price", &price).data("date", &date).data("checked", &checked);
    Ok(output.condition(if round.get()? < 2 { "again" } else { "good" }))
}

fn child(effects: &Effects) -> Workflow {
    let effects = effects.clone();
    let inspect = move |ctx: NodeContext| {
        let effects = effects.clone();
        async move {
            effects.step(&ctx, "inspect").await?;
            let verdict = ctx.interrupt("verdict", Text::new("Verdict?")).await?;
            effects.step(&ctx, "file").await?;
            Ok(NodeOutput::new().data("verdict", &verdict).data("round", &ctx.input::<u32>()?))
        }
    };
    Workflow::builder("inspection").node("inspect", inspect).build().unwrap()
}

/// Fan-out: two branches that step and ask, and a join.
fn shipping(effects: &Effects) -> Workflow {
    let node = |effects: &Effects, asks: bool| {
        let effects = effects.clone();
        move |ctx: NodeContext| {
            let effects = effects.clone();
            async move {
                effects.step(&ctx, "before").await?;
                let field = ctx.node().to_owned();
                let answer =
                    if asks { ctx.interrupt(&field, Text::new("Which way?")).await? } else { "none".to_owned() };
                effects.step(&ctx, "after").await?;
                Ok(NodeOutput::new().data(field, &answer))
            }
        }
    };
    Workflow::builder("shipping")
        .node("pack", node(effects, false))
        .node("carrier", node(effects, true))
        .node("invoice", node(effects, true))
        .node("send", node(effects, false))
        .edge("pack", "carrier")
        .edge("pack", "invoice")
        .edge("carrier", "send")
        .edge("invoice", "send")
        .build()
        .unwrap()
}

/// A loop over two nodes, two questions at once beside a child and a step, then a handoff.
fn order(effects: &Effects, child: &Workflow) -> Workflow {
    let (first, second, child) = (effects.clone(), effects.clone(), child.clone());
    Workflow::builder("order")
        .node("collect", move |ctx: NodeContext| collect(ctx, first.clone()))
        .node("review", move |ctx: NodeContext| review(ctx, second.clone(), child.clone()))
        .node("ship", |_| async { Ok(NodeOutput::new().transition_to("shipping")) })
        .edge("collect", "review")
        .edge_if("review", "collect", "again")
        .edge_if("review", "ship", "good")
        .build()
        .unwrap()
}

/// How the people answer at a pause.
#[derive(Clone, Copy)]
enum Answers {
    /// All questions, the last one first.
    All,
    /// The oldest question.
    First,
}

/// When the process dies. Later processes live.
#[derive(Clone, Copy)]
enum Death {
    AtWrite(u64),
    AtPoll(u64),
}

/// What became of a run.
struct Life {
    output: Value,
    effects: Effects,
    has_died: bool,
}

async fn live(answers: Answers, death: Death) -> Life {
    let effects = Effects::default();
    let child = child(&effects);
    let (order, shipping) = (order(&effects, &child), shipping(&effects));
    let world = World::new(&[&order, &shipping, &child]);
    *world.meddler.lock().unwrap() = Some(Box::new(|| Wait::Polls(1)));
    let polls = AtomicU64::new(u64::MAX);
    match death {
        Death::AtWrite(writes) => world.writes_left.store(writes, Ordering::SeqCst),
        Death::AtPoll(left) => polls.store(left, Ordering::SeqCst),
    }
    let mut has_died = false;
    loop {
        let is_durable = world.stored.lock().unwrap().snapshot.is_some();
        let mut execution = if is_durable { world.restore().unwrap() } else { world.start(&order, &Value::Null) };
        match kill_after(&polls, world.drive(&mut execution)).await {
            Drive::Waiting => answer(&world, answers),
            Drive::Crashed => {
                has_died = true;
                world.writes_left.store(u64::MAX, Ordering::SeqCst);
                polls.store(u64::MAX, Ordering::SeqCst);
            }
            end => return Life { output: completed(end), effects, has_died },
        }
    }
}

/// The answer to a question is its id and how often it was asked before.
fn answer(world: &World, answers: Answers) {
    let mut open = world.open();
    match answers {
        Answers::All => open.reverse(),
        Answers::First => open.truncate(1),
    }
    assert!(!open.is_empty(), "the run waits for nobody");
    for id in open {
        let times = world.stored.lock().unwrap().answers.iter().filter(|answer| answer.ask.ends_with(&id)).count();
        world.accept(&id, text(&format!("{id} {times}")));
    }
}

fn expected_output() -> Value {
    json!({
        "items": ["item 2", "item 3"],
        "price": "price 1",
        "date": "date 1",
        "checked": { "verdict": "verdict 1", "round": 2 },
        "pack": "none",
        "carrier": "carrier 0",
        "invoice": "invoice 0",
        "send": "none",
    })
}

fn expected_effects() -> BTreeMap<String, u32> {
    let mut expected = BTreeMap::from([
        ("order/collect/open".to_owned(), 2),
        ("order/collect/reserve".to_owned(), 4),
        ("order/review/notify".to_owned(), 2),
        ("inspection/inspect/inspect".to_owned(), 2),
        ("inspection/inspect/file".to_owned(), 2),
    ]);
    for node in ["pack", "carrier", "invoice", "send"] {
        expected.extend(["before", "after"].map(|step| (format!("shipping/{node}/{step}"), 1)));
    }
    expected
}

/// Dies at every point there is, one run for each; says how many there were.
fn die_everywhere(answers: Answers, death: fn(u64) -> Death) -> u64 {
    for point in 0.. {
        let life = block_on(live(answers, death(point)));
        assert_eq!(life.output, expected_output(), "output after a death at {point}");
        let (counted, repeated) = life.effects.counted();
        assert_eq!(counted, expected_effects(), "effects after a death at {point}");
        if !life.has_died {
            assert_eq!(repeated, 0, "no effect happens twice without a death");
            return point;
        }
        assert!(
            repeated <= 2,
            "{repeated} effects were repeated after a death at {point}, but two at most were at work"
        );
    }
    unreachable!()
}

#[test]
fn a_run_that_dies_at_any_write_finishes_with_every_effect_once() {
    for answers in [Answers::All, Answers::First] {
        let points = die_everywhere(answers, Death::AtWrite);
        assert!(points > 30, "only {points} writes");
    }
}

#[test]
fn a_run_that_dies_at_any_poll_finishes_with_every_effect_once() {
    for answers in [Answers::All, Answers::First] {
        let points = die_everywhere(answers, Death::AtPoll);
        assert!(points > 60, "only {points} polls");
    }
}
