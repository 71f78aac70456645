//! Conversations: what a turn takes over from the one before, and the checkpoints that turns leave behind.

use std::sync::Arc;

use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, ChatInput, WaitingPolicy};
use kortyx_protocol::{ChatMessage, FailureCode, ResumeResponse};
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, Workflow};
use kortyx_store::{NewCheckpoint, Scalar, Scope, Store};
use serde_json::{Value, json};

use crate::{
    talk::{Said, asking, choose, counting, in_session, named, say},
    world::{Gate, World, ask, code, handle, review, scope, session},
};

fn tenant(name: &str) -> Scope {
    Scope::default().with("tenant", Scalar::Text(name.into()))
}

/// The labels or else the nodes of a session's checkpoints, with their places.
async fn listed(agent: &Agent) -> Vec<(u64, String)> {
    let all = agent.list_checkpoints(&session(), None).await.unwrap();
    all.into_iter().map(|one| (one.turn_index, one.label.unwrap_or_else(|| one.nodes.join(" ")))).collect()
}

#[tokio::test]
async fn data_and_workflow_state_carry_over_and_node_state_does_not() {
    let agent = World::new().agent(&counting()).await;
    say(&agent, "one", in_session()).await;
    let second = say(&agent, "two", in_session()).await;
    assert_eq!(second.done().data, json!({"said": ["one", "two"], "all": 2, "own": 1}));
    let other = say(&agent, "three", in_session().session(named("session-2"))).await;
    assert_eq!(other.done().data, json!({"said": ["three"], "all": 1, "own": 1}), "another session has its own");
}

#[tokio::test]
async fn history_is_what_the_client_sent() {
    let node = |ctx: NodeContext| async move { Ok(NodeOutput::new().data("heard", &ctx.history()?.len())) };
    let agent = World::new().agent(&Workflow::builder("w").node("n", node).build().unwrap()).await;
    for (sent, heard) in [(3, 2), (1, 0)] {
        let messages = vec![ChatMessage::user("x"); sent];
        let said = Said(agent.stream_chat(messages, in_session()).collect().await);
        assert_eq!(said.done().data, json!({ "heard": heard }));
    }
}

#[tokio::test]
async fn the_first_turn_starts_the_session_and_every_good_turn_leaves_a_checkpoint() {
    let agent = World::new().agent(&asking()).await;
    let asked = say(&agent, "one", in_session()).await;
    assert_eq!(asked.kinds(), ["session", "structured-data", "interrupt", "checkpoint", "done"]);
    let answered = choose(&agent, asked.question(), "approve").await;
    assert_eq!(answered.kinds(), ["session", "structured-data", "checkpoint", "done"]);
    assert_eq!((asked.checkpoint().1, answered.checkpoint().1), (1, 2));
    let places = [(0, "session start"), (1, "ask"), (2, "ask count")].map(|(at, name)| (at, name.to_owned()));
    assert_eq!(listed(&agent).await, places);
    assert_eq!(agent.list_checkpoints(&named("nothing"), None).await.unwrap(), []);

    let all = agent.list_checkpoints(&session(), None).await.unwrap();
    assert_eq!(all[2].id, answered.checkpoint().0);
    assert_eq!(all[2].parent_checkpoint_id.as_ref(), Some(&all[1].id));
    assert_eq!((all[2].workflow.as_str(), all[2].workflow_version.as_deref()), ("asking", Some("1")));
    let view = agent.get_checkpoint(&all[2].id, None).await.unwrap().unwrap();
    assert_eq!(view.state.to_value().unwrap(), json!({"decision": "approve", "said": ["one"], "all": 1, "own": 1}));
    assert_eq!(view.run_id.unwrap(), answered.done().run_id);
    assert_eq!((view.effects.structured_stream_ids.len(), view.effects.interrupt_tokens.len()), (1, 0));
}

#[tokio::test]
async fn a_checkpoint_shows_the_questions_that_are_open_of_it_now() {
    let world = World::new();
    let agent = world.agent(&asking()).await;
    let asked = say(&agent, "one", in_session()).await;
    let id = asked.checkpoint().0;
    let view = agent.get_checkpoint(&id, None).await.unwrap().unwrap();
    let [pending] = view.active_pending_requests.as_slice() else { panic!("{view:?}") };
    assert!(pending.token.matches(&asked.question().resume_token));
    assert_eq!((pending.expires_at(), pending.options.len()), (asked.question().expires_at, 2));
    assert_eq!(pending.schema.question.as_deref(), Some("Approve this draft?"));
    choose(&agent, asked.question(), "approve").await;
    let view = agent.get_checkpoint(&id, None).await.unwrap().unwrap();
    assert!(view.active_pending_requests.is_empty());
    assert!(view.effects.interrupt_tokens[0].matches(&asked.question().resume_token), "it was open then");
    let unknown = kortyx_protocol::CheckpointId::from_random([9; 16]);
    assert!(agent.get_checkpoint(&unknown, None).await.unwrap().is_none());
}

#[tokio::test]
async fn a_turn_that_fails_or_is_cancelled_leaves_nothing_behind() {
    let fails = |ctx: NodeContext| async move {
        let said: ChatInput = ctx.input()?;
        if said.input == "fail" {
            return Err(NodeError::message("no"));
        }
        Ok(NodeOutput::new().data("said", &said.input))
    };
    let agent = World::new().agent(&Workflow::builder("w").node("n", fails).build().unwrap()).await;
    say(&agent, "good", in_session()).await;
    let failed = say(&agent, "fail", in_session()).await;
    assert_eq!(failed.kinds(), ["session", "error", "done"]);
    assert_eq!(listed(&agent).await.len(), 2);

    let agent = World::new().agent(&review()).await;
    let asked = say(&agent, "one", in_session()).await;
    let mut meta =
        kortyx_protocol::ResumeMeta::new(asked.question().resume_token.clone(), asked.question().request_id.clone());
    meta.cancel = true;
    let message = ChatMessage::user("no").with_resume(&meta);
    let cancelled = Said(agent.stream_chat(vec![message], in_session()).collect().await);
    assert_eq!(cancelled.kinds(), ["session", "cancelled", "done"]);
    assert_eq!(listed(&agent).await.len(), 2);
}

#[tokio::test]
async fn an_answer_outside_of_chat_is_a_turn_too_and_names_its_checkpoint() {
    let agent = World::new().agent(&asking()).await;
    let asked = say(&agent, "one", in_session()).await;
    let answer = ResumeResponse::select(["approve"]);
    let result = agent.answer(&asked.question().request_id, scope(), answer, None).await.unwrap();
    let all = agent.list_checkpoints(&session(), None).await.unwrap();
    assert_eq!(result.checkpoint_id(), Some(&all.last().unwrap().id));
    assert_eq!(all.len(), 3);
    let next = say(&agent, "two", in_session()).await;
    let question = next.question().clone();
    assert_eq!(choose(&agent, &question, "revise").await.done().data["said"], json!(["one", "two"]));
}

#[tokio::test]
async fn a_run_that_code_began_is_no_part_of_the_conversation() {
    let world = World::new();
    let agent = world.builder().workflow(&review()).workflow(&counting()).build().await.unwrap();
    say(&agent, "one", in_session().workflow("counting")).await;
    let waiting = ask(&agent, &review()).await;
    assert_eq!(waiting.checkpoint_id(), None);
    let handle = handle(&waiting, "approval");
    let done = agent.resume(&handle, ResumeResponse::select(["approve"])).await.unwrap();
    assert_eq!((done.status(), done.checkpoint_id()), ("completed", None));
    assert_eq!(listed(&agent).await.len(), 2);
    let next = say(&agent, "two", in_session()).await;
    assert_eq!(next.done().data["said"], json!(["one", "two"]));
}

#[tokio::test]
async fn a_handoff_stays_in_force_until_a_request_names_a_workflow() {
    let hands_over =
        |_: NodeContext| async move { Ok(NodeOutput::new().data("began", &true).transition_to("counting")) };
    let first = Workflow::builder("first").node("leave", hands_over).build().unwrap();
    let world = World::new();
    let agent = world.builder().workflow(&first).workflow(&counting()).default_workflow("first").build().await.unwrap();
    let turn = say(&agent, "one", in_session()).await;
    assert_eq!(turn.kinds(), ["session", "transition", "checkpoint", "done"]);
    let turn = say(&agent, "two", in_session()).await;
    assert_eq!(
        (turn.kinds(), turn.done().current_workflow.as_str()),
        (vec!["session", "checkpoint", "done"], "counting")
    );
    assert_eq!(turn.done().data["said"], json!(["one", "two"]));
    let turn = say(&agent, "three", in_session().workflow("first")).await;
    assert_eq!(turn.kinds(), ["session", "transition", "checkpoint", "done"]);
    let elsewhere = world.builder().workflow(&review()).build().await.unwrap();
    assert_eq!(say(&elsewhere, "four", in_session()).await.refusal(), FailureCode::UnknownWorkflow);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_first_turns_at_once_start_the_session_once_and_keep_their_states_apart() {
    for round in 0..20 {
        let agent = World::new().agent(&counting()).await;
        let turns = ["one", "two"].map(|text| {
            let agent = agent.clone();
            tokio::spawn(async move { say(&agent, text, in_session()).await })
        });
        let mut data = Vec::new();
        for turn in turns {
            data.push(turn.await.unwrap().done().data["said"].clone());
        }
        let all = agent.list_checkpoints(&session(), None).await.unwrap();
        let places: Vec<u64> = all.iter().map(|one| one.turn_index).collect();
        assert_eq!(places, [0, 1, 2], "round {round}");
        // Either both began from nothing, or one of them from the other's end.
        let apart = data == [json!(["one"]), json!(["two"])];
        let in_a_row =
            data == [json!(["one"]), json!(["one", "two"])] || data == [json!(["two", "one"]), json!(["two"])];
        assert!(apart || in_a_row, "round {round}: {data:?}");
    }
}

#[tokio::test]
async fn two_turns_at_once_both_complete_without_a_trace_of_the_other() {
    let gate = Gate::new();
    let waits = gate.clone();
    let node = move |ctx: NodeContext| {
        let gate = waits.clone();
        async move {
            let said: ChatInput = ctx.input()?;
            ctx.step("wait", || async move { gate.pass().await }).await?;
            Ok(NodeOutput::new().data(said.input, &true))
        }
    };
    let agent = World::new().agent(&Workflow::builder("slow").node("n", node).build().unwrap()).await;
    let turns = ["one", "two"].map(|text| {
        let agent = agent.clone();
        tokio::spawn(async move { say(&agent, text, in_session()).await })
    });
    gate.begun().await;
    gate.begun().await;
    gate.open();
    gate.open();
    let mut places = Vec::new();
    for (turn, text) in turns.into_iter().zip(["one", "two"]) {
        let said = turn.await.unwrap();
        assert_eq!(said.done().data, json!({ text: true }));
        let (id, place) = said.checkpoint();
        let view = agent.get_checkpoint(&id, None).await.unwrap().unwrap();
        assert_eq!(view.state.to_value().unwrap(), json!({ text: true }));
        places.push(place);
    }
    places.sort_unstable();
    assert_eq!(places, [1, 2]);
}

#[tokio::test]
async fn a_session_outside_of_the_scope_is_unknown_and_untouched() {
    let world = World::new();
    let agent = world.builder().workflow(&asking()).on_waiting(WaitingPolicy::Supersede).build().await.unwrap();
    let asked = say(&agent, "one", in_session().within(tenant("acme"))).await;
    let id = asked.checkpoint().0;
    for stranger in
        [tenant("other"), Scope::session(named("session-2")), Scope::session(session()).with("tenant", Scalar::Int(1))]
    {
        let refused = say(&agent, "two", in_session().within(stranger.clone())).await;
        assert_eq!((refused.kinds(), refused.refusal()), (vec!["session", "error", "done"], FailureCode::NotFound));
        let begun = agent.begin_chat(vec![ChatMessage::user("two")], in_session().within(stranger.clone())).await;
        assert_eq!(code(begun), FailureCode::NotFound);
        let scope = Some(&stranger);
        assert_eq!(agent.list_checkpoints(&session(), scope).await.unwrap(), []);
        assert!(agent.get_checkpoint(&id, scope).await.unwrap().is_none());
        assert_eq!(code(agent.rollback_to(&id, scope).await), FailureCode::NotFound);
        assert_eq!(code(agent.fork(&id, None, scope).await), FailureCode::NotFound);
    }
    let own = tenant("acme");
    assert_eq!(agent.list_checkpoints(&session(), Some(&own)).await.unwrap().len(), 2);
    assert!(agent.get_checkpoint(&id, Some(&own)).await.unwrap().is_some());
    assert_eq!(code(agent.list_checkpoints(&session(), Some(&Scope::default())).await), FailureCode::ScopeRequired);
    let answered = choose(&agent, asked.question(), "approve").await;
    assert_eq!(answered.done().status, "completed", "nobody superseded the run");
}

#[tokio::test]
async fn whose_a_session_is_outlives_its_runs() {
    let world = World::new();
    let agent = world.agent(&counting()).await;
    say(&agent, "one", in_session().within(tenant("acme"))).await;
    let retention = kortyx_store::Retention { finished_runs: std::time::Duration::ZERO, ..Default::default() };
    world.clock.advance(std::time::Duration::from_secs(1));
    assert_eq!(world.store.prune(&retention, 10).await.unwrap().runs, 1);
    assert_eq!(say(&agent, "two", in_session().within(tenant("other"))).await.refusal(), FailureCode::NotFound);
    let own = say(&agent, "two", in_session().within(tenant("acme"))).await;
    assert_eq!(own.done().data["said"], json!(["one", "two"]));
}

#[tokio::test]
async fn a_session_that_holds_a_strangers_questions_is_not_begun_in() {
    let agent = World::new().agent(&review()).await;
    let options = crate::world::in_session().context("tenant", "acme");
    agent.execute(&review(), json!({}), options).await.unwrap();
    assert_eq!(say(&agent, "one", in_session().within(tenant("other"))).await.refusal(), FailureCode::NotFound);
    assert_eq!(say(&agent, "one", in_session().within(tenant("acme"))).await.checkpoint().1, 1);
}

#[tokio::test]
async fn a_state_of_a_newer_release_is_refused_and_left_as_it_is() {
    let store = Arc::new(MemoryStore::new());
    let shared: Arc<dyn Store> = store.clone();
    let agent = Agent::builder().workflow(&counting()).shared_store(shared).without_worker().build().await.unwrap();
    let newer = NewCheckpoint {
        id: kortyx_protocol::CheckpointId::from_random([1; 16]),
        label: None,
        nodes: Vec::new(),
        workflow: "counting".to_owned(),
        workflow_version: None,
        state: r#"{"v":2}"#.into(),
        structured_stream_ids: Vec::new(),
    };
    store.append_checkpoint(&session(), newer.clone()).await.unwrap();
    assert_eq!(say(&agent, "one", in_session()).await.refusal(), FailureCode::PersistenceError);
    assert_eq!(code(agent.get_checkpoint(&newer.id, None).await), FailureCode::PersistenceError);
    assert_eq!(store.head(&session()).await.unwrap().unwrap().checkpoint.id, newer.id);
}

#[tokio::test]
async fn the_values_of_a_scope_are_part_of_the_runs_context_and_win() {
    let node = |ctx: NodeContext| async move {
        let context: Value = ctx.context()?;
        Ok(NodeOutput::new().data("context", &context))
    };
    let agent = World::new().agent(&Workflow::builder("w").node("n", node).build().unwrap()).await;
    let options = in_session().context("tenant", "forged").context("page", 3).within(tenant("acme"));
    assert_eq!(say(&agent, "one", options).await.done().data["context"], json!({"tenant": "acme", "page": 3}));
}

#[tokio::test]
async fn a_completed_response_leaves_the_turns_checkpoint_and_what_the_run_does_later_leaves_none() {
    let gate = Gate::new();
    let works = gate.clone();
    let node = move |ctx: NodeContext| {
        let gate = works.clone();
        async move {
            ctx.workflow_state("n", 0u32).set(&7)?;
            ctx.complete_response(kortyx_runtime::FinalResponse::new().data("order", &7)).await?;
            ctx.step("work", || async move { gate.pass().await }).await?;
            Ok(NodeOutput::new().data("later", &true))
        }
    };
    let world = World::new();
    let order = Workflow::builder("order").node("take", node).build().unwrap();
    let builder = world.builder().workflow(&order).workflow(&counting());
    let agent = builder.build().await.unwrap();
    let turn = say(&agent, "one", in_session().workflow("order")).await;
    assert_eq!((turn.kinds(), turn.checkpoint().1), (vec!["session", "checkpoint", "done"], 1));
    let view = agent.get_checkpoint(&turn.checkpoint().0, None).await.unwrap().unwrap();
    assert_eq!((view.state.to_value().unwrap(), view.summary.nodes), (json!({"order": 7}), vec!["take".to_owned()]));
    gate.open();
    crate::world::settle(&agent).await;
    let run = agent.get_run(&turn.done().run_id, &scope()).await.unwrap().unwrap();
    assert_eq!(run.data.unwrap().get(), r#"{"later":true}"#);
    assert_eq!(listed(&agent).await.len(), 2);
    let next = say(&agent, "two", in_session().workflow("counting")).await;
    assert_eq!(next.done().data, json!({"order": 7, "said": ["two"], "all": 1, "own": 1}));
}
