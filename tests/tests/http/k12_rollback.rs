//! K12: going back asks again, and takes no answer from before.

use std::{sync::Arc, time::Duration};

use kortyx::{NodeContext, NodeOutput, Text, Workflow};
use kortyx_tests::{Counter, World, eventually, one_node, with};
use serde_json::{Value, json};
use tokio::{join, sync::Semaphore};

use crate::{
    page::{Page, done, error, message, questions},
    shapes::{acting, pair},
};

/// A checkpoint's id, as a request names it.
fn at(turn: &Value) -> Value {
    json!({"checkpointId": turn["id"]})
}

/// A question that a checkpoint shows, as a stream would show it.
fn open(view: &Value) -> Vec<Value> {
    let open = view["activePendingRequests"].as_array().unwrap();
    open.iter().map(|it| json!({"resumeToken": it["token"], "requestId": it["requestId"]})).collect()
}

#[tokio::test]
async fn b157_back_before_an_answer_it_asks_again_and_another_answer_counts_while_the_branch_stands() {
    let (world, acts) = (World::new(), Counter::new());
    let page = Page::of(&world, &[acting(&acts)]).await;
    let first = questions(&page.say("s", "go").await).remove(0);
    let point = page.turns("s").await.remove(1);
    let answered = page.answer("s", &first, &json!({"selected": "approve"})).await;
    assert_eq!((done(&answered)["data"]["decision"].as_str(), acts.count()), (Some("approve"), 1));

    let (status, forked) = page.checkpoints("fork", &at(&point)).await;
    let fork = forked["sessionId"].as_str().unwrap().to_owned();
    assert_eq!((status, &forked["forkedFrom"]), (200, &point["id"]), "{forked}");
    let other = page.answer(&fork, &open(&forked["checkpoint"])[0], &json!({"selected": "decline"})).await;
    assert_eq!(done(&other)["data"]["decision"], "decline");
    let head = page.turns("s").await.remove(2);
    let view = page.checkpoints("get", &at(&head)).await.1;
    assert_eq!(view["state"]["decision"], "approve", "the original is as it was");

    let (status, back) = page.checkpoints("rollback", &at(&point)).await;
    assert_eq!((status, &back["head"], page.turns("s").await.len()), (200, &point["id"], 2));
    let again = page.answer("s", &open(&back)[0], &json!({"selected": "decline"})).await;
    assert_eq!((done(&again)["data"]["decision"].as_str(), acts.count()), (Some("decline"), 1));
    assert_eq!(page.checkpoints("get", &at(&head)).await, (200, Value::Null), "it is abandoned");
    assert_eq!(page.checkpoints("rollback", &at(&head)).await.0, 404);
}

#[tokio::test]
async fn b159_going_back_into_a_child_goes_on_there() {
    let (world, counters) = (World::new(), [(); 3].map(|()| Counter::new()));
    let [one, two, three] = counters.clone();
    let count = |counter: Counter| {
        with(counter, |_, counter: Counter| async move {
            counter.hit();
            Ok(NodeOutput::new())
        })
    };
    let child = Workflow::builder("child")
        .node("one", count(one))
        .node("two", count(two))
        .node(
            "three",
            with(three, |ctx: NodeContext, counter| async move {
                let name = ctx.interrupt("name", Text::new("Who?")).await?;
                counter.hit();
                Ok(NodeOutput::new().data("name", &name))
            }),
        )
        .edge("one", "two")
        .edge("two", "three")
        .build()
        .unwrap();
    let parent = one_node(
        "parent",
        with(child.clone(), |ctx: NodeContext, child| async move {
            let data: Value = ctx.call("child", &child, json!({})).await?;
            Ok(NodeOutput::new().data("child", &data))
        }),
    );
    let page = Page::of(&world, &[parent, child]).await;
    let asked = questions(&page.say("s", "go").await).remove(0);
    let point = page.turns("s").await.remove(1);
    page.answer("s", &asked, &json!({"text": "Ann"})).await;
    for (times, name) in [(2, "Bob"), (3, "Cid")] {
        let back = page.checkpoints("rollback", &at(&point)).await.1;
        let answered = page.answer("s", &open(&back)[0], &json!({"text": name})).await;
        assert_eq!(done(&answered)["data"]["child"]["name"], name);
        assert_eq!(counters.each_ref().map(Counter::count), [1, 1, times], "what came before is not done again");
    }
}

#[tokio::test]
async fn b160_a_question_from_before_a_rollback_takes_no_answer_and_the_one_after_does() {
    let (world, acts) = (World::new(), Counter::new());
    let page = Page::of(&world, &[acting(&acts)]).await;
    let before = questions(&page.say("s", "go").await).remove(0);
    let start = page.turns("s").await.remove(0);
    assert_eq!(start["label"], "session start");
    let back = page.checkpoints("rollback", &at(&start)).await.1;
    assert_eq!((&back["invalidatedInterruptTokens"], open(&back).len()), (&json!([before["resumeToken"]]), 0));
    let after = questions(&page.say("s", "go").await).remove(0);
    assert_ne!(after["requestId"], before["requestId"]);
    assert_eq!(error(&page.answer("s", &before, &json!({"selected": "approve"})).await), "INTERRUPT_SUPERSEDED");
    assert_eq!(acts.count(), 0);
    let answered = page.answer("s", &after, &json!({"selected": "approve"})).await;
    assert_eq!((done(&answered)["status"].as_str(), acts.count()), (Some("completed"), 1));
}

#[tokio::test]
async fn b161_what_is_taken_back_to_its_questions_asks_each_once() {
    let world = World::new();
    let page = Page::of(&world, &[pair()]).await;
    let asked = questions(&page.say("s", "go").await);
    let point = page.turns("s").await.remove(1);
    page.answer("s", &asked[0], &json!({"text": "one"})).await;
    page.answer("s", &asked[1], &json!({"text": "two"})).await;
    for round in 0..3 {
        let back = page.checkpoints("rollback", &at(&point)).await.1;
        assert_eq!((open(&back).len(), page.listed("s").await.len()), (2, 2), "{round}");
        let again = page.checkpoints("rollback", &at(&point)).await.1;
        assert_eq!(open(&again), open(&back), "it is the head: nothing changes");
        let [a, b] = open(&back).try_into().unwrap();
        page.answer("s", &b, &json!({"text": "2"})).await;
        let last = page.answer("s", &a, &json!({"text": "1"})).await;
        assert_eq!(done(&last)["data"], json!({"a": "1", "b": "2"}));
    }
}

#[tokio::test]
async fn b160_a_run_under_way_refuses_to_be_taken_back_and_what_is_late_is_refused() {
    let (world, gate) = (World::new(), Arc::new(Semaphore::new(0)));
    let workflow = one_node(
        "slow",
        with(gate.clone(), |ctx, gate| async move {
            let name = ctx.interrupt("ask", Text::new("Well?")).await?;
            ctx.step("wait", || async { gate.acquire().await.map(drop) }).await?;
            Ok(NodeOutput::new().data("name", &name))
        }),
    );
    let page = Page::of(&world, &[workflow]).await;
    let asked = questions(&page.say("s", "go").await).remove(0);
    let turns = page.turns("s").await;
    let goes_back = async {
        eventually("it is driven", || async { page.agent().driven_runs() == 1 }).await;
        eventually("its answer is accepted", || async { page.listed("s").await.is_empty() }).await;
        let refused = page.checkpoints("rollback", &at(&turns[0])).await;
        assert_eq!(refused.0, 409, "{refused:?}");
        gate.add_permits(1);
    };
    let text = json!({"text": "x"});
    let (answered, ()) = join!(page.answer("s", &asked, &text), goes_back);
    assert_eq!((done(&answered)["status"].as_str(), page.turns("s").await.len()), (Some("completed"), 3));
    assert_eq!(page.checkpoints("rollback", &at(&turns[0])).await.0, 200);

    page.chat(&message("s", "go")).await;
    let point = page.turns("s").await.remove(1);
    page.chat(&message("s", "go")).await;
    world.advance(Duration::from_mins(16));
    let late = page.checkpoints("rollback", &at(&point)).await;
    assert_eq!((late.0, late.1["failure"]["code"].as_str()), (410, Some("INTERRUPT_EXPIRED")));
    assert_eq!(page.turns("s").await.len(), 3, "nothing changed");
}
