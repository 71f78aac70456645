//! K3 and K6: requests at the same time, and the same request again.

use std::sync::Arc;

use futures_util::future::join_all;
use kortyx_tests::{Counter, World, eventually};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::{
    page::{Page, done, handle, questions},
    shapes::{acting, slow},
};

#[tokio::test]
async fn b094_b095_of_answers_at_the_same_time_one_is_accepted_and_its_repeats_get_its_result() {
    let (world, acts) = (World::new(), Counter::new());
    let page = Page::of(&world, &[acting(&acts)]).await;
    for round in 0..5_u64 {
        let session = format!("s{round}");
        let shown = page.say(&session, "go").await;
        let (question, run) = (&questions(&shown)[0], &done(&shown)["runId"]);
        let posts = (0..8).map(|number| {
            let id = if number % 2 == 0 { "approve" } else { "decline" };
            let body = handle(question, run, &session, &json!({"type": "select", "ids": [id]}));
            let page = &page;
            async move { (id, page.post("/resume", &body).await) }
        });
        let answers = join_all(posts).await;
        let accepted: Vec<_> = answers.iter().filter(|(_, (status, _))| *status == 200).collect();
        assert_eq!(accepted.len(), 4, "one, and its repeats: {answers:?}");
        assert!(accepted.iter().all(|(id, (_, said))| said["data"]["decision"] == *id), "{accepted:?}");
        let winner = accepted[0].0;
        let refused = answers.iter().filter(|(id, _)| *id != winner);
        assert!(
            refused.clone().all(|(_, (status, said))| {
                *status == 409 && said["failure"]["code"] == "INTERRUPT_ALREADY_RESOLVED"
            })
        );
        assert_eq!(refused.count(), 4);
    }
    assert!(acts.count() <= 5, "each at most once: {}", acts.count());
}

#[tokio::test]
async fn b051_a_client_that_attaches_and_answers_again_and_again_runs_nothing_twice() {
    let (world, gate, acts) = (World::new(), Arc::new(Semaphore::new(0)), Counter::new());
    let page = Page::of(&world, &[slow(&gate, &acts)]).await;
    let shown = page.say("s", "go").await;
    let (question, run) = (&questions(&shown)[0], &done(&shown)["runId"]);
    let body = handle(question, run, "s", &json!({"type": "text", "text": "x"}));
    let answers = join_all((0..4).map(|_| page.post("/resume", &body)));
    let followers = join_all((0..4).map(|_| page.follow(run.as_str().unwrap())));
    let release = async {
        eventually("it acts", || async { acts.count() == 1 }).await;
        gate.add_permits(1);
    };
    let (answers, followers, ()) = tokio::join!(answers, followers, release);
    assert!(answers.iter().all(|(status, said)| *status == 200 && said["data"]["name"] == "x"), "{answers:?}");
    for followed in followers {
        assert!(followed.iter().any(|chunk| chunk["content"] == "Done."), "{followed:?}");
    }
    assert_eq!(acts.count(), 1);
}
