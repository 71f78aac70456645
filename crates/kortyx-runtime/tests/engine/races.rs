//! Races: what won once wins in every replay, however long the node waits for what the engine does not know of.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::try_join_all;
use kortyx_contracts::Text;
use kortyx_runtime::{NodeError, NodeOutput};
use serde_json::json;

use crate::{
    sample::{Counter, Dice, one_node, slept, yes_no},
    support::{Drive, World, completed, select, text},
};

/// Waits for a random time that the engine does not know of, another in every pass.
async fn dawdle(seed: &AtomicU64) {
    let millis = Dice::new(seed.fetch_add(1, Ordering::SeqCst)).below(40);
    tokio::time::sleep(Duration::from_millis(millis as u64)).await;
}

#[tokio::test(start_paused = true)]
async fn b055_a_race_between_an_answer_and_a_timer_has_one_winner_for_ever() {
    let seed = Arc::new(AtomicU64::new(1));
    let shared = seed.clone();
    let flow = one_node(move |ctx| {
        let seed = shared.clone();
        async move {
            let ask = async {
                dawdle(&seed).await;
                ctx.interrupt("ask", Text::new("?")).await
            };
            let timer = async {
                dawdle(&seed).await;
                let wait = || slept(Duration::from_millis(20));
                ctx.step("timer", wait).await
            };
            let winner = tokio::select! { answer = ask => answer?, ended = timer => { ended?; "timer".into() } };
            let last = ctx.interrupt("last", Text::new("?")).await?;
            Ok(NodeOutput::new().data("winner", &winner).data("last", &last))
        }
    });
    let (mut answers, mut timers) = (0, 0);
    for round in 0..150 {
        seed.store(round * 1000, Ordering::SeqCst);
        let world = World::new(&[&flow]);
        let mut execution = world.start(&flow, &json!(null));
        world.drive(&mut execution).await;
        // Either the timer has won, or the question was asked and answered first.
        if world.open() == ["ask"] {
            world.answer("ask", text("answer")).await;
        }
        assert_eq!(world.open(), ["last"], "round {round}");
        let first = world.redeploy(&[&flow]);
        let output = completed(first.answer("last", text("x")).await);
        match output["winner"].as_str().unwrap() {
            "timer" => timers += 1,
            _ => answers += 1,
        }
        for _ in 0..3 {
            assert_eq!(completed(first.resume().await), output, "round {round}: replay has the same winner");
        }
    }
    assert!(timers > 0 && answers + timers == 150, "{answers} {timers}");
}

#[tokio::test(start_paused = true)]
async fn b055_any_number_of_answers_against_a_timer_is_replayed_alike() {
    let seed = Arc::new(AtomicU64::new(1));
    let shared = seed.clone();
    let flow = one_node(move |ctx| {
        let seed = shared.clone();
        async move {
            let all = try_join_all((0..4).map(async |i| {
                dawdle(&seed).await;
                ctx.interrupt(&format!("{i}"), Text::new("?")).await
            }));
            let timer = ctx.step("timer", || slept(Duration::from_millis(30)));
            let (all, timer) = tokio::join!(all, timer);
            timer?;
            Ok(NodeOutput::new().data("all", &all?))
        }
    });
    for round in 0..50 {
        seed.store(round * 1000, Ordering::SeqCst);
        let world = World::new(&[&flow]);
        let mut last = world.run(&flow, json!(null)).await;
        let mut dice = Dice::new(round);
        while matches!(last, Drive::Waiting) {
            let open = world.open();
            let id = open[dice.below(open.len())].clone();
            last = world.answer(&id, text(&id)).await;
        }
        assert_eq!(completed(last), json!({"all": ["0", "1", "2", "3"]}), "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn b056_adjacent_answers_keep_their_order_and_their_consumers() {
    let seed = Arc::new(AtomicU64::new(1));
    let shared = seed.clone();
    let flow = one_node(move |ctx| {
        let seed = shared.clone();
        async move {
            let order = std::sync::Mutex::new(Vec::new());
            let branch = async |id: &'static str| {
                dawdle(&seed).await;
                let answer = ctx.interrupt(id, Text::new("?")).await?;
                order.lock().unwrap().push(answer.clone());
                ctx.step(id, || async { Ok::<_, NodeError>(answer) }).await
            };
            let (a, b) = tokio::join!(branch("a"), branch("b"));
            Ok(NodeOutput::new().data("results", &(a?, b?)).data("order", &order.into_inner().unwrap()))
        }
    });
    for round in 0..100 {
        seed.store(round * 1000, Ordering::SeqCst);
        let world = World::new(&[&flow]);
        world.run(&flow, json!(null)).await;
        let mut order = Vec::new();
        let mut last = Drive::Waiting;
        while matches!(last, Drive::Waiting) {
            for id in world.open().into_iter().rev() {
                world.accept(&id, text(&id));
                order.push(id);
            }
            last = world.resume().await;
        }
        let output = completed(last);
        assert_eq!(output, json!({"results": ["a", "b"], "order": order}), "round {round}");
        assert_eq!(completed(world.resume().await), output, "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn b057_an_answer_never_goes_to_a_question_that_has_lost() {
    let flow = one_node(|ctx| async move {
        let mut timeouts = 0;
        loop {
            let timer = ctx.step("timer", || async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok::<_, NodeError>(())
            });
            tokio::select! {
                biased;
                answer = ctx.interrupt("q", Text::new("?")) => {
                    return Ok(NodeOutput::new().data("answer", &answer?).data("timeouts", &timeouts));
                }
                ended = timer => ended?,
            }
            timeouts += 1;
            if timeouts == 2 {
                let answer = ctx.interrupt("q", Text::new("For good?")).await?;
                return Ok(NodeOutput::new().data("answer", &answer).data("timeouts", &timeouts));
            }
        }
    });
    let world = World::new(&[&flow]);
    assert!(matches!(world.run(&flow, json!(null)).await, Drive::Waiting));
    assert_eq!(world.open(), ["q"], "the two that lost were never published");
    assert_eq!(completed(world.answer("q", text("x")).await), json!({"answer": "x", "timeouts": 2}));
}

#[tokio::test(start_paused = true)]
async fn a_step_that_lost_a_race_stays_lost_in_every_replay() {
    let started = Counter::default();
    let counter = started.clone();
    let flow = one_node(move |ctx| {
        let started = counter.clone();
        async move {
            let slow = ctx.step("slow", || async {
                started.up();
                tokio::time::sleep(Duration::from_mins(1)).await;
                Ok::<_, NodeError>("slow".to_owned())
            });
            let winner = tokio::select! {
                won = slow => won?,
                () = tokio::time::sleep(Duration::from_secs(1)) => "timeout".into(),
            };
            ctx.interrupt("q", yes_no("?")).await?;
            Ok(NodeOutput::new().data("winner", &winner))
        }
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    assert_eq!(completed(world.answer("q", select(&["yes"])).await), json!({"winner": "timeout"}));
    completed(world.resume().await);
    assert_eq!(started.get(), 1, "replay leaves it pending");
}

#[tokio::test(start_paused = true)]
async fn an_answer_goes_on_to_a_node_that_waits_for_something_else_first() {
    let flow = one_node(|ctx| async move {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let both = async |id: &'static str| {
            tokio::time::sleep(Duration::from_secs(id.len() as u64)).await;
            ctx.interrupt(id, yes_no("?")).await
        };
        let hold = ctx.step("hold", || slept(Duration::from_secs(9)));
        let (a, b, hold) = tokio::join!(both("a"), both("bbbb"), hold);
        hold?;
        Ok(NodeOutput::new().data("both", &(a?, b?)))
    });
    let world = World::new(&[&flow]);
    world.run(&flow, json!(null)).await;
    assert_eq!(world.open(), ["a", "bbbb"]);
    // Now nothing holds: `a` alone is asked again at first, and the answer is for the other.
    assert!(matches!(world.answer("bbbb", select(&["no"])).await, Drive::Waiting));
    assert_eq!(world.open(), ["a"]);
    assert!(world.stored.lock().unwrap().superseded.is_empty());
    assert_eq!(completed(world.answer("a", select(&["yes"])).await), json!({"both": ["yes", "no"]}));
}
