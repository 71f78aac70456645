//! K1: the action behind a gate runs with the decision, or not at all.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use kortyx::{
    ExecuteOptions, InterruptContract, NodeContext, NodeError, NodeOutput, NodeResult, OrchestratorError, Workflow,
    protocol::{FailureCode, RawJson, ResumeResponse},
    store::{RunStatus, Scope},
};
use kortyx_tests::{Counter, World, approve_or_decline, code, data, eventually, failure, one_node, only, with};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Asks when the request's policy says so, and acts.
async fn guarded(ctx: NodeContext, acts: Counter) -> NodeResult {
    let context: Value = ctx.context()?;
    if context["policy"] == "ask" {
        let decision = ctx.interrupt("gate", approve_or_decline("Act?")).await?;
        if decision != "approve" {
            return Ok(NodeOutput::new().data("outcome", "denied"));
        }
    }
    ctx.step("act", || async { Ok::<_, NodeError>(acts.hit()) }).await?;
    Ok(NodeOutput::new().data("outcome", "done"))
}

#[tokio::test]
async fn b001_a_declined_action_does_not_run_although_the_policy_is_gone_at_resume() {
    let world = World::new();
    let acts = Counter::new();
    let workflow = one_node("act", with(acts.clone(), guarded));
    let first = world.agent(&workflow).await;
    let paused = first.execute(&workflow, json!({}), ExecuteOptions::new().context("policy", "ask")).await.unwrap();
    drop(first);

    // The other process knows no policy: an answer carries none, and the run brings its own.
    let second = world.agent(&workflow).await;
    let result = second.resume(&only(&paused).resume, ResumeResponse::select(["decline"])).await.unwrap();

    assert_eq!(data(result)["outcome"], "denied");
    assert_eq!(acts.count(), 0);
}

/// A gate, and an action that never looks at the verdict.
fn gate_before_a_careless_action(acts: &Counter) -> Workflow {
    Workflow::builder("careless")
        .node("gate", |ctx: NodeContext| async move {
            let decision = ctx.interrupt("gate", approve_or_decline("Act?")).await?;
            Ok(NodeOutput::new().data("decision", &decision).condition(decision))
        })
        .node(
            "act",
            with(acts.clone(), |_, acts| async move {
                acts.hit();
                Ok(NodeOutput::new())
            }),
        )
        .node("refuse", |_| async { Ok(NodeOutput::new().data("outcome", "denied")) })
        .edge_if("gate", "act", "approve")
        .otherwise("gate", "refuse")
        .build()
        .unwrap()
}

/// There are no tools yet; the border that enforces a verdict is the graph.
#[tokio::test]
async fn b002_a_declined_choice_never_enters_the_gated_node() {
    let world = World::new();
    let acts = Counter::new();
    let workflow = gate_before_a_careless_action(&acts);
    let agent = world.agent(&workflow).await;

    for (verdict, ran) in [("decline", 0), ("approve", 1)] {
        let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
        let result = agent.resume(&only(&paused).resume, ResumeResponse::select([verdict])).await.unwrap();
        assert_eq!(data(result)["decision"], verdict);
        assert_eq!(acts.count(), ran, "{verdict}");
    }
}

/// Copies of one pause come with forks, whose independence the conformance suite proves (`b039`, `b157`); what one process can
/// make by itself is a twin: the same workflow, input, session and question.
#[tokio::test]
async fn b005_approving_one_run_does_not_approve_its_twin() {
    let world = World::new();
    let acts = Counter::new();
    let workflow = gate_before_a_careless_action(&acts);
    let agent = world.agent(&workflow).await;
    let first = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let same_session = ExecuteOptions::new().session(first.session_id().clone());
    let twin = agent.execute(&workflow, json!({}), same_session).await.unwrap();

    agent.resume(&only(&first).resume, ResumeResponse::select(["approve"])).await.unwrap();

    let scope = Scope::session(twin.session_id().clone());
    let view = agent.get_run(twin.run_id(), &scope).await.unwrap().unwrap();
    assert_eq!((view.status, acts.count()), (RunStatus::Suspended, 1));
    agent.resume(&only(&twin).resume, ResumeResponse::select(["decline"])).await.unwrap();
    assert_eq!(acts.count(), 1);
}

#[derive(Serialize, JsonSchema)]
struct Payment {
    amount: u64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Verdict {
    approved: bool,
}

/// What is shown to a person and what runs are the same record, whatever a hook does to the source of the amount.
#[tokio::test]
async fn b012_the_amount_that_was_shown_is_the_amount_that_runs() {
    const PAY: InterruptContract<Payment, Verdict> =
        InterruptContract::new("pay").description("Approves a payment").schema_id("test.pay").version("1");
    let world = World::new();
    let (amount, paid) = (Arc::new(AtomicU64::new(100)), Arc::new(AtomicU64::new(0)));
    let workflow = one_node(
        "pay",
        with((amount.clone(), paid.clone()), |ctx, (source, paid)| async move {
            let amount = ctx.step("amount", || async { Ok::<_, NodeError>(source.load(Ordering::SeqCst)) }).await?;
            if ctx.interrupt("pay", PAY.ask(Payment { amount })).await?.approved {
                ctx.step("pay", || async { Ok::<_, NodeError>(paid.swap(amount, Ordering::SeqCst)) }).await?;
            }
            Ok(NodeOutput::new().data("paid", &amount))
        }),
    );
    let agent = world.agent(&workflow).await;
    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    assert_eq!(only(&paused).input.request, Some(json!({"amount": 100})));

    amount.store(50, Ordering::SeqCst);
    let result = agent.resume(&only(&paused).resume, ResumeResponse::value(json!({"approved": true}))).await.unwrap();

    assert_eq!(data(result)["paid"], 100);
    assert_eq!(paid.load(Ordering::SeqCst), 100);
}

fn paying(version: &'static str, acts: &Counter) -> Workflow {
    one_node(
        "pay",
        with(acts.clone(), move |ctx, acts| async move {
            let pay: InterruptContract<Payment, Verdict> =
                InterruptContract::new("pay").description("Approves a payment").schema_id("test.pay").version(version);
            if ctx.interrupt("pay", pay.ask(Payment { amount: 100 })).await?.approved {
                acts.hit();
            }
            Ok(NodeOutput::new())
        }),
    )
}

#[tokio::test]
async fn b012_an_approval_of_another_contract_is_kept_and_never_used_for_this_one() {
    let world = World::new();
    let acts = Counter::new();
    let old = paying("1", &acts);
    let paused = world.agent(&old).await.execute(&old, json!({}), ExecuteOptions::new()).await.unwrap();

    let drifted = world.agent(&paying("2", &acts)).await;
    let approval = ResumeResponse::value(json!({"approved": true}));
    let refused = drifted.resume(&only(&paused).resume, approval.clone()).await.unwrap_err();
    let OrchestratorError::SetAside(why) = refused else { panic!("{refused:?}") };
    assert_eq!(why.code, FailureCode::ReplayDiverged);
    assert!(why.message.contains("test.pay/1") && why.message.contains("test.pay/2"), "{}", why.message);
    assert_eq!(acts.count(), 0);

    // The approval still counts where the contract that was approved is deployed.
    let agent = world.agent(&old).await;
    world.advance(std::time::Duration::from_millis(1));
    agent.worker().pass().await.unwrap();
    eventually("the run goes on", || async {
        agent.resume(&only(&paused).resume, approval.clone()).await.is_ok_and(|result| result.status() == "completed")
    })
    .await;
    assert_eq!(acts.count(), 1);
}

/// An order as lenient code reads it: a missing amount has a default, a text is taken for a number.
#[derive(Deserialize)]
struct Order {
    #[serde(default = "usual", deserialize_with = "number_or_text")]
    amount: u64,
}

fn usual() -> u64 {
    500
}

fn number_or_text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number.ok_or_else(|| serde::de::Error::custom("no amount"))
}

/// The predicate and the action read one decoded value: there is no second, raw one to judge.
#[tokio::test]
async fn b013_the_gate_judges_the_amount_that_runs() {
    let world = World::new();
    let workflow = one_node("order", |ctx| async move {
        let order: Order = ctx.input()?;
        if order.amount > 100 {
            ctx.interrupt("gate", approve_or_decline("That much?")).await?;
        }
        Ok(NodeOutput::new().data("spent", &order.amount))
    });
    let agent = world.agent(&workflow).await;
    let run = async |input: Value| agent.execute(&workflow, input, ExecuteOptions::new()).await.unwrap();

    for (input, spent) in [(json!({}), 500), (json!({"amount": "500"}), 500), (json!({"amount": 101}), 101)] {
        let paused = run(input.clone()).await;
        let result = agent.resume(&only(&paused).resume, ResumeResponse::select(["approve"])).await.unwrap();
        assert_eq!(data(result)["spent"], spent, "{input}");
    }
    assert_eq!(data(run(json!({"amount": "100"})).await)["spent"], 100);
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct StrictOrder {
    amount: u64,
}

#[tokio::test]
async fn b013_an_input_that_does_not_fit_its_schema_reaches_no_gate() {
    let world = World::new();
    let runs = Counter::new();
    let workflow = Workflow::builder("strict")
        .input::<StrictOrder>()
        .node(
            "order",
            with(runs.clone(), |_, runs| async move {
                runs.hit();
                Ok(NodeOutput::new())
            }),
        )
        .build()
        .unwrap();
    let agent = world.agent(&workflow).await;
    for input in ["{}", r#"{"amount":"500"}"#, r#"{"amount":-1}"#, "null"] {
        let input = RawJson::parse(input).unwrap();
        let refused = agent.execute_by_id("strict", None, input, ExecuteOptions::new()).await;
        assert_eq!(code(refused), FailureCode::InvalidInput);
    }
    assert_eq!(runs.count(), 0);
}

#[tokio::test]
async fn b014_a_predicate_that_was_recorded_is_not_evaluated_again_after_the_answer() {
    let world = World::new();
    let (evaluated, acts) = (Counter::new(), Counter::new());
    let workflow = one_node(
        "predicate",
        with((evaluated.clone(), acts.clone()), |ctx, (evaluated, acts)| async move {
            let evaluate =
                || async { if evaluated.hit() == 0 { Ok(true) } else { Err(NodeError::message("evaluated twice")) } };
            if ctx.step("needs-approval", evaluate).await? {
                ctx.interrupt("gate", approve_or_decline("Act?")).await?;
            }
            acts.hit();
            Ok(NodeOutput::new())
        }),
    );
    let paused = world.agent(&workflow).await.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let elsewhere = world.agent(&workflow).await;
    let result = elsewhere.resume(&only(&paused).resume, ResumeResponse::select(["approve"])).await.unwrap();
    assert_eq!(result.status(), "completed");
    assert_eq!((evaluated.count(), acts.count()), (1, 1));
}

/// Asks for the same thing again whenever it is denied.
fn stubborn(acts: &Counter) -> Workflow {
    Workflow::builder("stubborn")
        .max_node_executions(3)
        .node("gate", |ctx: NodeContext| async move {
            let decision = ctx.interrupt("gate", approve_or_decline("Delete it?")).await?;
            Ok(NodeOutput::new().condition(decision))
        })
        .node(
            "act",
            with(acts.clone(), |_, acts| async move {
                acts.hit();
                Ok(NodeOutput::new())
            }),
        )
        .edge_if("gate", "act", "approve")
        .otherwise("gate", "gate")
        .build()
        .unwrap()
}

/// What is asked is the author's code; the cap is the engine's: after so many activations a run asks whether to go on at all.
#[tokio::test]
async fn b017_a_run_that_asks_the_same_after_every_denial_comes_to_an_end() {
    let world = World::new();
    let acts = Counter::new();
    let workflow = stubborn(&acts);
    let agent = world.agent(&workflow).await;
    let mut result = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let mut asked = Vec::new();
    while let [question] = result.interrupts() {
        asked.push(question.input.id.clone().unwrap());
        assert!(asked.len() <= 4, "it asks for ever: {asked:?}");
        let denial = if asked.len() <= 3 { "decline" } else { "stop" };
        result = agent.resume(&question.resume.clone(), ResumeResponse::select([denial])).await.unwrap();
    }
    assert_eq!(asked, ["gate", "gate", "gate", "limit-reached"]);
    assert_eq!(failure(result).code, FailureCode::LimitReached);
    assert_eq!(acts.count(), 0);
}

#[tokio::test]
async fn b018_after_one_denial_the_next_gate_still_asks() {
    let world = World::new();
    let workflow = one_node("two-gates", |ctx| async move {
        let delete = ctx.interrupt("delete", approve_or_decline("Delete it?")).await?;
        let archive = ctx.interrupt("archive", approve_or_decline("Archive it?")).await?;
        Ok(NodeOutput::new().data("verdicts", &[delete, archive]))
    });
    let agent = world.agent(&workflow).await;
    let first = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let second = agent.resume(&only(&first).resume, ResumeResponse::select(["decline"])).await.unwrap();
    assert_eq!(only(&second).input.id.as_deref(), Some("archive"));
    let result = agent.resume(&only(&second).resume, ResumeResponse::select(["approve"])).await.unwrap();
    assert_eq!(data(result)["verdicts"], json!(["decline", "approve"]));
}
