//! K9: what goes into a run comes out as it was, or is refused where it comes in.

use std::collections::BTreeMap;

use kortyx::{
    Agent, ExecuteOptions, InterruptContract, NodeError, NodeOutput, OrchestratorError, Text, WorkerConfig, Workflow,
    protocol::{
        ChatRequest, Failure, FailureCode, Limits, RawJson, ResumeResponse, SessionId, Timestamp, json as wire,
    },
    store::{RunStatus, Scope},
};
use kortyx_tests::{World, data, eventually, failure, one_node, only, with};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;

/// Types that went wrong elsewhere, nested.
mod shapes {
    use super::{BTreeMap, Deserialize, JsonSchema, Serialize, Timestamp};

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub(super) struct Everything {
        pub(super) nested: outer::inner::State,
        pub(super) tagged: Vec<Tagged>,
        pub(super) some: Option<u8>,
        pub(super) none: Option<String>,
        pub(super) unit: (),
        pub(super) pair: (u8, String),
        pub(super) by_number: BTreeMap<i64, String>,
        pub(super) by_variant: BTreeMap<outer::inner::State, bool>,
        pub(super) bytes: Vec<u8>,
        pub(super) zoned: String,
        #[schemars(with = "String")]
        pub(super) instant: Timestamp,
        pub(super) decimal: String,
        pub(super) float: f64,
        pub(super) smallest: f64,
    }

    pub(super) mod outer {
        pub(in super::super) mod inner {
            use super::super::super::{Deserialize, JsonSchema, Serialize};

            #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
            pub(in super::super::super) enum State {
                Open,
                Closed,
            }
        }
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "type", rename_all = "kebab-case")]
    pub(super) enum Tagged {
        Empty,
        WithField { amount: u64 },
    }
}

use shapes::{Everything, Tagged, outer::inner::State};

fn everything() -> Everything {
    Everything {
        nested: State::Closed,
        tagged: vec![Tagged::Empty, Tagged::WithField { amount: u64::MAX }],
        some: Some(0),
        none: None,
        unit: (),
        pair: (7, "seven".into()),
        by_number: BTreeMap::from([(-1, "minus".into()), (i64::MIN, "least".into())]),
        by_variant: BTreeMap::from([(State::Open, true)]),
        bytes: (0..=255).collect(),
        zoned: "2026-03-29T02:30:00+02:00[Europe/Berlin]".into(),
        instant: Timestamp::from_millis(1_234_567_890_123),
        decimal: "12345678901234567890.00000000000000000001".into(),
        float: 0.1 + 0.2,
        smallest: f64::MIN_POSITIVE,
    }
}

#[tokio::test]
async fn b115_every_shape_survives_state_question_answer_and_output() {
    const ALL: InterruptContract<Everything, Everything> =
        InterruptContract::new("all").description("Gives it back").schema_id("test.all").version("1");
    let world = World::new();
    let workflow = Workflow::builder("shapes")
        .input::<Everything>()
        .node("first", |ctx| async move {
            let input: Everything = ctx.input()?;
            ctx.workflow_state("kept", input.clone()).set(&input)?;
            Ok(NodeOutput::new().data("first", &input))
        })
        .node("second", |ctx| async move {
            let first: Everything = ctx.data("first")?;
            let stepped = ctx.step("step", || async { Ok::<_, NodeError>(first.clone()) }).await?;
            let answered = ctx.interrupt("ask", ALL.ask(&stepped)).await?;
            let kept = ctx.workflow_state("kept", answered.clone()).get()?;
            let all = [ctx.input()?, first, stepped, answered, kept];
            Ok(NodeOutput::new().data("all", &all))
        })
        .edge("first", "second")
        .build()
        .unwrap();
    let agent = world.agent(&workflow).await;
    let paused = agent.execute(&workflow, everything(), ExecuteOptions::new()).await.unwrap();
    let question = only(&paused);
    let shown: Everything = serde_json::from_value(question.input.request.unwrap()).unwrap();
    assert_eq!(shown, everything());

    let elsewhere = world.agent(&workflow).await;
    let response: ResumeResponse =
        wire::from_str(&format!(r#"{{"type":"value","value":{}}}"#, wire::to_string(&everything()).unwrap())).unwrap();
    let result = elsewhere.resume(&question.resume, response).await.unwrap();
    let all: Vec<Everything> = serde_json::from_value(data(result)["all"].clone()).unwrap();
    assert!(all.len() == 5 && all.iter().all(|one| *one == everything()), "{all:?}");
}

#[tokio::test]
async fn b115_what_json_cannot_hold_is_refused_and_never_becomes_null() {
    let world = World::new();
    let workflow = one_node("keys", |_| async {
        let by_pair = BTreeMap::from([((1, 2), "a map with pairs for keys")]);
        Ok(NodeOutput::new().data("by_pair", &by_pair))
    });
    let agent = world.agent(&workflow).await;
    let refused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    assert_eq!(failure(refused).code, FailureCode::InvalidOutput);
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Old {
    seats: u8,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Renamed {
    places: u8,
}

/// Code that reads an answer as this type, under one and the same contract.
fn reading<T: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static>() -> Workflow {
    one_node("typed", |ctx| async move {
        let contract: InterruptContract<u8, T> =
            InterruptContract::new("seats").description("How many").schema_id("test.seats").version("1");
        let answer = ctx.interrupt("ask", contract.ask(1)).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    })
}

#[tokio::test]
async fn b116_an_answer_whose_type_is_gone_parks_the_run_and_the_old_code_still_reads_it() {
    let world = World::new();
    let (old, renamed) = (reading::<Old>(), reading::<Renamed>());
    let paused = world.agent(&old).await.execute(&old, json!({}), ExecuteOptions::new()).await.unwrap();
    let gate = only(&paused).resume;
    let answer = ResumeResponse::value(json!({"seats": 4}));

    let newer = world.agent(&renamed).await;
    let OrchestratorError::SetAside(why) = newer.resume(&gate, answer.clone()).await.unwrap_err() else {
        panic!("it went on")
    };
    assert_eq!(why.code, FailureCode::ContractMismatch);
    assert!(why.message.contains("`ask`") && why.message.contains("places"), "{}", why.message);
    let scope = Scope::session(gate.session_id.clone());
    assert_eq!(newer.get_run(&gate.run_id, &scope).await.unwrap().unwrap().status, RunStatus::Parked);
    let kept = world.store().await.interrupt(&gate.request_id).await.unwrap().unwrap().answer.unwrap();
    assert_eq!(&*kept, br#"{"type":"value","value":{"seats":4}}"#, "byte for byte");

    world.advance(std::time::Duration::from_millis(1));
    let older = Agent::builder().shared_store(world.store().await).workflow(&old).worker(WorkerConfig::default());
    let older = older.build().await.unwrap();
    eventually("the old code goes on", || async {
        older.get_run(&gate.run_id, &scope).await.unwrap().unwrap().status == RunStatus::Completed
    })
    .await;
    assert_eq!(data(older.resume(&gate, answer).await.unwrap())["answer"]["seats"], 4);
    older.shutdown(std::time::Duration::from_secs(10)).await;
}

const TEXTS: [&str; 7] =
    ["\u{0}", "a\u{0}b", "😀", "\u{202e}desrever\u{202c}", "e\u{301}", "\u{10ffff}\u{feff}", "line\nend\ttab\\\"'"];

#[tokio::test]
async fn b119_texts_that_databases_dislike_are_kept_in_state_question_and_answer() {
    let world = World::new();
    let workflow = one_node("texts", |ctx| async move {
        let text: String = ctx.input()?;
        let stepped = ctx.step("step", || async { Ok::<_, NodeError>(text.clone()) }).await?;
        let answer = ctx.interrupt("ask", Text::new(format!("Well, {stepped}?"))).await?;
        Ok(NodeOutput::new().data("all", &[text, stepped, answer]))
    });
    let agent = world.agent(&workflow).await;
    for text in TEXTS {
        let paused = agent.execute(&workflow, json!(text), ExecuteOptions::new()).await.unwrap();
        let question = only(&paused);
        assert_eq!(question.input.question, Some(format!("Well, {text}?")));
        let elsewhere = world.agent(&workflow).await;
        let result = elsewhere.resume(&question.resume, ResumeResponse::text(text)).await.unwrap();
        assert_eq!(data(result)["all"], json!([text, text, text]), "{text:?}");
    }
}

/// Rust's texts hold no half of a surrogate pair, so one can only come in as JSON text; there it is refused, or kept unread.
#[tokio::test]
async fn b119_half_a_surrogate_and_invalid_utf8_are_refused_where_they_come_in() {
    let half = r#"{"type":"text","text":"\ud800"}"#;
    assert!(wire::from_str::<ResumeResponse>(half).is_err());
    let chat = r#"{"messages":[{"role":"user","content":"\udc00"}]}"#;
    let refused = ChatRequest::from_slice(chat.as_bytes(), &Limits::default()).unwrap_err();
    assert_eq!(refused.code, FailureCode::InvalidRequest);
    let invalid = b"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\xfe\"}]}";
    assert_eq!(ChatRequest::from_slice(invalid, &Limits::default()).unwrap_err().code, FailureCode::InvalidRequest);

    let world = World::new();
    let workflow = one_node("raw", |ctx| async move {
        ctx.interrupt("ask", Text::new("Well?")).await?;
        let text: String = ctx.input()?;
        Ok(NodeOutput::new().data("text", &text))
    });
    let agent = world.agent(&workflow).await;
    match RawJson::parse(r#""\ud83d""#) {
        Err(_) => {}
        Ok(input) => {
            let paused = agent.execute_by_id("raw", None, input, ExecuteOptions::new()).await.unwrap();
            let set_aside = agent.resume(&only(&paused).resume, ResumeResponse::text("x")).await.unwrap_err();
            let failure = Failure::from(set_aside);
            assert_eq!(failure.code, FailureCode::ReplayDiverged);
            assert!(failure.message.contains("the input of `raw`"), "the reason is told: {failure}");
        }
    }
}

#[test]
fn b119_ids_with_control_characters_are_no_ids_and_others_are_kept() {
    for wrong in ["", " ", "\u{0}", "a\u{0}b", "a\nb", "\u{1b}[31m"] {
        assert!(SessionId::new(wrong).is_err(), "{wrong:?}");
    }
    for right in ["😀", "e\u{301}", "\u{10ffff}"] {
        assert_eq!(SessionId::new(right).unwrap().as_str(), right);
    }
}

#[tokio::test]
async fn b119_sessions_with_unusual_names_are_told_apart() {
    let world = World::new();
    let workflow = one_node("ask", |ctx| async move {
        ctx.interrupt("ask", Text::new("Well?")).await?;
        Ok(NodeOutput::new())
    });
    let agent = world.agent(&workflow).await;
    let names = ["é", "e\u{301}", "😀", "S", "s", "s%", "s_", "s'--", "\u{202e}s"];
    for name in names {
        let options = ExecuteOptions::new().session(SessionId::new(name).unwrap());
        agent.execute(&workflow, json!({}), options).await.unwrap();
    }
    for name in names {
        let scope = Scope::session(SessionId::new(name).unwrap());
        let query = kortyx::store::InterruptQuery { scope, limit: 50, ..Default::default() };
        assert_eq!(agent.list_interrupts(query).await.unwrap().interrupts.len(), 1, "{name:?}");
    }
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Inner {
    #[serde(rename = "type")]
    kind: String,
}

/// A step's record of another type sets the run aside, by the step's name; nothing becomes null.
#[tokio::test]
async fn b116_a_recorded_step_of_another_type_parks_the_run() {
    let world = World::new();
    let version = |is_new: bool| {
        one_node(
            "steps",
            with(is_new, |ctx, is_new| async move {
                if is_new {
                    ctx.step("read", || async { Ok::<_, NodeError>(Inner { kind: "new".into() }) }).await?;
                } else {
                    ctx.step("read", || async { Ok::<_, NodeError>(7) }).await?;
                }
                ctx.interrupt("ask", Text::new("Well?")).await?;
                Ok(NodeOutput::new())
            }),
        )
    };
    let paused =
        world.agent(&version(false)).await.execute(&version(false), json!({}), ExecuteOptions::new()).await.unwrap();
    let outcome = world.agent(&version(true)).await.resume(&only(&paused).resume, ResumeResponse::text("x")).await;
    match outcome {
        Err(OrchestratorError::SetAside(why)) => {
            assert_eq!(why.code, FailureCode::ReplayDiverged);
            assert!(why.message.contains("the result of the step `read`"), "{why}");
        }
        other => panic!("expected a parked run, found {other:?}"),
    }
}
