//! Going back to a checkpoint, and forks.

use std::time::Duration;

use kortyx_contracts::Text;
use kortyx_orchestrator::Fact;
use kortyx_protocol::{CheckpointId, FailureCode, ResumeResponse, RunId, SessionId};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use kortyx_store::Store as _;
use serde_json::json;

use crate::{
    talk::{asking, choose, choose_pending, counting, in_session, named, say},
    world::{Gate, World, ask, code, handle, pair, review, session, settle, slow},
};

#[tokio::test]
async fn going_back_opens_the_questions_of_the_checkpoint_again_and_closes_the_later_ones() {
    let world = World::new();
    let agent = world.agent(&asking()).await;
    let asked = say(&agent, "one", in_session()).await;
    world.clock.advance(Duration::from_mins(1));
    let answered = choose(&agent, asked.question(), "approve").await;
    let later = say(&agent, "two", in_session()).await;
    world.facts.take();

    let back = agent.rollback_to(&asked.checkpoint().0, None).await.unwrap();
    assert_eq!((&back.session_id, &back.head), (&session(), &asked.checkpoint().0));
    assert_eq!(world.facts.take(), ["InterruptSuperseded", "InterruptCreated", "SessionRolledBack"]);
    let [open] = back.active_pending_requests.as_slice() else { panic!("{back:?}") };
    assert_ne!((&open.request_id, &open.run_id), (&asked.question().request_id, &asked.done().run_id));
    assert_eq!(open.expires_at(), asked.question().expires_at, "the deadline is the original one");
    let [closed] = back.invalidated_interrupt_tokens.as_slice() else { panic!("{back:?}") };
    assert!(closed.matches(&later.question().resume_token));
    let streams = |id: CheckpointId| {
        let agent = agent.clone();
        async move { agent.get_checkpoint(&id, None).await.unwrap() }
    };
    assert!(streams(answered.checkpoint().0).await.is_none(), "what is abandoned is unknown");
    assert_eq!(back.invalidated_structured_stream_ids.len(), 2, "one of the answer's turn, one of the later one");
    let view = streams(asked.checkpoint().0).await.unwrap();
    assert_eq!(view.active_pending_requests[0].request_id, open.request_id, "the head shows what is open now");
    assert!(!back.invalidated_structured_stream_ids.contains(&view.effects.structured_stream_ids[0]));

    assert_eq!(choose(&agent, later.question(), "approve").await.refusal(), FailureCode::InterruptSuperseded);
    assert_eq!(choose(&agent, asked.question(), "revise").await.refusal(), FailureCode::InterruptAlreadyResolved);
    let again = choose_pending(&agent, open, "revise").await;
    assert_eq!(again.done().data["decision"], "revise");
    assert_eq!(again.checkpoint().1, 2, "places go on from the head");
    assert_eq!(say(&agent, "three", in_session()).await.checkpoint().1, 3);
}

#[tokio::test]
async fn going_back_to_the_start_forgets_every_turn() {
    let agent = World::new().agent(&counting()).await;
    say(&agent, "one", in_session()).await;
    say(&agent, "two", in_session()).await;
    let start = agent.list_checkpoints(&session(), None).await.unwrap()[0].id.clone();
    let back = agent.rollback_to(&start, None).await.unwrap();
    assert!(back.active_pending_requests.is_empty() && back.invalidated_interrupt_tokens.is_empty());
    let turn = say(&agent, "three", in_session()).await;
    assert_eq!((turn.done().data["said"].clone(), turn.checkpoint().1), (json!(["three"]), 1));
}

#[tokio::test]
async fn going_back_to_the_head_changes_nothing() {
    let world = World::new();
    let agent = world.agent(&review()).await;
    let asked = say(&agent, "one", in_session()).await;
    world.facts.take();
    let back = agent.rollback_to(&asked.checkpoint().0, None).await.unwrap();
    assert_eq!(back.active_pending_requests[0].request_id, asked.question().request_id);
    assert!(back.invalidated_interrupt_tokens.is_empty());
    assert_eq!(world.facts.take(), ["SessionRolledBack"]);
    assert_eq!(choose(&agent, asked.question(), "approve").await.done().status, "completed");
}

#[tokio::test]
async fn a_question_past_its_time_is_not_opened_again_and_nothing_changes() {
    let world = World::new();
    let agent = world.agent(&asking()).await;
    let asked = say(&agent, "one", in_session()).await;
    choose(&agent, asked.question(), "approve").await;
    world.clock.advance(Duration::from_mins(15));
    let id = asked.checkpoint().0;
    assert_eq!(code(agent.rollback_to(&id, None).await), FailureCode::InterruptExpired);
    assert_eq!(code(agent.fork(&id, None, None).await), FailureCode::InterruptExpired);
    assert_eq!(agent.list_checkpoints(&session(), None).await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_checkpoint_that_is_unknown_or_abandoned_is_not_found() {
    let agent = World::new().agent(&counting()).await;
    let (first, second) = (say(&agent, "one", in_session()).await, say(&agent, "two", in_session()).await);
    agent.rollback_to(&first.checkpoint().0, None).await.unwrap();
    for id in [CheckpointId::from_random([9; 16]), second.checkpoint().0] {
        assert_eq!(code(agent.rollback_to(&id, None).await), FailureCode::NotFound);
        assert_eq!(code(agent.fork(&id, None, None).await), FailureCode::NotFound);
    }
}

#[tokio::test]
async fn a_session_whose_run_is_under_way_is_not_taken_back() {
    let (world, gate) = (World::new(), Gate::new());
    let quick = |ctx: NodeContext| async move {
        let _ = ctx;
        tokio::time::sleep(Duration::from_hours(1)).await;
        Ok(NodeOutput::new())
    };
    let idle = Workflow::builder("idle").node("n", quick).build().unwrap();
    let builder = world.builder().workflow(&counting()).workflow(&slow(&gate)).workflow(&idle);
    let agent = builder.build().await.unwrap();
    let first = say(&agent, "one", in_session().workflow("counting")).await;
    say(&agent, "two", in_session()).await;
    // Storage knows the one; of the other it has not heard.
    for workflow in ["slow", "idle"] {
        let turn = tokio::spawn({
            let agent = agent.clone();
            async move { say(&agent, "three", in_session().workflow(workflow)).await }
        });
        if workflow == "slow" {
            gate.begun().await;
        }
        while agent.driven_runs() == 0 {
            tokio::task::yield_now().await;
        }
        let busy = kortyx_protocol::Failure::from(agent.rollback_to(&first.checkpoint().0, None).await.unwrap_err());
        assert_eq!((busy.code, busy.retryable), (FailureCode::Conflict, Some(true)), "{workflow}");
        assert_eq!(
            agent.list_checkpoints(&session(), None).await.unwrap().len(),
            if workflow == "slow" { 3 } else { 4 }
        );
        if workflow == "slow" {
            gate.open();
            turn.await.unwrap();
        } else {
            turn.abort();
        }
    }
}

#[tokio::test]
async fn a_run_that_code_began_ends_when_its_session_is_taken_back() {
    let world = World::new();
    let agent = world.builder().workflow(&review()).workflow(&counting()).build().await.unwrap();
    let first = say(&agent, "one", in_session().workflow("counting")).await;
    say(&agent, "two", in_session()).await;
    let waiting = handle(&ask(&agent, &review()).await, "approval");
    let back = agent.rollback_to(&first.checkpoint().0, None).await.unwrap();
    assert!(back.invalidated_interrupt_tokens[0].matches(&waiting.token));
    let late = agent.resume(&waiting, ResumeResponse::select(["approve"])).await;
    assert_eq!(code(late), FailureCode::InterruptSuperseded);
}

#[tokio::test]
async fn a_fork_and_its_original_go_on_independently() {
    let world = World::new();
    let agent = world.agent(&asking()).await;
    let asked = say(&agent, "one", in_session()).await;
    world.facts.take();
    let forked = agent.fork(&asked.checkpoint().0, None, None).await.unwrap();
    assert_eq!(world.facts.take(), ["InterruptCreated", "SessionForked"]);
    assert_eq!((&forked.parent_session_id, &forked.forked_from), (&session(), &asked.checkpoint().0));
    let summary = &forked.checkpoint.summary;
    assert_eq!((&summary.session_id, summary.turn_index), (&forked.session_id, 0));
    assert_eq!(
        (summary.parent_session_id.as_ref(), summary.forked_from.as_ref()),
        (Some(&session()), Some(&forked.forked_from))
    );
    let [open] = forked.checkpoint.active_pending_requests.as_slice() else { panic!("{forked:?}") };
    assert_eq!((&open.session_id, Some(&open.run_id)), (&forked.session_id, forked.checkpoint.run_id.as_ref()));
    assert_eq!(open.expires_at(), asked.question().expires_at);
    assert!(!open.token.matches(&asked.question().resume_token));

    let there = choose_pending(&agent, open, "revise").await;
    let here = choose(&agent, asked.question(), "approve").await;
    assert_eq!((&there.done().data["decision"], &here.done().data["decision"]), (&json!("revise"), &json!("approve")));
    let next = say(&agent, "two", in_session().session(forked.session_id.clone())).await;
    let answered = choose(&agent, next.question(), "approve").await;
    assert_eq!(answered.done().data["said"], json!(["one", "two"]));
    assert_eq!(agent.list_checkpoints(&session(), None).await.unwrap().len(), 3);
    assert_eq!(agent.list_checkpoints(&forked.session_id, None).await.unwrap().len(), 4);
}

#[tokio::test]
async fn a_fork_of_a_session_without_questions_takes_over_its_state() {
    let agent = World::new().agent(&counting()).await;
    let first = say(&agent, "one", in_session()).await;
    say(&agent, "two", in_session()).await;
    let forked = agent.fork(&first.checkpoint().0, Some(named("mine")), None).await.unwrap();
    assert_eq!(forked.session_id, named("mine"));
    let turn = say(&agent, "three", in_session().session(named("mine"))).await;
    assert_eq!((turn.done().data["said"].clone(), turn.checkpoint().1), (json!(["one", "three"]), 1));
    let again = agent.fork(&first.checkpoint().0, Some(named("mine")), None).await;
    assert_eq!(code(again), FailureCode::Conflict);
}

#[tokio::test]
async fn a_run_that_waits_in_two_branches_is_forked_whole() {
    let agent = World::new().agent(&pair()).await;
    let asked = say(&agent, "one", in_session()).await;
    let forked = agent.fork(&asked.checkpoint().0, None, None).await.unwrap();
    let open = &forked.checkpoint.active_pending_requests;
    assert_eq!(open.iter().map(|open| open.schema.id.as_deref().unwrap()).collect::<Vec<_>>(), ["a", "b"]);
    let scope = kortyx_store::Scope::session(forked.session_id.clone());
    let answers =
        open.iter().map(|open| (open.request_id.clone(), ResumeResponse::text(open.schema.id.clone().unwrap())));
    let done = agent.answer_batch(answers, scope, None).await.unwrap();
    assert_eq!(crate::world::data(done), json!({"a": "a", "b": "b"}));
    let view = agent.get_checkpoint(&asked.checkpoint().0, None).await.unwrap().unwrap();
    assert_eq!(view.active_pending_requests.len(), 2, "the original still waits");
}

#[tokio::test]
async fn a_run_that_waits_deep_in_a_child_is_forked_where_it_waits() {
    let counter = Gate::new();
    let counts = counter.clone();
    let inner = move |ctx: NodeContext| {
        let counts = counts.clone();
        async move {
            ctx.step("before", || async move {
                counts.open();
                counts.pass().await
            })
            .await?;
            let name = ctx.interrupt("name", Text::new("Name?")).await?;
            Ok(NodeOutput::new().data("name", &name))
        }
    };
    let child = Workflow::builder("child").node("inner", inner).build().unwrap();
    let called = child.clone();
    let middle = move |ctx: NodeContext| {
        let child = called.clone();
        async move {
            let data: serde_json::Value = ctx.call("c", &child, json!({})).await?;
            Ok(NodeOutput::new().data("child", &data))
        }
    };
    let parent = Workflow::builder("parent").node("middle", middle).build().unwrap();
    let world = World::new();
    let agent = world.builder().workflow(&parent).workflow(&child).default_workflow("parent").build().await.unwrap();
    let asked = say(&agent, "one", in_session()).await;
    let forked = agent.fork(&asked.checkpoint().0, None, None).await.unwrap();
    for (token, id, name) in [
        (&asked.question().resume_token, &asked.question().request_id, "here"),
        (
            &forked.checkpoint.active_pending_requests[0].token,
            &forked.checkpoint.active_pending_requests[0].request_id,
            "there",
        ),
    ] {
        let mut meta = kortyx_protocol::ResumeMeta::new(token.clone(), id.clone());
        meta.text = Some(name.to_owned());
        let message = kortyx_protocol::ChatMessage::user(name).with_resume(&meta);
        let chunks = agent.stream_chat(vec![message], kortyx_orchestrator::ChatOptions::new()).collect().await;
        assert_eq!(crate::talk::Said(chunks).done().data, json!({"child": {"name": name}}));
    }
    assert_eq!(counter.passed(), 1, "what the child had done is not done again");
    settle(&agent).await;
}

/// What the facts of rollbacks and forks are about, in turn: run, session and workflow. Other facts are forgotten.
fn branched(world: &World) -> Vec<(RunId, SessionId, String)> {
    let about = |fact: &Fact| match fact {
        Fact::SessionRolledBack { about, .. } | Fact::SessionForked { about, .. } => {
            Some((about.run_id().clone(), about.session_id().clone(), about.workflow_id().unwrap().to_owned()))
        }
        _ => None,
    };
    let told = world.facts.all().iter().filter_map(about).collect();
    world.facts.take();
    told
}

#[tokio::test]
async fn facts_of_forks_and_rollbacks_name_a_run_even_in_a_process_that_saw_none() {
    let world = World::new();
    let asked = say(&world.agent(&asking()).await, "one", in_session()).await;
    let agent = world.agent(&asking()).await;
    let workflow = || "asking".to_owned();

    let forked = agent.fork(&asked.checkpoint().0, None, None).await.unwrap();
    let open = forked.checkpoint.active_pending_requests[0].run_id.clone();
    assert_eq!(branched(&world), [(open, forked.session_id, workflow())]);

    agent.rollback_to(&asked.checkpoint().0, None).await.unwrap();
    assert_eq!(branched(&world), [(asked.done().run_id.clone(), session(), workflow())]);

    let start = agent.list_checkpoints(&session(), None).await.unwrap()[0].id.clone();
    agent.rollback_to(&start, None).await.unwrap();
    let told = branched(&world);
    assert_eq!((&told[0].1, &told[0].2), (&session(), &workflow()));
    assert_eq!(world.store.run(&told[0].0).await.unwrap().map(|run| run.run_id), None);
}
