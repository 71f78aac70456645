//! Several questions at once: each answer goes to its own, and to no other.

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::{join_all, try_join_all};
use kortyx_contracts::Text;
use kortyx_protocol::ResumeResponse;
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, Workflow};
use serde_json::{Value, json, value::RawValue};

use crate::{
    sample::{ANYTHING, Counter, Dice, asks, idle, named, one_node, slept, yes_no},
    support::{Drive, World, completed, select, text},
};

/// Asks `n` questions with equal text at once, each after a tracked delay.
fn many(n: usize) -> Workflow {
    one_node(move |ctx| async move {
        let ask = async |i: usize| {
            let delay = Duration::from_millis(Dice::new(i as u64).below(50) as u64);
            ctx.step("delay", || slept(delay)).await?;
            ctx.interrupt(&format!("q{i}"), Text::new("Same?")).await
        };
        let answers = try_join_all((0..n).map(ask)).await?;
        Ok(NodeOutput::new().data("answers", &answers))
    })
}

async fn shuffled_answers_arrive(n: usize, repeats: u64, at_once: usize) {
    let flow = many(n);
    for seed in 0..repeats {
        let world = World::new(&[&flow]);
        assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
        let open = world.open();
        assert_eq!(open.iter().collect::<std::collections::BTreeSet<_>>().len(), n, "{open:?}");
        let mut last = Drive::Waiting;
        for ids in Dice::new(seed).shuffled(open).chunks(at_once) {
            assert!(matches!(last, Drive::Waiting));
            for id in ids {
                world.accept(id, text(id));
            }
            last = world.resume().await;
        }
        let expected: Vec<String> = (0..n).map(|i| format!("q{i}")).collect();
        assert_eq!(completed(last), json!({ "answers": expected }), "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn b021_parallel_asks_get_their_own_answers() {
    shuffled_answers_arrive(2, 600, 1).await;
    shuffled_answers_arrive(3, 400, 2).await;
    shuffled_answers_arrive(50, 4, 17).await;
}

#[tokio::test(start_paused = true)]
async fn b021_parallel_asks_that_share_an_id_get_their_own_answers() {
    let flow = one_node(|ctx| async move {
        let answers = try_join_all((0..3).map(|_| ctx.interrupt("same", Text::new("Same?")))).await?;
        Ok(NodeOutput::new().data("answers", &answers))
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    let asks: Vec<String> = world.stored.lock().unwrap().open.iter().map(|question| question.ask.clone()).collect();
    assert_eq!(asks.iter().collect::<std::collections::BTreeSet<_>>().len(), 3, "{asks:?}");
    for answer in ["0", "1", "2"] {
        world.accept("same", text(answer));
    }
    assert_eq!(completed(world.resume().await), json!({"answers": ["0", "1", "2"]}));
}

#[tokio::test(start_paused = true)]
async fn b022_an_answer_is_used_by_one_question_of_a_child_only() {
    let child = named("child", |ctx| async move {
        let first = ctx.interrupt("first", yes_no("First?")).await?;
        let second = ctx.interrupt("second", yes_no("Second?")).await?;
        Ok(NodeOutput::new().data("both", &(first, second)))
    });
    let inner = child.clone();
    let parent = one_node(move |ctx| {
        let child = inner.clone();
        async move { Ok(NodeOutput::new().data("child", &ctx.call("child", &child, json!({})).await?)) }
    });
    let world = World::new(&[&parent, &child]);
    world.run(&parent, json!(null)).await;
    assert!(matches!(world.answer("first", select(&["yes"])).await, Drive::Waiting));
    assert_eq!(world.open(), ["second"]);
    let output = completed(world.answer("second", select(&["no"])).await);
    assert_eq!(output, json!({"child": {"both": ["yes", "no"]}}));
}

#[tokio::test(start_paused = true)]
async fn b023_going_on_with_nothing_never_uses_an_answer_again() {
    let flow = one_node(|ctx| async move {
        let first = ctx.interrupt("q", yes_no("First?")).await?;
        let second = ctx.interrupt("q", yes_no("Second?")).await?;
        Ok(NodeOutput::new().data("both", &(first, second)))
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    world.answer("q", select(&["yes"])).await;
    for _ in 0..5 {
        assert!(matches!(world.resume().await, Drive::Waiting));
        assert_eq!(world.open(), ["q"]);
    }
    assert_eq!(completed(world.answer("q", select(&["no"])).await), json!({"both": ["yes", "no"]}));
}

#[tokio::test(start_paused = true)]
async fn b024_an_answer_to_a_question_that_was_never_asked_changes_nothing() {
    let flow = one_node(asks("q"));
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    let known = world.stored.lock().unwrap().open[0].ask.clone();
    for ask in ["", "1", "1:0", "1:0:other", "1:1:q", "7:0:q", "x:0:q", "4294967296:0:q"] {
        let answers = &mut world.stored.lock().unwrap().answers;
        assert_ne!(ask, known);
        let seq = answers.len() as u64 + 1;
        answers.push(kortyx_runtime::DeliveredAnswer { seq, ask: ask.into(), response: select(&["no"]) });
    }
    assert!(matches!(world.resume().await, Drive::Waiting));
    assert_eq!(completed(world.answer("q", select(&["yes"])).await), json!({"q": "yes"}));
}

#[tokio::test(start_paused = true)]
async fn b025_an_answer_that_looks_like_a_routing_map_arrives_as_it_is() {
    let flow = one_node(|ctx| async move {
        let (a, b) =
            tokio::join!(ctx.interrupt("a", ANYTHING.ask(json!("A?"))), ctx.interrupt("b", ANYTHING.ask(json!("B?"))));
        Ok(NodeOutput::new().data("a", &a?).data("b", &b?))
    });
    for value in [json!({}), json!({"1": "v"}), json!({"0123456789abcdef0123456789abcdef": "v"}), json!({"b": "v"})] {
        let world = World::new(&[&flow]);
        world.run(&flow, json!(null)).await;
        let key = world.stored.lock().unwrap().open[1].ask.clone();
        let value = if value == json!({"b": "v"}) { json!({ key: "v" }) } else { value };
        assert!(matches!(world.answer("a", ResumeResponse::Value { value: value.clone() }).await, Drive::Waiting));
        assert_eq!(world.open(), ["b"], "nothing of {value} went to the other question");
        let output = completed(world.answer("b", ResumeResponse::Value { value: json!(1) }).await);
        assert_eq!(output, json!({"a": value, "b": 1}));
    }
}

/// Branches that ask several questions one after another.
fn branches(questions: &'static [usize]) -> Workflow {
    one_node(move |ctx| async move {
        let branch = async |b: usize| {
            let mut answers = Vec::new();
            for q in 0..questions[b] {
                answers.push(ctx.interrupt(&format!("{b}.{q}"), Text::new("?")).await?);
            }
            Ok::<_, NodeError>(answers)
        };
        let answers = try_join_all((0..questions.len()).map(branch)).await?;
        Ok(NodeOutput::new().data("answers", &answers))
    })
}

#[tokio::test(start_paused = true)]
async fn b027_exactly_the_unanswered_questions_are_open_after_each_answer() {
    let flow = branches(&[2, 3]);
    for seed in 0..50 {
        let (world, mut dice) = (World::new(&[&flow]), Dice::new(seed));
        let mut next = [0, 0];
        let mut last = world.run(&flow, json!(null)).await;
        while matches!(last, Drive::Waiting) {
            let waiting = (0..2).filter(|b| next[*b] < [2, 3][*b]);
            let expected: Vec<String> = waiting.map(|b| format!("{b}.{}", next[b])).collect();
            let mut open = world.open();
            open.sort();
            assert_eq!(open, expected, "seed {seed}");
            let id = open[dice.below(open.len())].clone();
            next[usize::from(id.starts_with('1'))] += 1;
            last = world.answer(&id, text(&id)).await;
        }
        assert_eq!(completed(last), json!({"answers": [["0.0", "0.1"], ["1.0", "1.1", "1.2"]]}));
    }
}

/// A graph whose branches each ask once and then join.
fn fan_out(branches: &[&'static str]) -> Workflow {
    let join = |ctx: NodeContext| async move {
        let all: Vec<Option<String>> =
            ["a", "b", "c"].iter().map(|field| ctx.optional_data(field)).collect::<Result<_, _>>()?;
        Ok(NodeOutput::new().data("joined", &all))
    };
    let mut builder = Workflow::builder("flow").node("start", idle).node("join", join);
    for branch in branches {
        builder = builder.node(*branch, asks(branch)).edge("start", *branch).edge(*branch, "join");
    }
    builder.build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn b029_a_join_waits_for_all_its_branches() {
    let flow = fan_out(&["a", "b"]);
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
    assert!(matches!(world.answer("a", select(&["yes"])).await, Drive::Waiting), "one branch still waits");
    let output = completed(world.answer("b", select(&["no"])).await);
    assert_eq!(output["joined"], json!(["yes", "no", null]));
}

#[tokio::test(start_paused = true)]
async fn b030_waiting_siblings_keep_their_saved_journal_to_the_byte() {
    let branch = |name: &'static str| {
        move |ctx: NodeContext| async move {
            ctx.step("work", || async { Ok::<_, NodeError>(name.repeat(3)) }).await?;
            let answer = ctx.interrupt(name, yes_no("?")).await?;
            Ok(NodeOutput::new().data(name, &answer))
        }
    };
    let mut builder = Workflow::builder("flow").node("start", idle);
    for name in ["a", "b", "c"] {
        builder = builder.node(name, branch(name)).edge("start", name);
    }
    let flow = builder.build().unwrap();
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    let saved = |world: &World| -> BTreeMap<String, String> {
        let snapshot = world.stored.lock().unwrap().snapshot.clone().unwrap();
        let state: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(&snapshot).unwrap();
        let activations: BTreeMap<String, Box<RawValue>> = serde_json::from_str(state["activations"].get()).unwrap();
        activations.into_iter().map(|(id, activation)| (id, activation.get().to_owned())).collect()
    };
    let before = saved(&world);
    assert_eq!(before.len(), 3);
    world.answer("b", select(&["yes"])).await;
    let after = saved(&world);
    assert_eq!(after.len(), 2);
    assert!(after.iter().all(|(id, activation)| before[id] == *activation), "{before:?} {after:?}");
}

#[tokio::test(start_paused = true)]
async fn b031_finished_branches_stay_finished_in_any_interleaving() {
    let (flow, entered) = (fan_out(&["a", "b", "c"]), Counter::default());
    let counted = {
        let entered = entered.clone();
        one_node(move |ctx| {
            let entered = entered.clone();
            async move {
                let branch = async |i: usize| {
                    ctx.interrupt(&format!("{i}"), Text::new("?")).await?;
                    ctx.step("done", || entered.effect()).await
                };
                let done = join_all((0..3).map(branch)).await.into_iter().collect::<Result<Vec<_>, _>>()?;
                Ok(NodeOutput::new().data("done", &done.len()))
            }
        })
    };
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let world = World::new(&[&flow]);
        world.run(&flow, json!(null)).await;
        let mut last = Drive::Waiting;
        for id in dice.shuffled(vec!["a", "b", "c"]) {
            assert!(matches!(last, Drive::Waiting), "seed {seed}");
            world.accept(id, select(&["yes"]));
            if dice.below(3) > 0 || world.open().is_empty() {
                last = world.resume().await;
            }
        }
        assert_eq!(completed(last)["joined"], json!(["yes", "yes", "yes"]), "seed {seed}");

        let (world, before) = (World::new(&[&counted]), entered.get());
        world.run(&counted, json!(null)).await;
        for (n, id) in dice.shuffled(vec!["0", "1", "2"]).into_iter().enumerate() {
            world.answer(id, text("x")).await;
            assert_eq!(entered.get() - before, n + 1, "each branch goes on once, as its answer comes");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn b033_answers_that_come_together_are_all_used() {
    let flow = one_node(|ctx| async move {
        let again = async {
            let first = ctx.interrupt("0", yes_no("?")).await?;
            let second = ctx.interrupt("0", yes_no("Again?")).await?;
            Ok::<_, NodeError>(format!("{first} {second}"))
        };
        let (a, b, c) = tokio::join!(again, ctx.interrupt("1", yes_no("?")), ctx.interrupt("2", yes_no("?")));
        Ok(NodeOutput::new().data("all", &(a?, b?, c?)))
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    for id in ["0", "1", "2"] {
        world.accept(id, select(&["yes"]));
    }
    assert!(matches!(world.resume().await, Drive::Waiting));
    assert_eq!(world.open(), ["0"], "the second and the third are answered");
    assert_eq!(completed(world.answer("0", select(&["no"])).await), json!({"all": ["yes no", "yes", "yes"]}));
}

#[tokio::test(start_paused = true)]
async fn b033_answers_for_a_child_and_its_parent_that_come_together_are_all_used() {
    let child = named("child", asks("inner"));
    let inner = child.clone();
    let parent = one_node(move |ctx| {
        let child = inner.clone();
        async move {
            let (child, outer) =
                tokio::join!(ctx.call("child", &child, json!({})), ctx.interrupt("outer", yes_no("Outer?")));
            Ok(NodeOutput::new().data("child", &child?).data("outer", &outer?))
        }
    });
    let world = World::new(&[&parent, &child]);
    world.run(&parent, json!(null)).await;
    world.accept("inner", select(&["yes"]));
    let output = completed(world.answer("outer", select(&["no"])).await);
    assert_eq!(output, json!({"child": {"inner": "yes"}, "outer": "no"}));
}

#[tokio::test(start_paused = true)]
async fn b034_every_open_question_is_listed_and_none_that_is_not() {
    for asking in [vec![2], vec![0, 2], vec![]] {
        let chosen = asking.clone();
        let flow = one_node(move |ctx| {
            let asking = chosen.clone();
            async move {
                let branch = async |i: usize| {
                    if asking.contains(&i) {
                        ctx.interrupt(&format!("{i}"), Text::new("?")).await
                    } else {
                        Ok(String::new())
                    }
                };
                try_join_all((0..3).map(branch)).await?;
                Ok(NodeOutput::new())
            }
        });
        let world = World::new(&[&flow]);
        let drive = world.run(&flow, json!(null)).await;
        assert_eq!(matches!(drive, Drive::Waiting), !asking.is_empty(), "{drive:?}");
        assert_eq!(world.open(), asking.iter().map(ToString::to_string).collect::<Vec<_>>());
    }
}

#[tokio::test(start_paused = true)]
async fn b036_one_of_several_answers_finishes_nothing_else_and_counts_once() {
    let acted = Counter::default();
    let counter = acted.clone();
    let flow = one_node(move |ctx| {
        let acted = counter.clone();
        async move {
            let gated = async |id: &str| {
                ctx.interrupt(id, yes_no("Act?")).await?;
                ctx.step("act", || acted.effect()).await
            };
            let (a, b) = tokio::join!(gated("a"), gated("b"));
            Ok(NodeOutput::new().data("acted", &(a?, b?)))
        }
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    assert!(matches!(world.answer("a", select(&["yes"])).await, Drive::Waiting));
    assert_eq!(acted.get(), 1);
    // The same answer once more, as a storage that delivers twice would bring it.
    let mut execution = world.restore().unwrap();
    execution.handle().deliver(world.stored.lock().unwrap().answers.clone());
    assert!(matches!(world.drive(&mut execution).await, Drive::Waiting));
    assert_eq!((acted.get(), world.open()), (1, vec!["b".to_owned()]));
    assert_eq!(completed(world.answer("b", select(&["yes"])).await), json!({"acted": [0, 1]}));
}

#[tokio::test(start_paused = true)]
async fn b038_a_paused_run_holds_no_other_run_back() {
    let flow = one_node(|ctx| async move {
        if ctx.input::<usize>()? == 42 {
            ctx.interrupt("q", yes_no("?")).await?;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        Ok(NodeOutput::new())
    });
    let runs = (0..100).map(|i| {
        let (world, flow) = (World::new(&[&flow]), flow.clone());
        tokio::spawn(async move { (i, world.run(&flow, json!(i)).await) })
    });
    for run in join_all(runs).await {
        let (i, drive) = run.unwrap();
        assert_eq!(matches!(drive, Drive::Waiting), i == 42, "run {i}: {drive:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn b005_b039_two_copies_of_a_paused_run_do_not_see_each_other() {
    let child = named("child", asks("inner"));
    let inner = child.clone();
    let parent = one_node(move |ctx| {
        let child = inner.clone();
        async move {
            let (child, outer) =
                tokio::join!(ctx.call("child", &child, json!({})), ctx.interrupt("outer", yes_no("Outer?")));
            Ok(NodeOutput::new().data("child", &child?).data("outer", &outer?))
        }
    });
    let first = World::new(&[&parent, &child]);
    first.run(&parent, json!(null)).await;
    let second = first.redeploy(&[&parent, &child]);
    let (mut one, mut two) = (first.restore().unwrap(), second.restore().unwrap());
    first.accept("inner", select(&["yes"]));
    first.accept("outer", select(&["yes"]));
    one.handle().deliver(first.stored.lock().unwrap().answers.clone());
    assert!(matches!(second.drive(&mut two).await, Drive::Waiting));
    let output = completed(first.drive(&mut one).await);
    assert_eq!(output, json!({"child": {"inner": "yes"}, "outer": "yes"}));
    assert_eq!(second.open(), ["outer", "inner"], "the copy still waits for its own answers");
    second.accept("inner", select(&["no"]));
    let output: Value = completed(second.answer("outer", select(&["no"])).await);
    assert_eq!(output, json!({"child": {"inner": "no"}, "outer": "no"}));
}

#[tokio::test(start_paused = true)]
async fn b176_the_next_question_is_open_as_soon_as_the_first_is_answered() {
    let flow = branches(&[2]);
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    assert_eq!(world.open(), ["0.0"]);
    assert!(matches!(world.answer("0.0", text("x")).await, Drive::Waiting));
    assert_eq!(world.open(), ["0.1"]);
}

#[tokio::test(start_paused = true)]
async fn b110_the_loser_of_a_race_is_closed_and_the_run_ends() {
    let flow = one_node(|ctx| async move {
        let first = tokio::select! {
            a = ctx.interrupt("a", yes_no("A?")) => a?,
            b = ctx.interrupt("b", yes_no("B?")) => b?,
        };
        ctx.step("after", || async { Ok::<_, NodeError>(()) }).await?;
        Ok(NodeOutput::new().data("first", &first))
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    assert_eq!(completed(world.answer("a", select(&["yes"])).await), json!({"first": "yes"}));
    assert_eq!(world.stored.lock().unwrap().superseded.len(), 1, "storage was told before the run ended");
    assert!(world.open().is_empty());
}
