//! Questions that the model asks.

use kortyx_contracts::InterruptContract;
use kortyx_protocol::{FailureCode, ResumeResponse};
use kortyx_reason::{Interrupts, Message, Reason, ReasonExt as _, Script, ScriptedModel};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use serde_json::{Value, json};

use crate::world::{
    ASK, Ambiguity, CLARIFY, Clarification, Effects, agent, answer, asked, calling, clarify, data, failure, open,
    reason, reasoning, run, told,
};

fn with(model: &ScriptedModel, interrupts: Interrupts) -> Reason {
    Reason::new(model.clone()).input("Go.").interrupts(interrupts)
}

fn question(text: &str) -> Value {
    json!({ "question": text })
}

#[tokio::test]
async fn a_model_asks_with_a_contract_and_the_answer_is_the_result_of_its_call() {
    let model = calling([(ASK, question("Which tea?"))]);
    let given = model.clone();
    let workflow = reasoning(move || with(&given, clarify()));
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let (request, handle) = asked(&paused, 0);
    assert_eq!((request, open(&paused)[0].input.contract.as_deref()), (question("Which tea?"), Some("clarify")));
    let wrong = agent.resume(&handle, ResumeResponse::value(json!({"text": ""}))).await.unwrap_err();
    assert_eq!(kortyx_protocol::Failure::from(wrong).code, FailureCode::InvalidResponse);
    let done = data(answer(&agent, &paused, 0, json!({"text": "Green."})).await);
    assert_eq!((&done["answers"], &done["results"]), (&json!([{"text": "Green."}]), &json!([])));
    assert_eq!(told(&model), [r#"{"text":"Green."}"#]);
}

#[tokio::test]
async fn a_request_that_does_not_fit_goes_back_to_the_model_and_nobody_is_asked() {
    let model = calling([(ASK, json!({"question": 7})), ("kortyx_request_input__unheard_of", json!({}))]);
    let given = model.clone();
    let done = data(reason(move || with(&given, clarify())).await);
    assert_eq!((&done["results"][0][1], &done["results"][1][1]), (&json!("invalid"), &json!("invalid")));
    assert!(told(&model)[0].contains("/question"));
}

#[tokio::test]
async fn questions_of_one_turn_are_open_together_and_answered_in_any_order() {
    for order in [[0, 1], [1, 0]] {
        let model = calling([(ASK, question("One?")), (ASK, question("Two?"))]);
        let given = model.clone();
        let workflow = reasoning(move || with(&given, clarify()));
        let agent = agent(&workflow).await;
        let paused = run(&agent, &workflow).await;
        let handles = [asked(&paused, 0).1, asked(&paused, 1).1];
        for place in order {
            let text = json!({ "text": place.to_string() });
            agent.resume(&handles[place], ResumeResponse::value(text)).await.unwrap();
        }
        assert_eq!(told(&model), [r#"{"text":"0"}"#, r#"{"text":"1"}"#]);
        assert_eq!(model.played().len(), 2);
    }
}

#[tokio::test]
async fn tools_questions_and_approvals_of_one_turn_keep_the_order_of_the_model() {
    let calls = [
        ("note", json!({"what": "a"})),
        (ASK, question("Sure?")),
        ("order", json!({"what": "tea"})),
        ("note", json!({"what": "b"})),
    ];
    let (model, effects) = (calling(calls), Effects::default());
    let (given, counted) = (model.clone(), effects.clone());
    let workflow = reasoning(move || {
        with(&given, clarify()).tool(counted.tool("note")).tool(counted.tool("order").approve_always())
    });
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    assert_eq!((open(&paused).len(), effects.count()), (2, 1));
    let paused = answer(&agent, &paused, 1, json!({"decision": "approve"})).await;
    data(answer(&agent, &paused, 0, json!({"text": "Yes."})).await);
    assert_eq!(told(&model), [r#"{"done":"a"}"#, r#"{"text":"Yes."}"#, r#"{"done":"tea"}"#, r#"{"done":"b"}"#]);
}

#[tokio::test]
async fn required_rejects_a_final_answer_until_a_person_was_asked_within_the_steps() {
    let model = ScriptedModel::new([
        Script::new().text("I know."),
        Script::new().call(ASK, question("Sure?")),
        Script::new().text("Now I know."),
    ]);
    let interrupts = || Interrupts::required().contract(&CLARIFY);
    let given = model.clone();
    let workflow = reasoning(move || with(&given, interrupts()).max_steps(3));
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let done = data(answer(&agent, &paused, 0, json!({"text": "Yes."})).await);
    assert_eq!((&done["text"], &done["steps"]), (&json!("Now I know."), &json!(3)));

    let stubborn = ScriptedModel::from_fn(|_| Script::new().text("I know."));
    let failed = failure(reason(move || with(&stubborn, interrupts()).max_steps(4)).await);
    assert_eq!(failed.code, FailureCode::ReasonStepsExhausted);
}

#[tokio::test]
async fn after_the_last_question_the_model_is_told_and_its_tools_to_ask_are_withdrawn() {
    let model = ScriptedModel::new([
        Script::new().call(ASK, question("One?")).call(ASK, question("Two?")),
        Script::new().call(ASK, question("Three?")),
        Script::new().text("Done."),
    ]);
    let given = model.clone();
    let workflow = reasoning(move || with(&given, clarify().max_requests(1)));
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    assert_eq!(open(&paused).len(), 1);
    let done = data(answer(&agent, &paused, 0, json!({"text": "Yes."})).await);
    assert_eq!(done["results"].as_array().unwrap().iter().filter(|result| result[1] == "refused").count(), 2);
    let played = model.played();
    assert_eq!((&played[0].tools, played[1].tools.len(), played[2].tools.len()), (&vec![ASK.to_owned()], 0, 0));
    let said = |at: usize| matches!(&played[at].messages.last(), Some(Message::System { content }) if content.contains("all the questions"));
    assert!(said(1) && !said(2), "it is told once");
}

#[tokio::test]
async fn steps_are_counted_over_pauses() {
    let model = ScriptedModel::from_fn(|_| Script::new().call(ASK, question("More?")));
    let given = model.clone();
    let workflow = reasoning(move || with(&given, clarify()).max_steps(3));
    let agent = agent(&workflow).await;
    let mut result = run(&agent, &workflow).await;
    for _ in 0..3 {
        result = answer(&agent, &result, 0, json!({"text": "Yes."})).await;
    }
    let failure = failure(result);
    assert_eq!((failure.code, model.played().len()), (FailureCode::ReasonStepsExhausted, 3));
    assert_eq!(failure.details.unwrap()["questions"], 3);
}

#[tokio::test]
async fn the_history_is_typed_by_contract() {
    let model = calling([(ASK, question("Which?"))]);
    let node = move |ctx: NodeContext| {
        let reason = with(&model, clarify());
        async move {
            let history = ctx.reason("brief", reason).await?.interrupt_history;
            assert_eq!(history.requests(&CLARIFY)?, [Ambiguity { question: "Which?".into() }]);
            assert_eq!(history.answers(&CLARIFY)?, [Clarification { text: "This.".into() }]);
            Ok(NodeOutput::new().data("all", &history.all()))
        }
    };
    let workflow = Workflow::builder("typed").node("brief", node).build().unwrap();
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let done = data(answer(&agent, &paused, 0, json!({"text": "This."})).await);
    assert_eq!(
        (&done["all"][0]["schema_id"], &done["all"][0]["contract"]),
        (&json!("acme.clarify"), &json!("clarify"))
    );
}

#[tokio::test]
async fn what_the_code_gives_the_model_later_does_not_change_the_conversation_it_had() {
    let model = calling([(ASK, question("Which?"))]);
    let (given, rounds) = (model.clone(), Effects::default());
    let workflow = reasoning(move || {
        let round = rounds.judge();
        Reason::new(given.clone()).input(format!("It is round {round}.")).interrupts(clarify())
    });
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    data(answer(&agent, &paused, 0, json!({"text": "This."})).await);
    let [first, second] = &model.conversations()[..] else { panic!("two passes") };
    assert!(second.starts_with(first.trim_end_matches(']')), "{second}");
}

#[tokio::test]
async fn two_calls_of_one_id_at_once_do_not_mix() {
    let (one, two) = (calling([(ASK, question("One?"))]), calling([(ASK, question("Two?"))]));
    let models = (one.clone(), two.clone());
    let node = move |ctx: NodeContext| {
        let (one, two) = (with(&models.0, clarify()), with(&models.1, clarify()));
        async move {
            let (one, two) = tokio::join!(ctx.reason("brief", one), ctx.reason("brief", two));
            let answers = [one?.interrupt_history, two?.interrupt_history];
            let answers: Vec<_> = answers.iter().map(|history| history.answers(&CLARIFY).unwrap()).collect();
            Ok(NodeOutput::new().data("answers", &answers))
        }
    };
    let workflow = Workflow::builder("pair").node("brief", node).build().unwrap();
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let place = |text: &str| (0..2).find(|place| asked(&paused, *place).0 == question(text)).unwrap();
    let (first, second) = (asked(&paused, place("One?")).1, asked(&paused, place("Two?")).1);
    agent.resume(&second, ResumeResponse::value(json!({"text": "two"}))).await.unwrap();
    let done = data(agent.resume(&first, ResumeResponse::value(json!({"text": "one"}))).await.unwrap());
    assert_eq!(done["answers"], json!([[{"text": "one"}], [{"text": "two"}]]));
}

#[tokio::test]
async fn b020_an_answer_that_looks_like_none_is_an_answer() {
    const ANY: InterruptContract<Ambiguity, Value> =
        InterruptContract::new("any").description("Ask for anything").schema_id("acme.any").version("1");
    for value in [json!(false), json!(0), json!(0.0), json!(""), json!([]), json!({}), json!(null)] {
        let model = calling([("kortyx_request_input__any", question("What?"))]);
        let given = model.clone();
        let workflow = reasoning(move || with(&given, Interrupts::required().contract(&ANY)));
        let agent = agent(&workflow).await;
        let paused = run(&agent, &workflow).await;
        data(answer(&agent, &paused, 0, value.clone()).await);
        assert_eq!(told(&model), [kortyx_protocol::json::canonical(&value).unwrap()]);
    }
}
