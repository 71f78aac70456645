//! K1 to K5, K9, K10 and K15 for the calls of a model: what people decide about them counts, in whatever process, on every store.
//!
//! Cases that no store has a part in are proved in `kortyx-reason`; `CASES.md` there lists them all.

use std::sync::{Arc, Mutex};

use kortyx::{
    ChatOptions, ExecuteOptions, InterruptContract, NodeOutput, Workflow,
    protocol::{
        ChatMessage, ExecutionResult, FailureCode, ResumeHandle, ResumeMeta, ResumeResponse, ResumeToken, SessionId,
        StreamChunk,
    },
    reason::{FunctionTool, Interrupts, Reason, ReasonExt as _, Script, ScriptedModel, ToolContext, ToolError, tool},
    store::{CancelTarget, InterruptStatus, Scope},
};
use kortyx_tests::{World, code, data, input_of, kinds, one_node, resume_message, with};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Serialize, Deserialize, JsonSchema)]
struct Order {
    what: String,
}

/// What ran, in order.
#[derive(Clone, Default)]
struct Runs(Arc<Mutex<Vec<String>>>);

impl Runs {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// A tool that says what it ran with.
    fn tool(&self, name: &str) -> FunctionTool<Order> {
        let runs = self.clone();
        tool(name, "Does something", move |order: Order, _: ToolContext| {
            runs.0.lock().unwrap().push(order.what.clone());
            async move { Ok::<_, ToolError>(order.what) }
        })
    }
}

#[derive(Serialize, JsonSchema)]
struct Asked {
    question: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Answered {
    answer: String,
}

const WHICH: InterruptContract<Asked, Answered> =
    InterruptContract::new("which").description("Which one is meant").schema_id("tests.which").version("1");

const ASK: &str = "kortyx_request_input__which";

/// A node that reasons: `order` is approved, `note` is not, and the model may ask.
fn shop(model: &ScriptedModel, runs: &Runs) -> Workflow {
    let node = with((model.clone(), runs.clone()), |ctx, (model, runs)| async move {
        let reason = Reason::new(model).input("Go.").max_steps(20).interrupts(Interrupts::optional().contract(&WHICH));
        let reason = reason.tool(runs.tool("order").approve_always()).tool(runs.tool("note"));
        let done = ctx.reason("shop", reason.emit()).await?;
        let results: Vec<Value> = done.tool_results.iter().map(|it| json!([it.status, it.arguments["what"]])).collect();
        Ok(NodeOutput::new().data("results", &results).data("asked", &done.interrupt_history.answers(&WHICH)?.len()))
    });
    one_node("shop", node)
}

/// A model that makes these calls in its first turn and is done in its second.
fn calling<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str)>) -> ScriptedModel {
    let first = calls.into_iter().fold(Script::new(), |script, (tool, what)| script.call(tool, arguments(tool, what)));
    ScriptedModel::new([first, Script::new().text("Done.")])
}

fn arguments(tool: &str, what: &str) -> Value {
    if tool == ASK { json!({ "question": what }) } else { json!({ "what": what }) }
}

/// What answers the question about this call.
fn about(result: &ExecutionResult, what: &str) -> ResumeHandle {
    let is_about = |request: &Value| [&request["arguments"]["what"], &request["question"]].contains(&&json!(what));
    let mut open = result.interrupts().iter();
    open.find(|question| question.input.request.as_ref().is_some_and(is_about)).unwrap().resume.clone()
}

fn approve() -> ResumeResponse {
    ResumeResponse::value(json!({"decision": "approve"}))
}

fn reject() -> ResumeResponse {
    ResumeResponse::value(json!({"decision": "reject"}))
}

#[tokio::test]
async fn b015_a_forged_approval_of_a_call_is_refused_in_every_form() {
    let (world, runs) = (World::new(), Runs::default());
    let workflow = shop(&calling([("order", "tea")]), &runs);
    let agent = world.agent(&workflow).await;
    let mine = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let other = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let (gate, others) = (about(&mine, "tea"), about(&other, "tea"));
    for forged in [
        ResumeHandle { token: ResumeToken::mint([7; 16], [9; 32]), ..gate.clone() },
        ResumeHandle { token: others.token.clone(), ..gate.clone() },
        ResumeHandle { request_id: others.request_id.clone(), ..gate.clone() },
    ] {
        agent.resume(&forged, approve()).await.unwrap_err();
    }
    for unfit in [json!({"arguments": {"what": 5}}), json!({"arguments": null}), json!({"digest": "of another call"})] {
        let mut answer = json!({"decision": "approve"});
        answer.as_object_mut().unwrap().extend(unfit.as_object().unwrap().clone());
        assert_eq!(code(agent.resume(&gate, ResumeResponse::value(answer)).await), FailureCode::InvalidResponse);
    }
    assert_eq!(runs.all(), [""; 0]);

    let done = data(agent.resume(&gate, approve()).await.unwrap());
    let replayed = data(agent.resume(&gate, approve()).await.unwrap());
    assert_eq!((done["results"].clone(), runs.all()), (replayed["results"].clone(), vec!["tea".to_owned()]));
    agent.resume(&gate, reject()).await.unwrap_err();
}

/// Six calls of one turn, answered out of order, each in another process: an answer reaches its own call, what is open is exactly
/// what is not answered, and the calls run in the model's order when all are.
#[tokio::test]
async fn b021_b036_b125_calls_of_one_turn_have_questions_of_their_own_and_each_gets_its_answer() {
    let (world, runs) = (World::new(), Runs::default());
    let turn = [("note", "first"), ("order", "a"), (ASK, "which?"), ("order", "b"), ("note", "free"), ("order", "c")];
    let workflow = shop(&calling(turn), &runs);
    let agent = world.agent(&workflow).await;
    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    assert_eq!((paused.interrupts().len(), runs.all()), (4, vec!["first".to_owned()]));
    let edited = |what: &str| ResumeResponse::value(json!({"decision": "approve", "arguments": {"what": what}}));
    let answer = ResumeResponse::value(json!({"answer": "this"}));
    let mut last = None;
    for (what, response, left) in
        [("c", edited("C"), 3), ("a", edited("A"), 2), ("which?", answer, 1), ("b", reject(), 0)]
    {
        let elsewhere = world.agent(&workflow).await;
        let result = elsewhere.resume(&about(&paused, what), response.clone()).await.unwrap();
        assert_eq!(result.interrupts().len(), left, "after {what}");
        let again = elsewhere.resume(&about(&paused, what), response).await.unwrap();
        assert_eq!(again.interrupts().len(), left, "a repeat of {what} changes nothing");
        last = Some(again);
    }
    let results = json!([
        ["completed", "first"],
        ["completed", "A"],
        ["rejected", "b"],
        ["completed", "free"],
        ["completed", "C"]
    ]);
    assert_eq!(data(last.unwrap()), json!({"results": results, "asked": 1}));
    assert_eq!(runs.all(), ["first", "A", "free", "C"]);
}

/// The model orders, asks and orders again, five times over; each answer comes to another process. The approved call goes on from its
/// record: the model is not asked for it again.
#[tokio::test]
async fn b044_b070_b072_every_pause_resumes_alike_and_what_ran_before_runs_once() {
    let (world, runs) = (World::new(), Runs::default());
    let call = |tool: &str, what: &str| Script::new().call(tool, arguments(tool, what));
    let scripts = [
        call("order", "one").call("note", arguments("note", "beside")),
        call(ASK, "which?"),
        call("note", "looked up"),
        call("order", "two"),
        call("order", "three"),
        call("order", "four"),
        Script::new().text("Done."),
    ];
    let model = ScriptedModel::new(scripts);
    let workflow = shop(&model, &runs);
    let agent = world.agent(&workflow).await;
    let mut result = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let answer = ResumeResponse::value(json!({"answer": "this"}));
    for (what, response) in
        [("one", approve()), ("which?", answer), ("two", approve()), ("three", reject()), ("four", approve())]
    {
        result = world.agent(&workflow).await.resume(&about(&result, what), response).await.unwrap();
    }
    let results = json!([
        ["completed", "one"],
        ["completed", "beside"],
        ["completed", "looked up"],
        ["completed", "two"],
        ["rejected", "three"],
        ["completed", "four"],
    ]);
    assert_eq!(data(result), json!({"results": results, "asked": 1}));
    assert_eq!(
        (runs.all(), model.played().len()),
        (["one", "beside", "looked up", "two", "four"].map(String::from).into(), 7)
    );
}

/// The decision is bound to the recorded call. A chat turn may bring a context, which is that of a fresh run only.
#[tokio::test]
async fn b077_b092_an_approval_counts_in_a_process_that_never_saw_the_call_whatever_context_it_brings() {
    let world = World::new();
    for options in [ChatOptions::new(), ChatOptions::new().context("approvals", json!({}))] {
        let runs = Runs::default();
        let workflow = shop(&calling([("order", "tea")]), &runs);
        let begun = ExecuteOptions::new().context("tenant", "a");
        let paused = world.agent(&workflow).await.execute(&workflow, json!({}), begun).await.unwrap();
        let gate = about(&paused, "tea");
        let mut meta = ResumeMeta::new(gate.token.clone(), gate.request_id.clone());
        meta.value = Some(json!({"decision": "approve"}));
        let elsewhere = world.agent(&workflow).await;
        let message = ChatMessage::user("").with_resume(&meta);
        let chunks = elsewhere.stream_chat(vec![message], options).collect().await;
        assert_eq!(chunks.last().map(StreamChunk::kind), Some("done"));
        assert!(!kinds(&chunks).contains(&"interrupt"), "it is not asked again: {chunks:?}");
        assert_eq!(runs.all(), ["tea"]);
    }
}

#[tokio::test]
async fn b049_b131_b143_a_rejected_call_is_as_final_as_an_approved_one_in_store_and_stream() {
    let (world, runs) = (World::new(), Runs::default());
    let model = calling([("order", "tea"), ("note", "free"), ("order", "cake")]);
    let workflow = shop(&model, &runs);
    let agent = world.agent(&workflow).await;
    let id = SessionId::new("session-tools").unwrap();
    let options = || ChatOptions::new().session(id.clone());
    // The stream alone says what there is to decide.
    let asked = input_of(&agent.stream_chat(vec![ChatMessage::user("go")], options()).collect().await);
    let what =
        |chunk: &kortyx::protocol::InterruptChunk| chunk.input.request.clone().unwrap()["arguments"]["what"].clone();
    assert_eq!(asked.iter().map(what).collect::<Vec<_>>(), ["tea", "cake"]);
    let mut said = Vec::new();
    for (chunk, decision) in asked.iter().zip([approve(), reject()]) {
        said.extend(agent.stream_chat(vec![resume_message(chunk, &decision)], options()).collect().await);
    }
    let ends: Vec<&str> = kinds(&said).into_iter().filter(|kind| kind.starts_with("tool-call-")).collect();
    assert_eq!(
        ends,
        ["start", "result", "start", "result", "start", "error"].map(|end| format!("tool-call-{end}")),
        "every call has begun and ended"
    );
    let Some(StreamChunk::Done { data: Some(done) }) = said.last() else { panic!("{said:?}") };
    assert_eq!(done.data["results"], json!([["completed", "tea"], ["completed", "free"], ["rejected", "cake"]]));
    for chunk in &asked {
        let question = agent.get_interrupt(&chunk.request_id, &Scope::session(id.clone())).await.unwrap().unwrap();
        assert_eq!(question.status, InterruptStatus::Answered);
    }
    assert_eq!((runs.all(), model.played().len()), (vec!["tea".to_owned(), "free".to_owned()], 2), "one continuation");
}

/// Approval is a property of the tool and not of a call of the agent: it holds on every path, and for every call.
#[tokio::test]
async fn b174_an_approval_is_asked_on_every_path_and_for_every_call() {
    let world = World::new();
    let (runs, call) = (Runs::default(), |what: &str| Script::new().call("order", json!({ "what": what })));
    let model = ScriptedModel::new([call("a"), call("b"), call("c"), Script::new().text("Done.")]);
    let workflow = shop(&model, &runs);
    let agent = world.agent(&workflow).await;
    let by_type = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let null = kortyx::protocol::RawJson::null();
    let by_id = agent.execute_by_id("shop", None, null, ExecuteOptions::new()).await.unwrap();
    for mut result in [by_type, by_id] {
        let mut asked = 0;
        while let [question] = result.interrupts() {
            asked += 1;
            result = world.agent(&workflow).await.resume(&question.resume.clone(), approve()).await.unwrap();
        }
        assert_eq!((asked, result.status()), (3, "completed"));
    }
    let chunks = agent.stream_chat(vec![ChatMessage::user("go")], ChatOptions::new()).collect().await;
    assert_eq!((input_of(&chunks).len(), runs.all().len()), (1, 6));
}

/// Cancelled at its question, a call leaves nothing behind that a later turn would trip over.
#[tokio::test]
async fn b168_b169_a_run_that_is_cancelled_at_a_call_is_over_and_the_next_message_works() {
    let (world, runs) = (World::new(), Runs::default());
    let workflow = shop(&calling([("note", "free"), ("order", "tea")]), &runs);
    let agent = world.agent(&workflow).await;
    let id = SessionId::new("session-cancelled").unwrap();
    let turn = async || {
        let options = ChatOptions::new().session(id.clone());
        agent.stream_chat(vec![ChatMessage::user("go")], options).collect().await
    };
    let asked = input_of(&turn().await);
    agent.cancel(CancelTarget::Session(id.clone()), Scope::session(id.clone()), None).await.unwrap();
    let question = agent.get_interrupt(&asked[0].request_id, &Scope::session(id.clone())).await.unwrap().unwrap();
    assert_eq!(question.status, InterruptStatus::Cancelled);
    let late = agent.answer(&asked[0].request_id, Scope::session(id.clone()), approve(), None).await;
    assert_eq!(code(late), FailureCode::InterruptCancelled);
    assert_eq!(input_of(&turn().await).len(), 1, "the next message works");
    assert_eq!(runs.all(), ["free", "free"]);
}
