//! Random trees of steps, branches and children under random limits, answers and crashes: what is counted and asked is what the tree says.

use std::sync::{Arc, OnceLock};

use futures_util::future::{BoxFuture, try_join_all};
use kortyx_protocol::FailureCode;
use kortyx_runtime::{
    CHILD_CALLS, Counter, Draw, NodeContext, NodeError, NodeOutput, OpenQuestion, Outcome, TOKENS, Workflow,
};
use proptest::{collection::vec, prelude::*, test_runner::TestCaseError};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    model_drive::{Run, Tape, block_on, check},
    model_probe::Probe,
    shared_limits::{ROUNDS, said},
    support::{Drive, completed, select},
};

/// What a node does.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Part {
    /// A step that takes a round and uses tokens.
    Round(u64),
    Seq(Vec<Part>),
    Join(Vec<Part>),
    Child(Box<Part>),
}

/// What a tree uses up in all.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
struct Total {
    rounds: u64,
    tokens: u64,
    calls: u64,
}

impl Part {
    fn total(&self) -> Total {
        match self {
            Self::Round(tokens) => Total { rounds: 1, tokens: *tokens, calls: 0 },
            Self::Seq(parts) | Self::Join(parts) => {
                parts.iter().map(Self::total).fold(Total::default(), |all, part| Total {
                    rounds: all.rounds + part.rounds,
                    tokens: all.tokens + part.tokens,
                    calls: all.calls + part.calls,
                })
            }
            Self::Child(part) => {
                let inner = part.total();
                Total { calls: inner.calls + 1, ..inner }
            }
        }
    }
}

#[derive(Debug, Clone)]
struct Case {
    parts: Vec<Part>,
    limits: Total,
    seed: u64,
    tape: Vec<u8>,
    /// The so-manieth question, if there are so many, is answered with no.
    stop_at: Option<usize>,
}

fn cases() -> impl Strategy<Value = Case> {
    let leaf = (0_u64..40).prop_map(Part::Round);
    let part = leaf.prop_recursive(4, 14, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 1..4).prop_map(Part::Seq),
            vec(inner.clone(), 1..4).prop_map(Part::Join),
            inner.prop_map(|part| Part::Child(Box::new(part))),
        ]
    });
    let limits = (1_u64..6, 1_u64..100, 1_u64..4).prop_map(|(rounds, tokens, calls)| Total { rounds, tokens, calls });
    let stop_at = prop_oneof![3 => Just(None), 1 => (0_usize..3).prop_map(Some)];
    (vec(part, 1..3), limits, any::<u64>(), vec(any::<u8>(), 0..60), stop_at)
        .prop_map(|(parts, limits, seed, tape, stop_at)| Case { parts, limits, seed, tape, stop_at })
}

/// Plays a part. Each place in the tree has ids of its own.
fn play(ctx: NodeContext, part: Part, at: String) -> BoxFuture<'static, Result<(), NodeError>> {
    Box::pin(async move {
        match part {
            Part::Round(tokens) => {
                let inner = ctx.clone();
                let work = move || async move {
                    for counter in [ROUNDS, CHILD_CALLS] {
                        let level = inner.level(counter)?;
                        assert!(level.allowed.is_none_or(|allowed| level.used <= allowed), "{level:?}");
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(tokens % 3)).await;
                    inner.spend(TOKENS, tokens)
                };
                ctx.step_within(&at, &[Draw::One(ROUNDS), Draw::Measured(TOKENS)], work).await
            }
            Part::Seq(parts) => {
                for (place, part) in parts.into_iter().enumerate() {
                    play(ctx.clone(), part, format!("{at}.{place}")).await?;
                }
                Ok(())
            }
            Part::Join(parts) => {
                let all = parts.into_iter().enumerate();
                let all = all.map(|(place, part)| play(ctx.clone(), part, format!("{at}.{place}")));
                try_join_all(all).await.map(drop)
            }
            Part::Child(part) => {
                ctx.call(&at, child().get().expect("it is built"), json!({ "part": part })).await?;
                Ok(())
            }
        }
    })
}

/// The workflow of every child; children may have children.
fn child() -> &'static OnceLock<Workflow> {
    static CHILD: OnceLock<Workflow> = OnceLock::new();
    CHILD.get_or_init(|| {
        let node = |ctx: NodeContext| async move {
            let input: std::collections::BTreeMap<String, Part> = ctx.input()?;
            play(ctx, input["part"].clone(), "c".into()).await?;
            Ok(NodeOutput::new())
        };
        Workflow::builder("child").node("play", node).build().unwrap()
    });
    &CHILD
}

/// A graph whose branches play a part each; then their join tells the counts.
fn tree(case: &Case) -> Workflow {
    let total = |ctx: NodeContext| async move {
        let used = |counter: Counter| ctx.level(counter).map(|level| level.used);
        Ok(NodeOutput::new().data("used", &[used(ROUNDS)?, used(TOKENS)?, used(CHILD_CALLS)?]))
    };
    let mut flow = Workflow::builder("flow").node("start", crate::sample::idle).node("total", total);
    for (place, part) in case.parts.iter().enumerate() {
        let part = part.clone();
        let node = move |ctx: NodeContext| {
            let part = part.clone();
            async move {
                play(ctx, part, "n".into()).await?;
                Ok(NodeOutput::new())
            }
        };
        let name = format!("branch{place}");
        flow = flow.node(name.clone(), node).edge("start", name.clone()).edge(name, "total");
    }
    let Total { rounds, tokens, calls } = case.limits;
    flow.limit(ROUNDS, rounds).limit(TOKENS, tokens).limit(CHILD_CALLS, calls).build().unwrap()
}

#[test]
fn random_trees_use_and_ask_what_they_should() {
    child();
    check(250, &cases(), |case| block_on(agrees(case)));
}

async fn agrees(case: Case) -> Result<(), TestCaseError> {
    let flow = tree(&case);
    let workflows = [flow, child().get().expect("it is built").clone()];
    let asked = std::sync::Mutex::new(Vec::<String>::new());
    let asked = Arc::new(asked);
    let (answers, stop_at) = (asked.clone(), case.stop_at);
    let respond = move |question: &OpenQuestion| {
        let mut answers = answers.lock().unwrap();
        let is_last = Some(answers.len()) == stop_at;
        answers.push(question.question.question().unwrap_or_default().to_owned());
        select(&[if is_last { "stop" } else { "continue" }])
    };
    let probe = Arc::new(Probe::new(case.seed));
    let mut run = Run::new(&workflows, probe, Tape::new(case.tape.clone()), respond);
    let one_each = |world: &crate::support::World| {
        let stored = world.stored.lock().unwrap();
        let mut open: Vec<_> = stored.open.iter().map(|question| question.question.question().unwrap()).collect();
        let count = open.len();
        open.sort_unstable();
        open.dedup_by_key(|text| counter_of(text));
        prop_assert_eq!(open.len(), count, "one question for each limit: {:?}", open);
        Ok(())
    };
    let end = run.finish(one_each).await?;
    let asked = asked.lock().unwrap().clone();
    if case.stop_at.is_some_and(|at| at < asked.len()) {
        let Drive::Ended(Outcome::Failed(failure)) = end else {
            return Err(TestCaseError::fail(format!("a person said no: {end:?}")));
        };
        prop_assert_eq!(failure.code, FailureCode::LimitReached);
        return Ok(());
    }
    let total = Part::Join(case.parts.clone()).total();
    prop_assert_eq!(completed(end), json!({"used": [total.rounds, total.tokens, total.calls]}));
    let count = |counter: &str| asked.iter().filter(|text| counter_of(text) == counter).count() as u64;
    let due = |total: u64, limit: u64| total.saturating_sub(1) / limit;
    prop_assert_eq!(count("rounds"), due(total.rounds, case.limits.rounds));
    prop_assert_eq!(count("child calls"), due(total.calls, case.limits.calls));
    prop_assert!(count("tokens") <= due(total.tokens, case.limits.tokens));
    for (limit, maximum, consumed) in said(&run.world) {
        prop_assert!(consumed >= maximum && (limit == "max_tokens" || consumed == maximum), "{consumed} of {maximum}");
    }
    Ok(())
}

/// What a question is about: "The run has used N … of M that it may."
fn counter_of(question: &str) -> String {
    let words: Vec<&str> = question.split(' ').skip(5).take_while(|word| *word != "of").collect();
    words.join(" ")
}
