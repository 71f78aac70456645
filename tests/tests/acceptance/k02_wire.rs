//! K2: the same, as clients on the wire meet it.

use kortyx::{
    Agent, ChatOptions, ExecuteOptions, NodeOutput, OnDisconnect, Text, Workflow,
    protocol::{
        ChatMessage, Limits, RequestId, ResumeAnswers, ResumeRequest, ResumeResponse, SessionId, StreamChunk,
        json as wire,
    },
    store::{InterruptQuery, Scope},
};
use kortyx_tests::{World, handle, input_of, kinds, one_node, questions, resume_message};
use serde_json::{Value, json};

/// Asks in those of three branches that the input names.
fn asks_in() -> Workflow {
    one_node("some", |ctx| async move {
        let asking: Vec<String> = match ctx.input::<Value>()? {
            Value::Array(branches) => branches.iter().map(ToString::to_string).collect(),
            // A chat turn brings `{"input": "0 2"}`.
            input => input["input"].as_str().unwrap_or_default().split_whitespace().map(str::to_owned).collect(),
        };
        let ask = async |branch: &str| {
            if !asking.iter().any(|asking| asking == branch) {
                return Ok(None);
            }
            ctx.interrupt(branch, Text::new(format!("Branch {branch}?"))).await.map(Some)
        };
        let (a, b, c) = tokio::join!(ask("0"), ask("1"), ask("2"));
        Ok(NodeOutput::new().data("answers", &[a?, b?, c?]))
    })
}

async fn listed(agent: &Agent, session_id: &SessionId) -> Vec<String> {
    let query = InterruptQuery { scope: Scope::session(session_id.clone()), limit: 50, ..Default::default() };
    let page = agent.list_interrupts(query).await.unwrap();
    let mut ids: Vec<_> = page.interrupts.into_iter().filter_map(|interrupt| interrupt.input.id).collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn b034_every_surface_shows_every_open_question() {
    let world = World::new();
    let workflow = asks_in();
    let agent = world.agent(&workflow).await;
    for asking in [vec!["2"], vec!["0", "2"], vec![]] {
        let input = Value::Array(asking.iter().map(|branch| branch.parse::<u64>().unwrap().into()).collect());
        let result = agent.execute(&workflow, input, ExecuteOptions::new()).await.unwrap();
        assert_eq!(questions(&result), asking, "the result of the call");
        assert_eq!(result.status(), if asking.is_empty() { "completed" } else { "suspended" });
        assert_eq!(listed(&agent, result.session_id()).await, asking, "the listing");

        let session = SessionId::new(format!("session-{}", asking.len())).unwrap();
        let turn = vec![ChatMessage::user(asking.join(" "))];
        let chunks = agent.stream_chat(turn, ChatOptions::new().session(session.clone())).collect().await;
        let mut streamed: Vec<_> = input_of(&chunks).into_iter().filter_map(|chunk| chunk.id).collect();
        streamed.sort();
        assert_eq!(streamed, asking, "the stream");
        assert_eq!(listed(&agent, &session).await, asking, "the listing, after the stream");
    }
}

/// Ids are part of every form of answer: what names no question is not an answer to whichever is open.
#[tokio::test]
async fn b026_an_answer_that_names_no_question_is_refused_or_is_an_ordinary_turn() {
    let world = World::new();
    let child = one_node("child", |ctx| async move {
        let (left, right) = ctx.interrupt_all((("left", Text::new("Left?")), ("right", Text::new("Right?")))).await?;
        Ok(NodeOutput::new().data("answers", &[left, right]))
    });
    let parent = one_node(
        "parent",
        kortyx_tests::with(child.clone(), |ctx, child| async move {
            if ctx.input::<Value>()?.get("input").is_some() {
                return Ok(NodeOutput::new());
            }
            Ok(NodeOutput::new().data("child", &ctx.call("child", &child, json!({})).await?))
        }),
    );
    let builder = world.builder().await.workflow(&child).workflow(&parent);
    let agent = builder.default_workflow("parent").build().await.unwrap();
    let paused = agent.execute(&parent, json!({}), ExecuteOptions::new()).await.unwrap();
    let left = handle(&paused, "left");

    let token = left.token.expose();
    for bare in [
        json!({"response": {"type": "text", "text": "x"}}),
        json!({"resume": {"token": token, "sessionId": left.session_id, "runId": left.run_id},
               "response": {"type": "text", "text": "x"}}),
        json!({"resume": left, "responses": [{"response": {"type": "text", "text": "x"}}]}),
    ] {
        let refused = ResumeRequest::from_slice(bare.to_string().as_bytes(), &Limits::default());
        assert!(refused.is_err(), "{bare}");
    }
    for bare in [json!({"text": "x"}), json!({"token": token, "text": "x"}), json!({"requestId": "", "token": token})] {
        let mut message = ChatMessage::user("x");
        message.metadata = json!({ "resume": bare }).as_object().cloned();
        let options = ChatOptions::new().session(left.session_id.clone());
        let chunks = agent.stream_chat(vec![message], options).collect().await;
        assert_eq!(kinds(&chunks), ["session", "checkpoint", "done"], "an ordinary turn: {bare}");
    }
    assert_eq!(listed(&agent, &left.session_id).await, ["left", "right"]);
}

#[tokio::test]
async fn b035_one_two_and_ten_answers_have_one_wire_format() {
    let world = World::new();
    let workflow = one_node("many", |ctx| async move {
        let count: usize = ctx.input()?;
        let asks: Vec<_> = (0..count).map(|at| (format!("ask-{at}"), Text::new("?"))).collect();
        let answers = ctx.interrupt_all(asks).await?;
        Ok(NodeOutput::new().data("answers", &answers))
    });
    let agent = world.agent(&workflow).await;
    for count in [1_usize, 2, 10] {
        let paused = agent.execute(&workflow, json!(count), ExecuteOptions::new()).await.unwrap();
        // What the client got, as it got it.
        let sent: Value = serde_json::from_str(&wire::to_string(&paused).unwrap()).unwrap();
        let responses: Vec<_> = sent["interrupts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|question| {
                let text = format!("to {}", question["input"]["id"].as_str().unwrap());
                json!({"requestId": question["requestId"], "response": {"type": "text", "text": text}})
            })
            .collect();
        let body = json!({"resume": sent["resume"], "responses": responses}).to_string();

        let request = ResumeRequest::from_slice(body.as_bytes(), &Limits::default()).unwrap();
        let ResumeAnswers::Batch(batch) = request.answers else { panic!("{body}") };
        let answers = batch.into_iter().map(|answer| (answer.request_id, answer.response));
        let scope = Scope::session(request.resume.session_id);
        let result = agent.answer_batch(answers, scope, None).await.unwrap();
        let own: Vec<_> = (0..count).map(|at| format!("to ask-{at}")).collect();
        assert_eq!(kortyx_tests::data(result)["answers"], json!(own));
    }
}

#[tokio::test]
async fn b037_an_older_question_is_answered_after_the_conversation_went_on() {
    let world = World::new();
    let workflow = asks_in();
    let agent = world.builder().await.workflow(&workflow).on_disconnect(OnDisconnect::GoOn).build().await.unwrap();
    let session = SessionId::new("session-moving-on").unwrap();
    let turn = async |message: ChatMessage| -> Vec<StreamChunk> {
        agent.stream_chat(vec![message], ChatOptions::new().session(session.clone())).collect().await
    };
    let first = input_of(&turn(ChatMessage::user("0")).await);
    assert_eq!(kinds(&turn(ChatMessage::user("nothing to ask")).await), ["session", "checkpoint", "done"]);
    let second = input_of(&turn(ChatMessage::user("1")).await);

    let answered = turn(resume_message(&first[0], &ResumeResponse::text("to the first"))).await;
    let Some(StreamChunk::Done { data: Some(done) }) = answered.last() else { panic!("{answered:?}") };
    assert_eq!(done.data["answers"], json!(["to the first", null, null]));
    assert_eq!(listed(&agent, &session).await, ["1"]);
    let answered = turn(resume_message(&second[0], &ResumeResponse::text("to the second"))).await;
    let Some(StreamChunk::Done { data: Some(done) }) = answered.last() else { panic!("{answered:?}") };
    assert_eq!(done.data["answers"], json!([null, "to the second", null]));
}

/// Ids survive the way to a client and back.
#[test]
fn b026_a_request_id_is_read_as_it_was_written() {
    let id = RequestId::from_random([1; 16]);
    assert_eq!(wire::from_str::<RequestId>(&wire::to_string(&id).unwrap()).unwrap(), id);
}
