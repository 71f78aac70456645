//! K16: what is listed as open is open, and what is open is listed.

use std::sync::Arc;

use kortyx_tests::{Counter, World, eventually};
use serde_json::json;
use tokio::{join, sync::Semaphore};

use crate::{
    page::{Page, done, handle, questions},
    shapes::{pair, slow},
};

#[tokio::test]
async fn b176_after_the_first_of_two_answers_the_second_is_what_is_next() {
    let world = World::new();
    let page = Page::of(&world, &[pair()]).await;
    let shown = page.say("s", "go").await;
    let (asked, run) = (questions(&shown), done(&shown)["runId"].clone());
    let answered = page.answer("s", &asked[1], &json!({"text": "two"})).await;
    assert_eq!(
        (&done(&answered)["status"], &done(&answered)["awaitingHumanInput"]),
        (&json!("suspended"), &json!(true))
    );
    let of_run = page.get(&format!("/interrupts?runId={}", run.as_str().unwrap())).await.1;
    let open = of_run["interrupts"].as_array().unwrap();
    assert_eq!((open.len(), &open[0]["id"], &open[0]["runId"]), (1, &asked[0]["requestId"], &run));
}

#[tokio::test]
async fn b179_an_answered_question_is_closed_whatever_form_the_answer_had_and_its_sibling_is_not() {
    let world = World::new();
    let page = Page::of(&world, &[pair()]).await;
    for form in ["chat", "resume", "batch", "id"] {
        let shown = page.say(form, "go").await;
        let (asked, run) = (questions(&shown), &done(&shown)["runId"]);
        let (id, text) = (asked[0]["requestId"].as_str().unwrap(), json!({"type": "text", "text": "x"}));
        let body = handle(&asked[0], run, form, &text);
        match form {
            "chat" => drop(page.answer(form, &asked[0], &json!({"text": "x"})).await),
            "resume" => assert_eq!(page.post("/resume", &body).await.0, 200),
            "batch" => {
                let responses = json!([{"requestId": id, "response": text}]);
                let batch = json!({"resume": body["resume"], "responses": responses});
                assert_eq!(page.post("/resume", &batch).await.0, 200);
            }
            _ => assert_eq!(page.post(&format!("/interrupts/{id}/answer"), &json!({"response": text})).await.0, 200),
        }
        let open = page.listed(form).await;
        assert_eq!((open.len(), &open[0]["id"]), (1, &asked[1]["requestId"]), "{form}");
        assert_eq!(page.get(&format!("/interrupts/{id}")).await.1["status"], "answered", "{form}");
    }
}

#[tokio::test]
async fn b180_from_its_acceptance_on_a_question_is_not_shown_as_open() {
    let (world, gate, acts) = (World::new(), Arc::new(Semaphore::new(0)), Counter::new());
    let page = Page::of(&world, &[slow(&gate, &acts)]).await;
    let shown = page.say("s", "go").await;
    let question = &questions(&shown)[0];
    let id = question["requestId"].as_str().unwrap();
    let look = async {
        eventually("it goes on", || async { acts.count() == 1 }).await;
        assert!(page.listed("s").await.is_empty(), "it is answered, and its run works");
        assert_eq!(page.get(&format!("/interrupts/{id}")).await.1["status"], "answered");
        let point = page.turns("s").await.remove(1);
        let view = page.checkpoints("get", &json!({"checkpointId": point["id"]})).await.1;
        assert_eq!(view["activePendingRequests"], json!([]));
        gate.add_permits(1);
    };
    let text = json!({"text": "x"});
    let (answered, ()) = join!(page.answer("s", question, &text), look);
    assert_eq!(done(&answered)["data"]["name"], "x");
}
