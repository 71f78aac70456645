//! K2: every answer reaches the question that it was given to, and no other.

use futures_util::future::{join_all, try_join_all};
use kortyx::{
    Answer, ExecuteOptions, InterruptContract, NodeError, NodeOutput, RefusalReason, Text, Workflow,
    protocol::{ExecutionResult, FailureCode, RequestId, ResumeResponse},
    store::Scope,
};
use kortyx_tests::{Counter, World, approve_or_decline, code, data, handle, one_node, only, questions, reason, with};
use serde_json::{Value, json};
use tokio::{join, task::yield_now};

/// Numbers without any order to see, always the same ones.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        (1..items.len()).rev().for_each(|at| items.swap(at, self.roll(at + 1)));
    }
}

/// Asks `n` questions at once, each after a step of its own.
fn parallel_asks(n: usize, seed: u64) -> Workflow {
    one_node("parallel", move |ctx| async move {
        let mut dice = Dice(seed);
        let branches = (0..n).map(|branch| {
            let (delay, ctx) = (dice.roll(8), ctx.clone());
            async move {
                let delayed = || async move {
                    for _ in 0..delay {
                        yield_now().await;
                    }
                    Ok::<_, NodeError>(())
                };
                ctx.step(&format!("delay-{branch}"), delayed).await?;
                ctx.interrupt(&format!("ask-{branch}"), Text::new(format!("Branch {branch}?"))).await
            }
        });
        let answers = try_join_all(branches).await?;
        Ok(NodeOutput::new().data("answers", &answers))
    })
}

#[tokio::test]
async fn b021_parallel_asks_get_their_own_answers() {
    let world = World::new();
    let mut dice = Dice(21);
    for (n, rounds) in [(2, 30), (3, 30), (50, 1)] {
        for round in 0..rounds {
            let workflow = parallel_asks(n, round);
            let agent = world.agent(&workflow).await;
            let mut result = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
            let first: Vec<_> = result.interrupts().to_vec();
            let mut ids: Vec<_> = first.iter().map(|question| question.request_id.clone()).collect();
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), n, "ids are distinct");

            let mut order: Vec<_> = (0..n).collect();
            dice.shuffle(&mut order);
            for branch in order {
                // The handle from the first pause stays good over every replay.
                let asked = first.iter().find(|question| question.input.id == Some(format!("ask-{branch}"))).unwrap();
                let answer = ResumeResponse::text(format!("answer {branch}"));
                result = agent.resume(&asked.resume, answer).await.unwrap();
            }
            let own: Vec<_> = (0..n).map(|branch| format!("answer {branch}")).collect();
            assert_eq!(data(result)["answers"], json!(own));
        }
    }
}

/// A child that asks twice, one after the other.
fn asks_twice() -> Workflow {
    one_node("child", |ctx| async move {
        let first = ctx.interrupt("first", Text::new("First?")).await?;
        let second = ctx.interrupt("second", Text::new("Second?")).await?;
        Ok(NodeOutput::new().data("answers", &[first, second]))
    })
}

#[tokio::test]
async fn b022_an_answer_in_a_child_is_used_for_one_question_only() {
    let world = World::new();
    let child = asks_twice();
    let parent = one_node(
        "parent",
        with(child.clone(), |ctx, child| async move {
            let output: Value = ctx.call("child", &child, json!({})).await?;
            Ok(NodeOutput::new().data("child", &output))
        }),
    );
    let agent = world.builder().await.workflow(&child).workflow(&parent).build().await.unwrap();
    let first = agent.execute(&parent, json!({}), ExecuteOptions::new()).await.unwrap();
    let second = agent.resume(&only(&first).resume, ResumeResponse::text("one")).await.unwrap();
    assert_eq!(questions(&second), ["second"]);
    let result = agent.resume(&only(&second).resume, ResumeResponse::text("two")).await.unwrap();
    assert_eq!(data(result)["child"]["answers"], json!(["one", "two"]));
}

#[tokio::test]
async fn b023_going_on_with_nothing_keeps_the_run_where_it_waits() {
    let world = World::new();
    let workflow = asks_twice();
    let agent = world.agent(&workflow).await;
    let first = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let answered = only(&first).resume;
    agent.resume(&answered, ResumeResponse::text("one")).await.unwrap();

    let mut worker = agent.worker();
    for _ in 0..3 {
        assert_eq!(code(agent.submit(Vec::new()).await), FailureCode::InvalidRequest);
        assert_eq!(code(agent.resume_batch([]).await), FailureCode::InvalidRequest);
        let pass = worker.pass().await.unwrap();
        assert_eq!((pass.recovered, pass.defaulted), (0, 0));
        let repeated = agent.resume(&answered, ResumeResponse::text("one")).await.unwrap();
        assert_eq!(questions(&repeated), ["second"]);
    }
}

#[tokio::test]
async fn b024_an_unknown_id_is_named_and_nothing_is_applied() {
    let world = World::new();
    let workflow = parallel_asks(2, 0);
    let agent = world.agent(&workflow).await;
    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let scope = Scope::session(paused.session_id().clone());
    let (known, unknown) = (handle(&paused, "ask-0").request_id, RequestId::new("ticket-4711").unwrap());
    let answer = |id: &RequestId| (id.clone(), ResumeResponse::text("x"));

    let alone = agent.answer_batch([answer(&unknown)], scope.clone(), None).await;
    assert_eq!(reason(alone), RefusalReason::Unknown);
    let refused = agent.answer_batch([answer(&known), answer(&unknown)], scope.clone(), None).await.unwrap_err();
    let kortyx::OrchestratorError::Refused(refused) = refused else { panic!("{refused:?}") };
    let named: Vec<_> = refused.iter().map(|refused| (refused.index, &refused.request_id)).collect();
    assert_eq!(named, [(1, &unknown)]);

    let question = agent.get_interrupt(&known, &scope).await.unwrap().unwrap();
    assert_eq!(question.status.as_str(), "pending", "the known one was not applied");
}

#[tokio::test]
async fn b025_an_object_is_an_answer_and_never_a_map_of_answers() {
    const ANYTHING: InterruptContract<Value, Value> =
        InterruptContract::new("anything").description("Takes any value").schema_id("test.any").version("1");
    let world = World::new();
    let workflow = one_node("objects", |ctx| async move {
        let (a, b) = ctx.interrupt_all((("a", ANYTHING.ask(Value::Null)), ("b", ANYTHING.ask(Value::Null)))).await?;
        Ok(NodeOutput::new().data("a", &a).data("b", &b))
    });
    let agent = world.agent(&workflow).await;
    for shape in [json!({}), json!({"1": "v"}), json!({"0123456789abcdef0123456789abcdef": "v"}), json!("both ids")] {
        let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
        let (a, b) = (handle(&paused, "a"), handle(&paused, "b"));
        let shape = match &shape {
            Value::String(_) => json!({a.request_id.as_str(): 1, b.request_id.as_str(): 2}),
            other => other.clone(),
        };
        let half = agent.resume(&a, ResumeResponse::value(shape.clone())).await.unwrap();
        assert_eq!(questions(&half), ["b"]);
        let result = agent.resume(&b, ResumeResponse::value(json!(0))).await.unwrap();
        assert_eq!(data(result)["a"], shape, "verbatim");
    }
}

#[tokio::test]
async fn b027_the_open_questions_are_exactly_the_unanswered_ones() {
    let world = World::new();
    let workflow = Workflow::builder("branches")
        .node("start", |_| async { Ok(NodeOutput::new()) })
        .node("two", |ctx| async move {
            join_all(["a", "b"].map(|id| ctx.interrupt(id, Text::new("?")))).await;
            Ok(NodeOutput::new())
        })
        .node("three", |ctx| async move {
            join_all(["c", "d", "e"].map(|id| ctx.interrupt(id, Text::new("?")))).await;
            Ok(NodeOutput::new())
        })
        .edge("start", "two")
        .edge("start", "three")
        .build()
        .unwrap();
    let agent = world.agent(&workflow).await;
    let mut dice = Dice(27);
    for _ in 0..8 {
        let mut result = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
        let mut model = vec!["a", "b", "c", "d", "e"];
        while !model.is_empty() {
            assert_eq!(questions(&result), model);
            let next = model.remove(dice.roll(model.len()));
            result = agent.resume(&handle(&result, next), ResumeResponse::text("x")).await.unwrap();
        }
        assert_eq!(result.status(), "completed");
    }
}

/// Three elements; the first asks again after its first answer.
fn three_elements(consumed: &Counter) -> Workflow {
    let child = one_node("child", |ctx| async move {
        let answer = ctx.interrupt("third", Text::new("Third?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    Workflow::builder("elements")
        .node(
            "node",
            with((child, consumed.clone()), |ctx, (child, consumed)| async move {
                let first = async {
                    ctx.interrupt("first", Text::new("First?")).await?;
                    ctx.interrupt("again", Text::new("Once more?")).await
                };
                let second = async {
                    let answer = ctx.interrupt("second", Text::new("Second?")).await?;
                    ctx.step("second", || async { Ok::<_, NodeError>(consumed.hit()) }).await?;
                    Ok::<_, NodeError>(answer)
                };
                let third = async {
                    let output: Value = ctx.call("child", &child, json!({})).await?;
                    ctx.step("third", || async { Ok::<_, NodeError>(consumed.hit()) }).await?;
                    Ok::<_, NodeError>(output["answer"].clone())
                };
                let (first, second, third) = join!(first, second, third);
                Ok(NodeOutput::new().data("answers", &json!([first?, second?, third?])))
            }),
        )
        .build()
        .unwrap()
}

#[tokio::test]
async fn b033_answers_given_together_are_all_used_although_the_first_asks_again() {
    let world = World::new();
    let consumed = Counter::new();
    let workflow = three_elements(&consumed);
    let child = one_node("child", |ctx| async move {
        let answer = ctx.interrupt("third", Text::new("Third?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let agent = world.builder().await.workflow(&child).workflow(&workflow).build().await.unwrap();
    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let batch = ["first", "second", "third"].map(|id| (handle(&paused, id), ResumeResponse::text(id)));

    let after = agent.resume_batch(batch).await.unwrap();
    assert_eq!((questions(&after), consumed.count()), (vec!["again".to_owned()], 2));
    let result = agent.resume(&only(&after).resume, ResumeResponse::text("again")).await.unwrap();
    assert_eq!(data(result)["answers"], json!(["again", "second", "third"]));
    assert_eq!(consumed.count(), 2);
}

#[tokio::test]
async fn b036_approving_one_of_two_strands_nothing_and_repeating_it_does_nothing() {
    let world = World::new();
    let acts = [Counter::new(), Counter::new()];
    let workflow = one_node(
        "two",
        with(acts.clone(), |ctx, acts| async move {
            let gate = async |at: usize| {
                ctx.interrupt(&format!("ask-{at}"), approve_or_decline("Act?")).await?;
                ctx.step(&format!("act-{at}"), || async { Ok::<_, NodeError>(acts[at].hit()) }).await
            };
            let (first, second) = join!(gate(0), gate(1));
            first.and(second)?;
            Ok(NodeOutput::new())
        }),
    );
    let agent = world.agent(&workflow).await;
    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let approve = async |id: &str| -> ExecutionResult {
        agent.resume(&handle(&paused, id), ResumeResponse::select(["approve"])).await.unwrap()
    };
    let counts = || [acts[0].count(), acts[1].count()];

    for id in ["ask-0", "ask-0"] {
        assert_eq!((questions(&approve(id).await), counts()), (vec!["ask-1".to_owned()], [1, 0]));
    }
    assert_eq!((approve("ask-1").await.status(), counts()), ("completed", [1, 1]));
    assert_eq!((approve("ask-0").await.status(), counts()), ("completed", [1, 1]));
}

#[tokio::test]
async fn b038_pausing_one_run_pauses_no_other() {
    let world = World::new();
    let workflow = one_node("shared", |ctx| async move {
        let number: u64 = ctx.input()?;
        if number == 42 {
            ctx.interrupt("gate", approve_or_decline("Go on?")).await?;
        }
        Ok(NodeOutput::new().data("number", &number))
    });
    let agent = world.agent(&workflow).await;
    let runs = (0..100).map(|number| agent.execute(&workflow, json!(number), ExecuteOptions::new()));
    let results: Vec<_> = join_all(runs).await.into_iter().map(Result::unwrap).collect();

    let waiting: Vec<_> = (0..100).filter(|number| results[*number].status() == "suspended").collect();
    assert_eq!(waiting, [42]);
    assert!(results.iter().all(|result| matches!(result.status(), "completed" | "suspended")));
    let answer = Answer::with_handle(&only(&results[42]).resume, ResumeResponse::select(["approve"]));
    assert_eq!(data(agent.respond(vec![answer]).await.unwrap())["number"], 42);
}
