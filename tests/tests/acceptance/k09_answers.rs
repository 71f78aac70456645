//! K9: an answer is read as documented, judged before anything changes, and counts for its own question.

use std::time::Duration;

use kortyx::{
    ChatOptions, Choice, ExecuteOptions, Fact, InterruptContract, MultiChoice, NodeContext, NodeError, NodeOutput,
    OrchestratorError, Picker, RefusalReason, Text, Workflow,
    protocol::{
        ChatRequest, ExecutionResult, Failure, FailureCode, Limits, ResumeAnswers, ResumeRequest, ResumeResponse,
        StreamChunk, json as wire,
    },
    store::{InterruptQuery, RunStatus, Scope},
};
use kortyx_tests::{
    Counter, Facts, World, approve_or_decline, code, data, failure, handle, input_of, kinds, one_node, only, questions,
    reason, resume_message, with,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const ANYTHING: InterruptContract<Value, Value> =
    InterruptContract::new("anything").description("Takes any value").schema_id("test.any").version("1");

#[tokio::test]
async fn b121_an_answer_of_every_kind_of_json_reaches_the_node_unchanged() {
    let world = World::new();
    let workflow = one_node("any", |ctx| async move {
        let answer = ctx.interrupt("any", ANYTHING.ask(Value::Null)).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let agent = world.agent(&workflow).await;
    let messages = json!([{"role": "user", "content": "hi"}]);
    for answer in [json!("text"), json!(1.5), json!(true), json!([1, "2", null]), json!({"a": {"b": []}}), messages] {
        let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
        let result = agent.resume(&only(&paused).resume, ResumeResponse::value(answer.clone())).await.unwrap();
        assert_eq!(data(result)["answer"], answer);
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Booking {
    seats: Vec<String>,
    #[schemars(range(min = 1, max = 9))]
    people: u8,
}

const BOOKING: InterruptContract<u8, Booking> =
    InterruptContract::new("booking").description("Which seats").schema_id("test.booking").version("1");

/// Asks for a booking, and counts how often its code ran.
fn booking(entered: &Counter) -> Workflow {
    one_node(
        "booking",
        with(entered.clone(), |ctx, entered| async move {
            entered.hit();
            let booking = ctx.interrupt("booking", BOOKING.ask(1)).await?;
            Ok(NodeOutput::new().data("first", &booking.seats.first()))
        }),
    )
}

#[tokio::test]
async fn b122_a_text_for_a_typed_question_is_refused_before_the_node_sees_it() {
    let world = World::new();
    let entered = Counter::new();
    let workflow = booking(&entered);
    let agent = world.agent(&workflow).await;
    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let gate = only(&paused).resume;
    for text in [
        ResumeResponse::text("window"),
        ResumeResponse::value("window"),
        ResumeResponse::value(json!(["window"])),
        ResumeResponse::value(json!({"seats": "window", "people": 1})),
        ResumeResponse::select(["window"]),
    ] {
        let RefusalReason::Invalid(issues) = reason(agent.resume(&gate, text.clone()).await) else {
            panic!("{text:?} was accepted")
        };
        assert!(!issues.is_empty());
    }
    assert_eq!(entered.count(), 1);
    let fits = ResumeResponse::value(json!({"seats": ["window"], "people": 1}));
    assert_eq!(data(agent.resume(&gate, fits).await.unwrap())["first"], "window");
}

#[tokio::test]
async fn b124_an_invalid_answer_is_told_field_by_field_and_the_next_one_works() {
    let world = World::new();
    let workflow = booking(&Counter::new());
    let facts = Facts::new();
    let agent = world.builder().await.workflow(&workflow).telemetry(facts.clone()).build().await.unwrap();
    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let gate = only(&paused).resume;
    let scope = Scope::session(gate.session_id.clone());

    let wrong = ResumeResponse::value(json!({"seats": ["a", 7], "people": 12}));
    let refused: Failure = agent.resume(&gate, wrong).await.unwrap_err().into();
    let mut paths: Vec<_> = refused.issues.unwrap().into_iter().map(|issue| issue.path).collect();
    paths.sort();
    assert_eq!((refused.code, refused.status), (FailureCode::InvalidResponse, Some(422)));
    assert_eq!(paths, ["/people", "/seats/1"]);
    let run = agent.get_run(&gate.run_id, &scope).await.unwrap().unwrap();
    assert_eq!((run.status, agent.driven_runs()), (RunStatus::Suspended, 0));
    let audited = facts.count(|fact| match fact {
        Fact::AnswerInvalid { request_id, about: Some(about), issues: 2 } => {
            *request_id == gate.request_id && *about.run_id() == gate.run_id
        }
        _ => false,
    });
    assert_eq!(audited, 1, "it is recorded for audit");

    let right = ResumeResponse::value(json!({"seats": ["a"], "people": 2}));
    assert_eq!(agent.resume(&gate, right).await.unwrap().status(), "completed");
}

#[tokio::test]
async fn b124_an_invalid_answer_in_a_chat_brings_the_same_question_again() {
    let world = World::new();
    let workflow = booking(&Counter::new());
    let agent = world.agent(&workflow).await;
    let turn = async |message| agent.stream_chat(vec![message], ChatOptions::new()).collect().await;
    let asked = input_of(&turn(kortyx::protocol::ChatMessage::user("book")).await);

    let again = turn(resume_message(&asked[0], &ResumeResponse::value(json!({"people": 0})))).await;
    assert_eq!(kinds(&again), ["session", "error", "interrupt", "done"]);
    let StreamChunk::Error { failure, .. } = &again[1] else { panic!("{again:?}") };
    assert_eq!(failure.code, FailureCode::InvalidResponse);
    assert_eq!(input_of(&again)[0].request_id, asked[0].request_id);
    let fits = ResumeResponse::value(json!({"seats": [], "people": 1}));
    assert_eq!(kinds(&turn(resume_message(&input_of(&again)[0], &fits)).await), ["session", "checkpoint", "done"]);
}

/// What is asked, and what its answer becomes.
fn documented() -> Workflow {
    one_node("documented", |ctx| async move {
        let kind: String = ctx.input()?;
        let answer = match kind.as_str() {
            "choice" => json!(ctx.interrupt("q", Choice::new("?").option("product", "P").option("1", "One")).await?),
            "multi" => json!(ctx.interrupt("q", MultiChoice::new("?").option("a", "A").option("b", "B")).await?),
            "picker" => json!(ctx.interrupt("q", Picker::new("jobs")).await?),
            "text" => json!(ctx.interrupt("q", Text::new("?")).await?),
            _ => ctx.interrupt("q", ANYTHING.ask(Value::Null)).await?,
        };
        Ok(NodeOutput::new().data("answer", &answer))
    })
}

#[tokio::test]
async fn b123_every_documented_form_of_resume_metadata_is_accepted() {
    let world = World::new();
    let workflow = documented();
    let agent = world.agent(&workflow).await;
    for (kind, form, answer) in [
        ("choice", json!({"selected": ["product"]}), json!("product")),
        ("choice", json!({"selected": "product"}), json!("product")),
        ("choice", json!({"selected": [1]}), json!("1")),
        ("choice", json!({"selected": [{"id": "product", "label": "P"}]}), json!("product")),
        ("choice", json!({"selected": {"choice": {"id": "product"}}}), json!("product")),
        ("choice", json!({"choice": {"id": "product"}}), json!("product")),
        ("multi", json!({"selected": ["b", "a"]}), json!(["b", "a"])),
        ("multi", json!({"selected": {"choices": [{"id": "a"}]}}), json!(["a"])),
        ("multi", json!({"choices": [{"id": "a"}, {"id": "b"}]}), json!(["a", "b"])),
        ("picker", json!({"selected": ["job-123"]}), json!("job-123")),
        ("text", json!({"text": "typed"}), json!("typed")),
        ("text", json!({"selected": ["typed"]}), json!("typed")),
        (
            "value",
            json!({"value": {"type": "select", "jobId": "job-123"}}),
            json!({"type": "select", "jobId": "job-123"}),
        ),
        ("value", json!({"value": null}), Value::Null),
    ] {
        let paused = agent.execute(&workflow, json!(kind), ExecuteOptions::new()).await.unwrap();
        let gate = only(&paused).resume;
        let mut resume = form.clone();
        resume["token"] = gate.token.expose().into();
        resume["requestId"] = gate.request_id.as_str().into();
        let body = json!({"sessionId": gate.session_id, "messages": [
            {"role": "assistant", "content": "?"},
            {"role": "user", "content": "Product", "metadata": {"resume": resume}},
        ]});
        let request = ChatRequest::from_slice(body.to_string().as_bytes(), &Limits::default()).unwrap();
        let options = ChatOptions::new().session(request.session_id.unwrap());
        let chunks = agent.stream_chat(request.messages, options).collect().await;
        let Some(StreamChunk::Done { data: Some(done) }) = chunks.last() else { panic!("{form}: {chunks:?}") };
        assert_eq!((&done.data["answer"], chunks.len()), (&answer, 2), "{kind}: {form}");
    }
}

#[tokio::test]
async fn b123_every_documented_form_of_an_execution_response_is_accepted() {
    let world = World::new();
    let workflow = documented();
    let agent = world.agent(&workflow).await;
    for (kind, form, status) in [
        ("text", json!({"type": "text", "text": "typed"}), "completed"),
        ("choice", json!({"type": "select", "ids": ["product"]}), "completed"),
        ("value", json!({"type": "value", "value": {"a": 1}}), "completed"),
        ("text", json!({"type": "cancel"}), "cancelled"),
    ] {
        let paused = agent.execute(&workflow, json!(kind), ExecuteOptions::new()).await.unwrap();
        let sent: Value = serde_json::from_str(&wire::to_string(&paused).unwrap()).unwrap();
        for field in ["runId", "sessionId", "status", "interrupts", "interrupt", "resume"] {
            assert!(sent.get(field).is_some(), "{field} in {sent}");
        }
        let body = json!({"workflow": "documented", "resume": sent["resume"], "response": form}).to_string();
        let request = ResumeRequest::from_slice(body.as_bytes(), &Limits::default()).unwrap();
        let ResumeAnswers::One(response) = request.answers else { panic!("{body}") };
        assert_eq!(agent.resume(&request.resume, response).await.unwrap().status(), status);
    }
}

/// One call that is settled inline, and two that ask.
fn mixed(inline: &Counter) -> Workflow {
    one_node(
        "mixed",
        with(inline.clone(), |ctx, inline| async move {
            let settled = ctx.step("inline", || async { Ok::<_, NodeError>(inline.hit()) });
            let (settled, a, b) = tokio::join!(
                settled,
                ctx.interrupt("a", approve_or_decline("A?")),
                ctx.interrupt("b", approve_or_decline("B?"))
            );
            Ok(NodeOutput::new().data("all", &json!([settled?, a?, b?])))
        }),
    )
}

#[tokio::test]
async fn b125_exactly_the_open_questions_want_answers_and_settled_ones_may_be_named_again() {
    let world = World::new();
    let inline = Counter::new();
    let workflow = mixed(&inline);
    let agent = world.agent(&workflow).await;
    let approve = ResumeResponse::select(["approve"]);
    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    assert_eq!(questions(&paused), ["a", "b"]);
    let (a, b) = (handle(&paused, "a"), handle(&paused, "b"));

    let half = agent.resume(&a, approve.clone()).await.unwrap();
    assert_eq!(questions(&half), ["b"]);
    let differently = [(a.clone(), ResumeResponse::select(["decline"])), (b.clone(), approve.clone())];
    let OrchestratorError::Refused(refused) = agent.resume_batch(differently).await.unwrap_err() else {
        panic!("it was accepted")
    };
    assert_eq!((refused.len(), &refused[0].request_id, refused[0].index), (1, &a.request_id, 0));
    let query = InterruptQuery { scope: Scope::session(a.session_id.clone()), limit: 9, ..Default::default() };
    assert_eq!(agent.list_interrupts(query).await.unwrap().interrupts.len(), 1, "nothing was applied");

    let again = [(a, approve.clone()), (b, approve)];
    let result = agent.resume_batch(again).await.unwrap();
    assert_eq!((data(result)["all"].clone(), inline.count()), (json!([0, "approve", "approve"]), 1));
}

#[tokio::test]
async fn b125_a_batch_speaks_of_one_run_and_names_no_question_twice() {
    let world = World::new();
    let workflow = mixed(&Counter::new());
    let agent = world.agent(&workflow).await;
    let approve = ResumeResponse::select(["approve"]);
    let one = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let other = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let a = handle(&one, "a");
    for second in [a.clone(), handle(&other, "b")] {
        let batch = [(a.clone(), approve.clone()), (second, approve.clone())];
        assert_eq!(code(agent.resume_batch(batch).await), FailureCode::InvalidRequest);
    }
    for paused in [&one, &other] {
        let query = InterruptQuery { run_id: Some(paused.run_id().clone()), limit: 9, ..Default::default() };
        assert_eq!(agent.list_interrupts(query).await.unwrap().interrupts.len(), 2, "nothing was applied");
    }
}

/// A pause comes from wherever a future of the node asks; it is no error, so there is nothing to catch on the way.
#[tokio::test]
async fn b126_a_pause_is_legal_wherever_a_node_can_wait() {
    async fn validated(ctx: &NodeContext) -> Result<String, NodeError> {
        // A validator that asks.
        match ctx.interrupt("validator", Text::new("Sure?")).await {
            Ok(sure) => Ok(sure),
            Err(_) => Err(NodeError::message("caught")),
        }
    }
    let world = World::new();
    let workflow = one_node("everywhere", |ctx| async move {
        let before = validated(&ctx).await.unwrap_or_else(|_| "swallowed".to_owned());
        let body = tokio::time::timeout(Duration::from_nanos(1), ctx.interrupt("body", Text::new("Body?"))).await;
        let body = body.map_err(|_| NodeError::message("the timeout fired"))??;
        let mut in_a_loop = Vec::new();
        for id in ["one", "two"] {
            in_a_loop.push(ctx.interrupt(id, Text::new("?")).await?);
        }
        let boxed: std::pin::Pin<Box<dyn Future<Output = Result<String, NodeError>> + Send>> =
            Box::pin(ctx.interrupt("boxed", Text::new("Boxed?")));
        let stream = ctx.structured("live", "draft");
        stream.set("asked", &ctx.interrupt("stream", Text::new("Stream?")).await?).await?;
        Ok(NodeOutput::new()
            .data("all", &json!([before, body, in_a_loop, boxed.await?]))
            .data("after", &ctx.interrupt("after", Text::new("After?")).await?))
    });
    let agent = world.agent(&workflow).await;
    let mut result = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let mut asked = Vec::new();
    while let ExecutionResult::Suspended { .. } = &result {
        let question = only(&result);
        asked.extend(question.input.id.clone());
        result = agent.resume(&question.resume, ResumeResponse::text("ok")).await.unwrap();
    }
    assert_eq!(asked, ["validator", "body", "one", "two", "stream", "boxed", "after"]);
    assert_eq!(data(result)["all"], json!(["ok", "ok", ["ok", "ok"], "ok"]));
}

/// A step is work that is done once; a question is asked beside it, and one within is refused at once.
#[tokio::test]
async fn b126_a_question_inside_a_step_is_refused_and_never_waits() {
    let world = World::new();
    let workflow = one_node("in-a-step", |ctx| async move {
        let answer = ctx.step("step", || async { ctx.interrupt("ask", Text::new("Well?")).await }).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    });
    let agent = world.agent(&workflow).await;
    let run = agent.execute(&workflow, json!({}), ExecuteOptions::new());
    let outcome = tokio::time::timeout(Duration::from_secs(20), run).await.expect("it waits for ever").unwrap();
    assert_eq!(failure(outcome).code, FailureCode::ExecutionFailed);
}
