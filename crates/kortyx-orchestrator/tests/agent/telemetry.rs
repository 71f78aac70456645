//! What a telemetry sink is told: the life of a run in order, what it is about, and content only where it asks.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use kortyx_contracts::{AskExt as _, Choice, ChoiceOption, Text};
use kortyx_orchestrator::{
    Agent, AgentBuilder, Answer, CancelReason, Captures, Content, Correlation, ExecuteOptions, Fact, InteractionMode,
    ResumeOutcome, ResumeReason, TelemetrySink, TraceIds,
};
use kortyx_protocol::{InterruptKind, ResumeResponse};
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, Workflow};
use kortyx_store::{CancelTarget, Clock as _, RunStatus, Scalar, Store};
use serde_json::json;

use crate::world::{Gate, World, ask, data, handle, in_session, lenient, pair, review, scope, slow};

/// A sink that watches everything and captures what it is told to.
#[derive(Clone, Default)]
struct Watching {
    facts: Arc<Mutex<Vec<Fact>>>,
    captures: Captures,
}

impl TelemetrySink for Watching {
    fn record(&self, fact: &Fact) {
        self.facts.lock().unwrap().push(fact.clone());
    }

    fn watches_nodes(&self) -> bool {
        true
    }

    fn captures(&self) -> Captures {
        self.captures
    }
}

impl Watching {
    fn take(&self) -> Vec<Fact> {
        std::mem::take(&mut *self.facts.lock().unwrap())
    }

    fn names(&self) -> Vec<String> {
        self.take().iter().map(name).collect()
    }
}

fn name(fact: &Fact) -> String {
    format!("{fact:?}").split(' ').next().unwrap_or_default().to_owned()
}

fn builder(world: &World, sink: impl TelemetrySink) -> AgentBuilder {
    let store: Arc<dyn Store> = world.store.clone();
    Agent::builder().shared_store(store).telemetry(sink).without_worker()
}

#[tokio::test]
async fn a_run_is_told_from_its_beginning_to_its_end() {
    let (world, sink) = (World::new(), Watching::default());
    let workflow = review();
    let agent = builder(&world, sink.clone()).workflow(&workflow).build().await.unwrap();
    let asked = handle(&ask(&agent, &workflow).await, "approval");
    assert_eq!(sink.names(), ["RunStarted", "NodeEntered", "NodeLeft", "InterruptCreated", "RunSuspended"]);
    agent.resume(&asked, ResumeResponse::select(["approve"])).await.unwrap();
    let facts = sink.take();
    let names: Vec<_> = facts.iter().map(name).collect();
    assert_eq!(names, ["InterruptResolved", "RunResumed", "NodeEntered", "NodeLeft", "RunFinished"]);
    let Fact::RunResumed { fence, reason, answers, earlier, .. } = &facts[1] else { panic!("{facts:?}") };
    assert_eq!((*fence, *reason, *answers, *earlier), (1, ResumeReason::Answered, 1, None));
    let Fact::RunFinished { status, code, output, .. } = &facts[4] else { panic!("{facts:?}") };
    assert_eq!((*status, *code, output), (RunStatus::Completed, None, &None));
}

#[tokio::test]
async fn every_fact_of_a_run_says_what_it_is_about() {
    let (world, sink) = (World::new(), Watching::default());
    let workflow = review();
    let agent = builder(&world, sink.clone()).workflow(&workflow).build().await.unwrap();
    let options = in_session().context("tenant", "acme").context("n", 7);
    let asked = agent.execute(&workflow, json!({}), options).await.unwrap();
    agent.resume(&handle(&asked, "approval"), ResumeResponse::select(["approve"])).await.unwrap();
    let definition = workflow.definition();
    for fact in sink.take() {
        let about = fact.about().unwrap_or_else(|| panic!("{fact:?}"));
        assert_eq!((about.run_id(), about.session_id()), (asked.run_id(), asked.session_id()), "{fact:?}");
        let pin = about.workflow().unwrap_or_else(|| panic!("{fact:?}"));
        let wanted = (definition.id(), definition.version(), definition.fingerprint());
        assert_eq!((&pin.id, &pin.version, &*pin.fingerprint), wanted);
        assert_eq!(about.context()["tenant"], Scalar::Text("acme".into()));
        assert!(!format!("{fact:?}").contains("acme"), "the application's values do not show: {fact:?}");
        let has_place = !matches!(
            fact,
            Fact::RunStarted { .. } | Fact::RunResumed { .. } | Fact::RunSuspended { .. } | Fact::RunFinished { .. }
        );
        assert_eq!(about.node(), has_place.then_some("approval"), "{fact:?}");
    }
}

#[tokio::test]
async fn a_question_is_told_with_what_it_is_like() {
    let (world, sink) = (World::new(), Watching::default());
    let node = |ctx: NodeContext| async move {
        let plan = Choice::new("?").option("a", "A").option("b", "B").expires_in(Duration::from_mins(2));
        let (plan, text) = tokio::join!(ctx.interrupt("plan", plan), ctx.interrupt("text", Text::new("?")));
        Ok(NodeOutput::new().data("plan", &plan?).data("text", &text?))
    };
    let workflow = Workflow::builder("flow").node("node", node).build().unwrap();
    let agent = builder(&world, sink.clone()).workflow(&workflow).build().await.unwrap();
    ask(&agent, &workflow).await;
    let mut all = Vec::new();
    for fact in sink.take() {
        if let Fact::InterruptCreated { asked, content, .. } = fact {
            assert_eq!(content, None);
            all.push(asked);
        }
    }
    let plan = all.iter().find(|asked| asked.kind == InterruptKind::Choice).unwrap();
    assert_eq!((plan.mode, plan.option_count, plan.id.as_deref()), (InteractionMode::StaticOptions, 2, Some("plan")));
    assert_eq!(plan.expires_at.since(plan.created_at), Duration::from_mins(2));
    let text = all.iter().find(|asked| asked.kind == InterruptKind::Text).unwrap();
    assert_eq!((text.mode.as_str(), text.option_count, &text.contract), ("freeform", 0, &None));
}

/// Says something secret wherever a run may say something.
fn secretive() -> Workflow {
    let node = |ctx: NodeContext| async move {
        let noted = ctx.step("note", || async { Ok::<_, NodeError>("planted-step".to_owned()) }).await?;
        let option =
            ChoiceOption::new("yes", "planted-label").description("planted-description").value("planted-value");
        let ask = Choice::new("planted-question").option_with(option).option("no", "No");
        let chosen = ctx.interrupt("q", ask).await?;
        let said = ctx.interrupt("t", Text::new("planted-second")).await?;
        Ok(NodeOutput::new()
            .data("noted", &noted)
            .data("chosen", &chosen)
            .data("out", "planted-output")
            .data("said", &said))
    };
    Workflow::builder("secretive").node("node", node).build().unwrap()
}

/// All the content of facts.
fn content(facts: &[Fact]) -> String {
    let json = |content: &Option<Content>| content.as_ref().map(|content| content.json().get().to_owned());
    let of = |fact: &Fact| match fact {
        Fact::RunStarted { input, .. } => json(input),
        Fact::RunFinished { output, .. } | Fact::NodeLeft { output, .. } | Fact::StepEnded { output, .. } => {
            json(output)
        }
        Fact::InterruptResolved { answer, .. } => json(answer),
        Fact::InterruptCreated { content: Some(content), .. } => {
            let options =
                content.options.iter().map(|option| format!("{} {} {:?}", option.id, option.label, option.description));
            Some(format!("{:?} {} {:?}", content.question, options.collect::<String>(), content.request))
        }
        _ => None,
    };
    facts.iter().filter_map(of).collect()
}

#[tokio::test]
async fn content_is_told_by_its_switch_and_shows_nowhere_and_values_and_actors_never_are() {
    let outputs = [
        "planted-step",
        "planted-label",
        "planted-description",
        "planted-question",
        "planted-second",
        "planted-output",
    ];
    let inputs = ["planted-input", "planted-answer"];
    for (captures, told) in [
        (Captures::nothing(), Vec::new()),
        // What a person said is part of what the run ends with.
        (Captures::nothing().with_output(true), [&outputs[..], &["planted-answer"]].concat()),
        (Captures::nothing().with_input(true), inputs.to_vec()),
        (Captures::nothing().with_actor(true), Vec::new()),
    ] {
        let (world, sink) = (World::new(), Watching { captures, ..Watching::default() });
        let workflow = secretive();
        let agent = builder(&world, sink.clone()).workflow(&workflow).build().await.unwrap();
        let input = json!({"input": "planted-input"});
        let asked = agent.execute(&workflow, input, in_session()).await.unwrap();
        let token = handle(&asked, "q").token.expose().to_owned();
        let asked = agent.resume(&handle(&asked, "q"), ResumeResponse::select(["yes"])).await.unwrap();
        let answer =
            Answer::with_handle(&handle(&asked, "t"), ResumeResponse::text("planted-answer")).by("planted-actor");
        agent.respond(vec![answer]).await.unwrap();
        let facts = sink.take();
        let (content, shown) = (content(&facts), format!("{facts:?}"));
        for planted in outputs.into_iter().chain(inputs) {
            assert_eq!(content.contains(planted), told.contains(&planted), "{captures:?}: {planted}");
            assert!(!shown.contains(planted), "{captures:?}: {planted}");
        }
        let actors: Vec<_> = facts
            .iter()
            .filter_map(|fact| if let Fact::InterruptResolved { actor, .. } = fact { actor.as_deref() } else { None })
            .collect();
        assert_eq!(actors, if captures.actor { vec!["planted-actor"] } else { vec![] });
        for never in ["planted-value", token.as_str()] {
            assert!(!content.contains(never) && !shown.contains(never), "{captures:?}: {never}");
        }
    }
}

#[tokio::test]
async fn an_answer_is_told_with_how_long_the_question_was_open_also_by_a_process_that_did_not_ask() {
    let (world, sink) = (World::new(), Watching::default());
    let workflow = review();
    let asking = world.agent(&workflow).await;
    let asked = ask(&asking, &workflow).await;
    drop(asking);
    world.clock.advance(Duration::from_secs(90));
    let accepting = builder(&world, sink.clone()).accept_only().build().await.unwrap();
    let answer = Answer::with_handle(&handle(&asked, "approval"), ResumeResponse::select(["approve"]));
    accepting.submit(vec![answer]).await.unwrap();
    let facts = sink.take();
    let [Fact::InterruptResolved { about, outcome, wait, resolved_at, .. }] = &facts[..] else { panic!("{facts:?}") };
    assert_eq!((*outcome, *wait), (ResumeOutcome::Kept, Duration::from_secs(90)));
    assert_eq!(*resolved_at, world.clock.now());
    assert_eq!((about.workflow(), about.workflow_id(), about.node()), (None, Some("review"), Some("approval")));
}

#[tokio::test]
async fn a_question_past_its_deadline_is_told_once_where_nobody_closes_it() {
    let (world, sink) = (World::new(), Watching::default());
    let workflow = lenient();
    let agent = builder(&world, sink.clone()).workflow(&workflow).build().await.unwrap();
    let asked = handle(&ask(&agent, &workflow).await, "name");
    let look = || async { agent.get_interrupt(&asked.request_id, &scope()).await.unwrap().unwrap() };
    look().await;
    assert!(!sink.names().contains(&"InterruptExpired".to_owned()), "its time is not past on the store's clock");
    world.clock.advance(Duration::from_mins(1));
    look().await;
    look().await;
    agent.resume(&asked, ResumeResponse::text("Ann")).await.unwrap_err();
    let facts = sink.take();
    let derived = |fact: &&Fact| matches!(fact, Fact::InterruptExpired { is_derived: true, by_default: true, .. });
    assert_eq!(facts.iter().filter(derived).count(), 1, "{facts:?}");
    let late =
        |fact: &&Fact| matches!(fact, Fact::AnswerLate { about: Some(about), .. } if *about.run_id() == asked.run_id);
    assert_eq!(facts.iter().filter(late).count(), 1, "{facts:?}");
    agent.worker().pass().await.unwrap();
    let closed = |fact: &&Fact| matches!(fact, Fact::InterruptExpired { is_derived: false, .. });
    assert_eq!(sink.take().iter().filter(closed).count(), 1);
    look().await;
    assert_eq!(sink.take().iter().filter(|fact| name(fact) == "InterruptExpired").count(), 0);
}

#[tokio::test]
async fn a_cancelled_run_is_told_with_its_questions_and_why() {
    let (world, sink) = (World::new(), Watching::default());
    let workflow = pair();
    let agent = builder(&world, sink.clone()).workflow(&workflow).build().await.unwrap();
    let asked = ask(&agent, &workflow).await;
    sink.take();
    agent.cancel(CancelTarget::Run(asked.run_id().clone()), scope(), None).await.unwrap();
    let facts = sink.take();
    let cancelled = |fact: &&Fact| matches!(fact, Fact::InterruptCancelled { reason: CancelReason::Run, .. });
    assert_eq!(facts.iter().filter(cancelled).count(), 2);
    let Some(Fact::RunFinished { about, status, .. }) = facts.last() else { panic!("{facts:?}") };
    assert_eq!((*status, about.workflow_id(), about.node()), (RunStatus::Cancelled, Some("pair"), None));
}

#[tokio::test]
async fn a_cancelling_answer_is_told_of_every_question_that_it_closes() {
    let (world, sink) = (World::new(), Watching::default());
    let workflow = pair();
    let agent = builder(&world, sink.clone()).workflow(&workflow).build().await.unwrap();
    let asked = ask(&agent, &workflow).await;
    sink.take();
    agent.resume(&handle(&asked, "a"), ResumeResponse::Cancel).await.unwrap();
    let facts = sink.take();
    let cancelled = |fact: &&Fact| matches!(fact, Fact::InterruptCancelled { reason: CancelReason::Answer, .. });
    assert_eq!(facts.iter().filter(cancelled).count(), 2, "{facts:?}");
    assert_eq!(facts.len(), 3, "{facts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_lost_its_lease_says_so() {
    let (world, gate, sink) = (World::new(), Gate::new(), Watching::default());
    let workflow = slow(&gate);
    let one = builder(&world, sink.clone()).workflow(&workflow).build().await.unwrap();
    let two = world.agent(&workflow).await;
    let run = tokio::spawn({
        let (one, workflow) = (one.clone(), workflow.clone());
        async move { one.execute(&workflow, json!({}), in_session()).await }
    });
    gate.begun().await;
    world.clock.advance(Duration::from_secs(31));
    assert_eq!(two.worker().pass().await.unwrap().recovered, 1);
    gate.begun().await;
    while one.driven_runs() > 0 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    gate.open();
    assert_eq!(data(run.await.unwrap().unwrap()), json!({"count": 1}));
    let facts = sink.take();
    assert!(facts.iter().any(|fact| matches!(fact, Fact::LeaseLost { fence: 1, .. })), "{facts:?}");
}

#[tokio::test]
async fn a_sink_that_panics_wherever_it_is_called_changes_nothing() {
    struct Broken;
    impl TelemetrySink for Broken {
        fn record(&self, _: &Fact) {
            panic!("broken sink");
        }

        fn watches_nodes(&self) -> bool {
            true
        }

        fn trace(&self, _: &tracing::Span) -> Option<TraceIds> {
            panic!("broken sink");
        }

        fn user<'a>(&self, _: &'a Correlation) -> Option<&'a str> {
            panic!("broken sink");
        }
    }
    let (world, workflow) = (World::new(), review());
    let agent = builder(&world, Broken).workflow(&workflow).build().await.unwrap();
    let asked = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let result = agent.resume(&handle(&asked, "approval"), ResumeResponse::select(["approve"])).await.unwrap();
    assert_eq!(data(result), json!({"decision": "approve"}));
}
