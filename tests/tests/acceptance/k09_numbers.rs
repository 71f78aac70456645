//! K9: numbers are exact or refused with their place.

use kortyx::{
    ExecuteOptions, InterruptContract, NodeError, NodeOutput, Workflow,
    protocol::{FailureCode, Limits, RawJson, ResumeRequest, ResumeResponse, json as wire},
    store::Scope,
};
use kortyx_tests::{World, code, data, failure, one_node, only, with};
use serde_json::{Value, json};

const ANYTHING: InterruptContract<Value, Value> =
    InterruptContract::new("anything").description("Takes any value").schema_id("test.any").version("1");

/// Puts its input through state, a step, a question and an answer.
fn everywhere() -> Workflow {
    one_node("everywhere", |ctx| async move {
        let input: Value = ctx.input()?;
        let stepped = ctx.step("step", || async { Ok::<_, NodeError>(input.clone()) }).await?;
        let answer = ctx.interrupt("ask", ANYTHING.ask(&stepped)).await?;
        Ok(NodeOutput::new().data("all", &[input, stepped, answer]))
    })
}

#[tokio::test]
async fn b117_integers_of_64_bits_are_exact_everywhere() {
    let world = World::new();
    let workflow = everywhere();
    let agent = world.agent(&workflow).await;
    for number in ["-9223372036854775808", "18446744073709551615", "9007199254740993", "-1", "0"] {
        let input = RawJson::parse(format!(r#"{{"n":{number}}}"#)).unwrap();
        let paused = agent.execute_by_id("everywhere", None, input, ExecuteOptions::new()).await.unwrap();
        let question = only(&paused);
        assert_eq!(question.input.request.as_ref().unwrap()["n"].to_string(), number, "in the question");

        let resume = wire::to_string(&question.resume).unwrap();
        let body = format!(r#"{{"resume":{resume},"response":{{"type":"value","value":{{"n":{number}}}}}}}"#);
        let request = ResumeRequest::from_slice(body.as_bytes(), &Limits::default()).unwrap();
        let kortyx::protocol::ResumeAnswers::One(response) = request.answers else { panic!("{body}") };
        let elsewhere = world.agent(&workflow).await;
        let result = elsewhere.resume(&request.resume, response).await.unwrap();
        let sent = wire::to_string(&result).unwrap();
        assert_eq!(sent.matches(&format!(r#"{{"n":{number}}}"#)).count(), 3, "{sent}");
    }
}

#[tokio::test]
async fn b117_larger_integers_are_exact_in_state_and_refused_with_their_place_on_the_wire() {
    let world = World::new();
    let huge = 10_u128.pow(38);
    let workflow = one_node(
        "huge",
        with(huge, |ctx, huge| async move {
            let n = ctx.step("step", || async { Ok::<_, NodeError>(huge) }).await?;
            ctx.interrupt("ask", ANYTHING.ask(Value::Null)).await?;
            Ok(NodeOutput::new().data("n", &n))
        }),
    );
    let agent = world.agent(&workflow).await;
    let gate = only(&agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap()).resume;
    for larger in ["18446744073709551616", "-9223372036854775809", "10000000000000000000000000000000000000000"] {
        let answer = format!(r#"{{"type":"value","value":{{"a":[0,{larger}]}}}}"#);
        let refused = wire::from_str::<ResumeResponse>(&answer).unwrap_err();
        assert_eq!(refused.path, "/value/a/1", "{larger}");
        assert!(RawJson::parse(format!(r#"{{"n":{larger}}}"#)).is_err_and(|error| error.path == "/n"));
    }
    // Who wants it as JSON of 64 bits is told where it does not fit; the run has ended, and holds every digit.
    let untyped = failure(agent.resume(&gate, ResumeResponse::value(Value::Null)).await.unwrap());
    assert_eq!(untyped.code, FailureCode::InvalidOutput);
    assert!(untyped.message.contains("/n"), "{}", untyped.message);
    let run = agent.get_run(&gate.run_id, &Scope::session(gate.session_id.clone())).await.unwrap().unwrap();
    assert_eq!(run.data.unwrap().get(), format!(r#"{{"n":{huge}}}"#));
}

#[tokio::test]
async fn b118_no_number_becomes_null() {
    let world = World::new();
    for (at, number) in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].into_iter().enumerate() {
        let places = ["data", "step", "state", "question"];
        for place in places {
            let workflow = one_node(
                &format!("nan-{at}-{place}"),
                with((number, place), |ctx, (number, place)| async move {
                    let values = json!({"fine": 1});
                    let bad = [0.0, number];
                    match place {
                        "step" => drop(ctx.step("step", || async { Ok::<_, NodeError>(bad) }).await?),
                        "state" => ctx.workflow_state("bad", [0.0; 2]).set(&bad)?,
                        "question" => {
                            const BAD: InterruptContract<[f64; 2], Value> =
                                InterruptContract::new("bad").description("Bad").schema_id("test.bad").version("1");
                            ctx.interrupt("ask", BAD.ask(bad)).await?;
                        }
                        _ => return Ok(NodeOutput::new().data("bad", &bad)),
                    }
                    Ok(NodeOutput::new().data("values", &values))
                }),
            );
            let agent = world.agent(&workflow).await;
            let refused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
            let refused = failure(refused);
            match place {
                "data" => assert_eq!(refused.issues.unwrap()[0].path, "/bad/1"),
                _ => assert_eq!(refused.code, FailureCode::ExecutionFailed, "{number} in {place}"),
            }
        }
    }
    let typed = Workflow::builder("nan-in").input::<f64>().node("n", |_| async { Ok(NodeOutput::new()) });
    let typed = typed.build().unwrap();
    let agent = world.agent(&typed).await;
    assert_eq!(code(agent.execute(&typed, f64::NAN, ExecuteOptions::new()).await), FailureCode::InvalidInput);
}

#[tokio::test]
async fn b118_minus_zero_stays_minus_zero() {
    let world = World::new();
    let workflow = everywhere();
    let agent = world.agent(&workflow).await;
    let paused = agent.execute(&workflow, json!({"n": -0.0}), ExecuteOptions::new()).await.unwrap();
    let result = agent.resume(&only(&paused).resume, ResumeResponse::value(json!({"n": -0.0}))).await.unwrap();
    let all = data(result)["all"].clone();
    assert!(all.as_array().unwrap().iter().all(|one| one["n"].as_f64().unwrap().is_sign_negative()), "{all}");
}
