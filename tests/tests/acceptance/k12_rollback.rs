//! K12: going back to a checkpoint, and forks.

use kortyx::{
    Agent, ChatInput, ChatOptions, NodeContext, NodeError, NodeOutput, Text, Workflow,
    protocol::{
        ChatMessage, CheckpointId, FailureCode, InterruptChunk, PendingRequest, ResumeHandle, ResumeResponse,
        SessionId, StreamChunk,
    },
    store::{Scalar, Scope},
};
use kortyx_tests::{
    Counter, Op, When, World, approve_or_decline, code, eventually, input_of, kinds, one_node, resume_message,
    takes_over, with,
};
use serde_json::{Value, json};

pub(crate) fn session(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

pub(crate) async fn say(agent: &Agent, session_id: &str, text: &str) -> Vec<StreamChunk> {
    agent.stream_chat(vec![ChatMessage::user(text)], ChatOptions::new().session(session(session_id))).collect().await
}

async fn answer(agent: &Agent, question: &InterruptChunk, response: &ResumeResponse) -> Vec<StreamChunk> {
    agent.stream_chat(vec![resume_message(question, response)], ChatOptions::new()).collect().await
}

fn checkpoint(chunks: &[StreamChunk]) -> (CheckpointId, u64) {
    let found = chunks.iter().find_map(|chunk| match chunk {
        StreamChunk::Checkpoint { id, turn_index, .. } => Some((id.clone(), *turn_index)),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no checkpoint: {chunks:?}"))
}

pub(crate) fn data(chunks: &[StreamChunk]) -> Value {
    match chunks.last() {
        Some(StreamChunk::Done { data: Some(done) }) if done.status == "completed" => done.data.clone(),
        other => panic!("not completed: {other:?}"),
    }
}

fn refusal(chunks: &[StreamChunk]) -> FailureCode {
    assert_eq!(kinds(chunks), ["session", "error", "done"]);
    match &chunks[1] {
        StreamChunk::Error { failure, .. } => failure.code,
        other => panic!("{other:?}"),
    }
}

fn handle(pending: &PendingRequest) -> ResumeHandle {
    ResumeHandle {
        token: pending.token.clone(),
        request_id: pending.request_id.clone(),
        session_id: pending.session_id.clone(),
        run_id: pending.run_id.clone(),
    }
}

fn yes() -> ResumeResponse {
    ResumeResponse::select(["approve"])
}

fn no() -> ResumeResponse {
    ResumeResponse::select(["decline"])
}

/// Decides, and remembers every decision of the conversation.
fn deciding() -> Workflow {
    one_node("deciding", |ctx| async move {
        let decision = ctx.interrupt("gate", approve_or_decline("Ship it?")).await?;
        let mut all: Vec<String> = ctx.workflow_state("all", Vec::new()).get()?;
        all.push(decision.clone());
        ctx.workflow_state("all", Vec::<String>::new()).set(&all)?;
        Ok(NodeOutput::new().data("decision", &decision).data("all", &all))
    })
}

pub(crate) async fn start_of(agent: &Agent, session_id: &str) -> CheckpointId {
    agent.list_checkpoints(&session(session_id), None).await.unwrap()[0].id.clone()
}

#[tokio::test]
async fn b157_after_going_back_the_question_is_asked_again_and_another_answer_counts() {
    let world = World::new();
    let agent = world.agent(&deciding()).await;
    let asked = say(&agent, "s", "go").await;
    let first = answer(&agent, &input_of(&asked)[0], &yes()).await;
    assert_eq!(data(&first), json!({"decision": "approve", "all": ["approve"]}));
    let kept = agent.fork(&checkpoint(&first).0, Some(session("kept")), None).await.unwrap();

    // To where it was asked: it is open again.
    let back = agent.rollback_to(&checkpoint(&asked).0, None).await.unwrap();
    let again = agent.resume(&handle(&back.active_pending_requests[0]), no()).await.unwrap();
    assert_eq!(kortyx_tests::data(again), json!({"decision": "decline", "all": ["decline"]}));

    // To before it was asked: the next turn pauses.
    agent.rollback_to(&start_of(&agent, "s").await, None).await.unwrap();
    let anew = say(&agent, "s", "go").await;
    assert_eq!(kinds(&anew), ["session", "interrupt", "checkpoint", "done"]);
    let other = answer(&agent, &input_of(&anew)[0], &no()).await;
    assert_eq!(data(&other), json!({"decision": "decline", "all": ["decline"]}));

    // What was branched off before stands.
    let view = agent.get_checkpoint(&kept.checkpoint.summary.id, None).await.unwrap().unwrap();
    assert_eq!(view.state.to_value().unwrap(), json!({"decision": "approve", "all": ["approve"]}));
    let next = say(&agent, "kept", "go").await;
    let next = answer(&agent, &input_of(&next)[0], &no()).await;
    assert_eq!(data(&next)["all"], json!(["approve", "decline"]));
}

/// A child of four nodes, whose third asks; each counts what it does.
fn with_child(counters: &[Counter; 4]) -> (Workflow, Workflow) {
    let does = |counter: &Counter| {
        with(counter.clone(), |ctx: NodeContext, counter| async move {
            ctx.step("does", || async move { Ok::<_, NodeError>(counter.hit()) }).await?;
            Ok(NodeOutput::new())
        })
    };
    let asks = with(counters[2].clone(), |ctx: NodeContext, counter| async move {
        let name = ctx.interrupt("name", Text::new("Name?")).await?;
        ctx.step("does", || async move { Ok::<_, NodeError>(counter.hit()) }).await?;
        Ok(NodeOutput::new().data("name", &name))
    });
    let child = Workflow::builder("child")
        .node("one", does(&counters[0]))
        .node("two", does(&counters[1]))
        .node("three", asks)
        .node("four", does(&counters[3]))
        .edge("one", "two")
        .edge("two", "three")
        .edge("three", "four")
        .build()
        .unwrap();
    let parent = one_node(
        "parent",
        with(child.clone(), |ctx: NodeContext, child| async move {
            let data: Value = ctx.call("child", &child, json!({})).await?;
            Ok(NodeOutput::new().data("child", &data))
        }),
    );
    (parent, child)
}

#[tokio::test]
async fn b159_going_back_to_a_point_inside_a_child_goes_on_there() {
    let (world, counters) = (World::new(), [(); 4].map(|()| Counter::new()));
    let (parent, child) = with_child(&counters);
    let counts = || counters.each_ref().map(Counter::count);
    let builder = world.builder().await.workflow(&parent).workflow(&child).default_workflow("parent");
    let agent = builder.build().await.unwrap();
    let asked = say(&agent, "s", "go").await;
    let point = checkpoint(&asked).0;
    let first = answer(&agent, &input_of(&asked)[0], &ResumeResponse::text("Ann")).await;
    assert_eq!((data(&first), counts()), (json!({"child": {"name": "Ann"}}), [1, 1, 1, 1]));

    let fork = agent.fork(&point, None, None).await.unwrap();
    let back = agent.rollback_to(&point, None).await.unwrap();
    for (at, (open, name)) in
        [(&back.active_pending_requests, "Bob"), (&fork.checkpoint.active_pending_requests, "Cid")]
            .into_iter()
            .enumerate()
    {
        let [open] = open.as_slice() else { panic!("{open:?}") };
        assert_eq!((open.workflow.as_str(), open.node.as_str()), ("child", "three"));
        let done = agent.resume(&handle(open), ResumeResponse::text(name)).await.unwrap();
        assert_eq!(kortyx_tests::data(done), json!({"child": {"name": name}}));
        let times = at as u64 + 2;
        assert_eq!(counts(), [1, 1, times, times], "what came before the point is not done again");
    }
}

#[tokio::test]
async fn b160_a_question_from_before_a_rollback_takes_no_answer_and_the_one_after_does() {
    let world = World::new();
    let agent = world.agent(&deciding()).await;
    let before = input_of(&say(&agent, "s", "go").await).remove(0);
    let back = agent.rollback_to(&start_of(&agent, "s").await, None).await.unwrap();
    assert!(back.active_pending_requests.is_empty());
    let [closed] = back.invalidated_interrupt_tokens.as_slice() else { panic!("{back:?}") };
    assert!(closed.matches(&before.resume_token));
    let after = input_of(&say(&agent, "s", "go").await).remove(0);
    assert!(!after.resume_token.matches(&before.resume_token));
    assert_ne!(after.request_id, before.request_id);
    assert_eq!(refusal(&answer(&agent, &before, &yes()).await), FailureCode::InterruptSuperseded);
    assert_eq!(data(&answer(&agent, &after, &no()).await)["decision"], "decline");
}

#[tokio::test]
async fn b160_an_answer_that_was_accepted_before_a_rollback_answers_nothing_after_it() {
    let world = World::new();
    let agent = world.agent(&deciding()).await;
    let asked = say(&agent, "s", "go").await;
    let question = input_of(&asked).remove(0);
    answer(&agent, &question, &yes()).await;
    let back = agent.rollback_to(&checkpoint(&asked).0, None).await.unwrap();
    let open = &back.active_pending_requests[0];
    // The same answer again gets its first receipt, and touches nothing.
    answer(&agent, &question, &yes()).await;
    let view = agent.get_checkpoint(&back.head, None).await.unwrap().unwrap();
    assert_eq!(view.active_pending_requests.len(), 1);
    let done = agent.resume(&handle(open), no()).await.unwrap();
    assert_eq!(kortyx_tests::data(done)["decision"], "decline");
}

#[tokio::test]
async fn b161_going_back_to_where_a_node_asks_asks_once() {
    let world = World::new();
    let agent = world.agent(&deciding()).await;
    let asked = say(&agent, "s", "go").await;
    answer(&agent, &input_of(&asked)[0], &yes()).await;
    for _ in 0..3 {
        let back = agent.rollback_to(&checkpoint(&asked).0, None).await.unwrap();
        assert_eq!(back.active_pending_requests.len(), 1);
        let scope = Scope::session(session("s"));
        let query = kortyx::store::InterruptQuery { scope, limit: 50, ..Default::default() };
        assert_eq!(agent.list_interrupts(query).await.unwrap().interrupts.len(), 1);
        let done = agent.resume(&handle(&back.active_pending_requests[0]), yes()).await.unwrap();
        assert_eq!(done.status(), "completed");
    }
}

#[tokio::test]
async fn b062_going_back_to_the_head_restarts_nothing() {
    let (world, counters) = (World::new(), [(); 4].map(|()| Counter::new()));
    let (parent, child) = with_child(&counters);
    let builder = world.builder().await.workflow(&parent).workflow(&child).default_workflow("parent");
    let agent = builder.build().await.unwrap();
    let asked = say(&agent, "s", "go").await;
    let question = input_of(&asked).remove(0);
    let back = agent.rollback_to(&checkpoint(&asked).0, None).await.unwrap();
    assert_eq!(back.active_pending_requests[0].request_id, question.request_id, "the very same question");
    let done = answer(&agent, &question, &ResumeResponse::text("Ann")).await;
    assert_eq!(data(&done), json!({"child": {"name": "Ann"}}));
    assert_eq!(counters.each_ref().map(Counter::count), [1, 1, 1, 1]);
}

/// Adds what was said to the conversation's data, after a step that takes a moment.
fn adding() -> Workflow {
    one_node("adding", |ctx| async move {
        let said: ChatInput = ctx.input()?;
        ctx.step("takes a moment", || async {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            Ok::<_, NodeError>(())
        })
        .await?;
        Ok(NodeOutput::new().data(said.input, &true))
    })
}

#[tokio::test]
async fn b096_turns_at_once_in_two_processes_all_stay_reachable_and_mix_nothing() {
    const TURNS: usize = 6;
    let world = World::new();
    let processes = [
        world.process(|builder| builder.workflow(&adding())).await,
        world.process(|builder| builder.workflow(&adding())).await,
    ];
    let turns = (0..TURNS).map(|turn| {
        let agent = processes[turn % 2].agent().clone();
        tokio::spawn(async move { say(&agent, "s", &format!("t{turn}")).await })
    });
    let turns: Vec<_> = turns.collect();
    let mut left = Vec::new();
    for (turn, chunks) in turns.into_iter().enumerate() {
        let chunks = chunks.await.unwrap();
        assert_eq!(data(&chunks)[format!("t{turn}")], json!(true));
        left.push((checkpoint(&chunks), data(&chunks)));
    }
    let agent = processes[0].agent();
    let all = agent.list_checkpoints(&session("s"), None).await.unwrap();
    assert_eq!(all.iter().map(|one| one.turn_index).collect::<Vec<_>>(), (0..=TURNS as u64).collect::<Vec<_>>());
    for pair in all.windows(2) {
        assert_eq!(pair[1].parent_checkpoint_id.as_ref(), Some(&pair[0].id), "one line, without a fork");
    }
    for ((id, place), data) in left {
        let view = agent.get_checkpoint(&id, None).await.unwrap().unwrap();
        assert_eq!(
            (view.summary.turn_index, view.state.to_value().unwrap()),
            (place, data),
            "what was said is what is kept"
        );
    }
}

#[tokio::test]
async fn b113_to_another_tenant_a_sessions_checkpoints_do_not_exist() {
    let world = World::new();
    let agent = world.agent(&deciding()).await;
    let tenant = |name: &str| Scope::default().with("tenant", Scalar::Text(name.into()));
    let turn = |name: &str| {
        let options = ChatOptions::new().session(session("s")).within(tenant(name));
        agent.stream_chat(vec![ChatMessage::user("go")], options)
    };
    let asked = turn("a").collect().await;
    let (id, never_issued) =
        (checkpoint(&asked).0, CheckpointId::new("cp-00000000-0000-4000-8000-000000000000").unwrap());
    let other = Some(tenant("b"));
    let other = other.as_ref();
    assert_eq!(refusal(&turn("b").collect().await), FailureCode::NotFound);
    assert!(agent.list_checkpoints(&session("s"), other).await.unwrap().is_empty());
    for id in [&id, &never_issued] {
        assert!(agent.get_checkpoint(id, other).await.unwrap().is_none());
        assert_eq!(code(agent.rollback_to(id, other).await), FailureCode::NotFound);
        assert_eq!(code(agent.fork(id, None, other).await), FailureCode::NotFound);
    }
    let own = agent.get_checkpoint(&id, Some(&tenant("a"))).await.unwrap().unwrap();
    assert_eq!(own.active_pending_requests.len(), 1, "nothing happened to it");
    assert_eq!(data(&answer(&agent, &input_of(&asked)[0], &yes()).await)["decision"], "approve");
}

#[tokio::test]
async fn a_question_of_a_rollback_or_a_fork_keeps_its_deadline() {
    let world = World::new();
    let agent = world.agent(&deciding()).await;
    let asked = say(&agent, "s", "go").await;
    let deadline = input_of(&asked)[0].expires_at;
    answer(&agent, &input_of(&asked)[0], &yes()).await;
    let id = checkpoint(&asked).0;
    world.advance(std::time::Duration::from_mins(10));
    let fork = agent.fork(&id, None, None).await.unwrap();
    let back = agent.rollback_to(&id, None).await.unwrap();
    for open in [&back.active_pending_requests[0], &fork.checkpoint.active_pending_requests[0]] {
        assert!(open.expires_at() <= deadline, "{} is after {deadline}", open.expires_at());
    }
    answer_open(&agent, &back.active_pending_requests[0]).await;
    world.advance(std::time::Duration::from_mins(6));
    assert_eq!(code(agent.rollback_to(&id, None).await), FailureCode::InterruptExpired);
    assert_eq!(agent.list_checkpoints(&session("s"), None).await.unwrap().len(), 3, "nothing changed");
    let late = agent.resume(&handle(&fork.checkpoint.active_pending_requests[0]), yes()).await;
    assert_eq!(code(late), FailureCode::InterruptExpired);
}

async fn answer_open(agent: &Agent, open: &PendingRequest) {
    assert_eq!(agent.resume(&handle(open), yes()).await.unwrap().status(), "completed");
}

#[tokio::test]
async fn b096_a_crash_at_a_turns_end_leaves_its_checkpoint_or_none_of_it_and_a_recovery_leaves_one() {
    for (moment, op) in
        [(When::Before, Op::Suspend), (When::After, Op::Suspend), (When::Before, Op::Finish), (When::After, Op::Finish)]
    {
        let world = World::new();
        let steps = one_node("steps", |ctx| async move {
            let said: ChatInput = ctx.input()?;
            ctx.step("durable", || async { Ok::<_, NodeError>(1) }).await?;
            if said.input == "ask" {
                ctx.interrupt("gate", approve_or_decline("Ship it?")).await?;
            }
            Ok(NodeOutput::new().data("said", &said.input))
        });
        let registered = steps.clone();
        let process = world.process(move |agent| agent.workflow(&registered)).await;
        let gate = process.store().hold(op, moment);
        let text = if op == Op::Suspend { "ask" } else { "end" };
        let stream =
            process.agent().stream_chat(vec![ChatMessage::user(text)], ChatOptions::new().session(session("s")));
        gate.reached().await;
        process.kill().await;
        assert!(!kinds(&stream.collect().await).contains(&"checkpoint"), "nobody heard of it");

        let elsewhere = world.agent(&steps).await;
        let left = elsewhere.list_checkpoints(&session("s"), None).await.unwrap();
        assert_eq!(left.len(), if moment == When::Before { 1 } else { 2 }, "{moment:?} {op:?}");
        world.advance(std::time::Duration::from_secs(31));
        match moment {
            When::Before => takes_over(&elsewhere).await,
            When::After => {
                assert_eq!(elsewhere.worker().pass().await.unwrap().recovered, 0, "{op:?}: nothing is left to do");
            }
        }
        eventually("it has stopped", || async { elsewhere.driven_runs() == 0 }).await;
        let kept = elsewhere.list_checkpoints(&session("s"), None).await.unwrap();
        assert_eq!(kept.iter().map(|one| one.turn_index).collect::<Vec<_>>(), [0, 1], "{moment:?} {op:?}");
        assert_eq!(kept[1].nodes, ["node"], "what the turn did before the crash is part of it");
    }
}
