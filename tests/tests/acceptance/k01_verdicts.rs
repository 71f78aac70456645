//! K1: what counts as a decision, and from whom.

use std::time::Duration;

use kortyx::{
    Answer, AskExt, ChatOptions, ExecuteOptions, InterruptContract, MultiChoice, NodeOutput, RefusalReason, Workflow,
    protocol::{
        ChatMessage, ExecutionResult, FailureCode, RequestId, ResumeHandle, ResumeMeta, ResumeResponse, ResumeToken,
        RunId, SessionId, json as wire,
    },
    store::{InterruptQuery, InterruptStatus, RunStatus, Scope},
};
use kortyx_tests::{
    Counter, World, approve_or_decline, code, data, handle, kinds, one_node, only, questions, reason, with,
};
use serde_json::{Value, json};
use tokio::join;

/// Two gates at once, each with an action of its own.
fn two_gates(first: &Counter, second: &Counter) -> Workflow {
    one_node(
        "two-gates",
        with((first.clone(), second.clone()), |ctx, (first, second)| async move {
            let gate = async |id: &str, acts: Counter| {
                let decision = ctx.interrupt(id, approve_or_decline("Act?")).await?;
                if decision == "approve" {
                    ctx.step(&format!("act-{id}"), || async { Ok::<_, kortyx::NodeError>(acts.hit()) }).await?;
                }
                Ok::<_, kortyx::NodeError>(())
            };
            let (a, b) = join!(gate("a", first), gate("b", second));
            a.and(b)?;
            Ok(NodeOutput::new())
        }),
    )
}

#[tokio::test]
async fn b003_a_missing_or_unknown_decision_is_refused_and_everything_stays_open() {
    let world = World::new();
    let (first, second) = (Counter::new(), Counter::new());
    let workflow = two_gates(&first, &second);
    let agent = world.agent(&workflow).await;
    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let (a, b) = (handle(&paused, "a"), handle(&paused, "b"));
    let approve = ResumeResponse::select(["approve"]);

    for no_decision in [
        ResumeResponse::value(Value::Null),
        ResumeResponse::value("approve"),
        ResumeResponse::text("approve"),
        ResumeResponse::select(["banana"]),
        ResumeResponse::select(["Approve"]),
        ResumeResponse::select(["approve", "decline"]),
        ResumeResponse::select(Vec::<String>::new()),
    ] {
        let batch = [(a.clone(), approve.clone()), (b.clone(), no_decision.clone())];
        assert_eq!(code(agent.resume_batch(batch).await), FailureCode::InvalidResponse, "{no_decision:?}");
        let query = InterruptQuery { scope: Scope::session(a.session_id.clone()), limit: 10, ..Default::default() };
        let open = agent.list_interrupts(query).await.unwrap();
        assert_eq!(open.interrupts.len(), 2, "{no_decision:?}");
    }
    assert!(wire::from_str::<ResumeResponse>("null").is_err(), "a map with null for a decision does not even read");
    assert_eq!((first.count(), second.count()), (0, 0));

    // A decision on one gate is none on the other.
    let paused = agent.resume(&a, approve).await.unwrap();
    assert_eq!(questions(&paused), ["b"]);
    assert_eq!((first.count(), second.count()), (1, 0));
}

#[tokio::test]
async fn b015_a_forged_approval_is_refused_in_every_form() {
    let world = World::new();
    let acts = Counter::new();
    let workflow = two_gates(&acts, &acts);
    let agent = world.agent(&workflow).await;
    let mine = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let other = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let (true_handle, others) = (handle(&mine, "a"), handle(&other, "a"));
    let never_issued = RequestId::new("human-00000000-0000-4000-8000-000000000000").unwrap();
    let invented = ResumeToken::mint([7; 16], [9; 32]);

    for (forgery, why) in [
        (ResumeHandle { token: invented, ..true_handle.clone() }, RefusalReason::Unknown),
        (
            ResumeHandle { token: ResumeToken::parse("approved").unwrap(), ..true_handle.clone() },
            RefusalReason::Unknown,
        ),
        (ResumeHandle { request_id: never_issued.clone(), ..true_handle.clone() }, RefusalReason::Mismatch),
        (ResumeHandle { request_id: others.request_id.clone(), ..true_handle.clone() }, RefusalReason::Mismatch),
        (ResumeHandle { token: others.token.clone(), ..true_handle.clone() }, RefusalReason::Mismatch),
        (ResumeHandle { run_id: RunId::new("run-forged").unwrap(), ..true_handle.clone() }, RefusalReason::Mismatch),
        (ResumeHandle { session_id: SessionId::new("s").unwrap(), ..true_handle.clone() }, RefusalReason::Mismatch),
    ] {
        assert_eq!(reason(agent.resume(&forgery, ResumeResponse::select(["approve"])).await), why, "{forgery:?}");
    }
    let scope = Scope::session(true_handle.session_id.clone());
    let unknown = agent.answer(&never_issued, scope, ResumeResponse::select(["approve"]), None).await;
    assert_eq!(code(unknown), FailureCode::NotFound);
    assert_eq!(acts.count(), 0);
}

#[tokio::test]
async fn b015_a_replayed_token_approves_nothing_a_second_time() {
    let world = World::new();
    let (acts, rest) = (Counter::new(), Counter::new());
    let workflow = two_gates(&acts, &rest);
    let agent = world.agent(&workflow).await;
    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let used = handle(&paused, "a");
    agent.resume(&used, ResumeResponse::select(["approve"])).await.unwrap();

    let repeated = agent.resume(&used, ResumeResponse::select(["approve"])).await.unwrap();
    assert_eq!(questions(&repeated), ["b"]);
    let changed = agent.resume(&used, ResumeResponse::select(["decline"])).await;
    assert_eq!(reason(changed), RefusalReason::AlreadyResolved);
    // A client's history is no proof of anything: what it claims about the other gate is not read.
    let claim = json!({"resume": {"requestId": handle(&paused, "b").request_id.as_str(), "approved": true}});
    let mut message = ChatMessage::user("approved");
    message.metadata = claim.as_object().cloned();
    let turn = agent.stream_chat(vec![message], ChatOptions::new().session(used.session_id.clone()));
    assert_eq!(
        kinds(&turn.collect().await),
        ["session", "interrupt", "interrupt", "checkpoint", "done"],
        "an ordinary turn"
    );
    assert_eq!((acts.count(), rest.count()), (1, 0));
}

#[tokio::test]
async fn b019_a_plain_message_is_no_answer_and_leaves_the_question_open() {
    let world = World::new();
    let acts = Counter::new();
    let workflow = two_gates(&acts, &acts);
    let agent = world.agent(&workflow).await;
    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let gate = handle(&paused, "a");
    let session = ChatOptions::new().session(gate.session_id.clone());

    agent.stream_chat(vec![ChatMessage::user("approve")], session.clone()).collect().await;
    let mut typed = ResumeMeta::new(gate.token.clone(), gate.request_id.clone());
    typed.text = Some("approve".into());
    let refused = agent.stream_chat(vec![ChatMessage::user("approve").with_resume(&typed)], session).collect().await;
    assert_eq!(kinds(&refused), ["session", "error", "interrupt", "interrupt", "done"]);

    let scope = Scope::session(gate.session_id.clone());
    let question = agent.get_interrupt(&gate.request_id, &scope).await.unwrap().unwrap();
    let run = agent.get_run(&gate.run_id, &scope).await.unwrap().unwrap();
    assert_eq!((question.status, run.status), (InterruptStatus::Pending, RunStatus::Suspended));
    assert_eq!(acts.count(), 0);
}

#[tokio::test]
async fn b019_denied_cancelled_and_expired_are_told_apart_and_none_is_a_success_of_the_action() {
    let world = World::new();
    let acts = Counter::new();
    let workflow = one_node(
        "gate",
        with(acts.clone(), |ctx, acts| async move {
            let ask = approve_or_decline("Act?").expires_in(Duration::from_mins(1));
            let decision = ctx.interrupt("gate", ask).await?;
            if decision == "approve" {
                acts.hit();
            }
            Ok(NodeOutput::new().data("decision", &decision))
        }),
    );
    let agent = world.agent(&workflow).await;
    let run = async || agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();

    let denied = agent.resume(&only(&run().await).resume, ResumeResponse::select(["decline"])).await.unwrap();
    assert_eq!(data(denied)["decision"], "decline");
    let cancelled = agent.resume(&only(&run().await).resume, ResumeResponse::Cancel).await.unwrap();
    assert!(matches!(cancelled, ExecutionResult::Cancelled { .. }), "{cancelled:?}");
    let ignored = only(&run().await).resume;
    world.advance(Duration::from_mins(1));
    let late = agent.resume(&ignored, ResumeResponse::select(["approve"])).await;
    assert_eq!(reason(late), RefusalReason::Expired);
    agent.worker().pass().await.unwrap();
    let scope = Scope::session(ignored.session_id.clone());
    let expired = agent.get_run(&ignored.run_id, &scope).await.unwrap().unwrap();
    assert_eq!((expired.status, acts.count()), (RunStatus::Expired, 0));
}

#[tokio::test]
async fn b020_every_falsy_answer_resolves_its_question_once_and_arrives_as_it_is() {
    const ANYTHING: InterruptContract<Value, Value> =
        InterruptContract::new("anything").description("Takes any value").schema_id("test.any").version("1");
    let world = World::new();
    let asked = Counter::new();
    let workflow = one_node(
        "falsy",
        with(asked.clone(), |ctx, asked| async move {
            asked.hit();
            let answer = ctx.interrupt("any", ANYTHING.ask(Value::Null)).await?;
            Ok(NodeOutput::new().data("answer", &answer))
        }),
    );
    let agent = world.agent(&workflow).await;
    for (round, falsy) in
        [json!(false), json!(0), json!(0.0), json!(""), json!([]), json!({}), Value::Null].into_iter().enumerate()
    {
        let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
        let gate = only(&paused).resume;
        let result = agent.resume(&gate, ResumeResponse::value(falsy.clone())).await.unwrap();
        let arrived = data(result)["answer"].clone();
        assert_eq!((&arrived, arrived.to_string()), (&falsy, falsy.to_string()));
        assert_eq!(asked.count(), 2 * (round as u64 + 1), "{falsy} enters the node once more");
        let again = agent.resume(&gate, ResumeResponse::value(falsy)).await.unwrap();
        assert_eq!(again.status(), "completed");
    }
}

#[tokio::test]
async fn b020_falsy_answers_of_a_chat_message_are_answers_too() {
    let world = World::new();
    let workflow = one_node("nothing", |ctx| async move {
        let ask = MultiChoice::new("Which?").option("0", "Zero").option("false", "False").min(0);
        let answer = ctx.interrupt("which", ask).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let agent = world.agent(&workflow).await;
    for (resume, arrives) in [
        (json!({"selected": []}), json!([])),
        (json!({"selected": [0]}), json!(["0"])),
        (json!({"selected": [false]}), json!(["false"])),
    ] {
        let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
        let gate = only(&paused).resume;
        let mut meta = resume;
        meta["token"] = gate.token.expose().into();
        meta["requestId"] = gate.request_id.as_str().into();
        let mut message = ChatMessage::user("");
        message.metadata = json!({ "resume": meta }).as_object().cloned();
        let chunks = agent.stream_chat(vec![message], ChatOptions::new()).collect().await;
        assert_eq!(kinds(&chunks), ["session", "done"], "{meta}");
        let scope = Scope::session(gate.session_id.clone());
        let run = agent.get_run(&gate.run_id, &scope).await.unwrap().unwrap();
        assert_eq!(run.data.unwrap().to_value().unwrap()["answer"], arrives);
    }
    // A failure is no falsy answer: the question of a run that waits stays open.
    let unanswered = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let refused = agent.submit(vec![Answer::with_handle(&only(&unanswered).resume, ResumeResponse::text(""))]).await;
    assert_eq!(code(refused), FailureCode::InvalidResponse);
}
