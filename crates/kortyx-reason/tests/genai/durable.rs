//! The durable loop on real formats: a person approves in between, another process goes on, and the provider sees one conversation.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, ExecuteOptions};
use kortyx_protocol::{ExecutionResult, ResumeResponse};
use kortyx_reason::{GenaiModel, ModelRetry, Reason, ReasonExt as _, ToolContext, ToolError, tool};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    asked::{conversation, goes_on},
    format::{ALL, Format, Said},
    provider::{Provider, Reply},
};

#[derive(Serialize, Deserialize, JsonSchema)]
struct Order {
    what: String,
    amount: u32,
}

fn workflow(model: GenaiModel, orders: Arc<AtomicUsize>) -> Workflow {
    let node = move |ctx: NodeContext| {
        let (model, orders) = (model.clone(), orders.clone());
        async move {
            let order = move |order: Order, _: ToolContext| {
                orders.fetch_add(1, Ordering::SeqCst);
                async move { Ok::<_, ToolError>(json!({"ordered": order.what})) }
            };
            let reason = Reason::new(model)
                .system("You do the shopping.")
                .input("Buy tea.")
                .retry(ModelRetry::default().first_wait(Duration::from_millis(1)))
                .tool(tool("order", "Orders something.", order).approve_always());
            let done = ctx.reason("shop", reason).await?;
            Ok(NodeOutput::new().data("text", &done.text).data("usage", &done.usage).data("steps", &done.steps))
        }
    };
    Workflow::builder("shopping").node("shop", node).build().unwrap()
}

async fn agent(workflow: &Workflow, store: &Arc<MemoryStore>) -> Agent {
    let builder = Agent::builder().workflow(workflow).shared_store(store.clone());
    builder.without_worker().build().await.unwrap()
}

/// Runs to the question and, in another process, from the answer to the end.
async fn shop(format: Format, provider: &Provider, buffered: bool) -> (Value, usize) {
    let (store, orders) = (Arc::new(MemoryStore::new()), Arc::new(AtomicUsize::new(0)));
    let before = workflow(format.at(provider, buffered), orders.clone());
    let paused = agent(&before, &store).await.execute(&before, json!({}), ExecuteOptions::new()).await.unwrap();
    assert_eq!(paused.status(), "suspended", "{format:?}: {paused:?}");
    let question = &paused.interrupts()[0];
    assert_eq!(question.input.request.clone().unwrap()["arguments"], json!({"what": "tea", "amount": 2}), "{format:?}");
    assert_eq!(orders.load(Ordering::SeqCst), 0);

    let after = workflow(format.at(provider, buffered), orders.clone());
    let yes = ResumeResponse::value(json!({"decision": "approve"}));
    let done = agent(&after, &store).await.resume(&question.resume, yes).await.unwrap();
    let ExecutionResult::Completed { data, .. } = done else { panic!("{format:?}: {done:?}") };
    (data, orders.load(Ordering::SeqCst))
}

fn wants_tea() -> Said {
    Said {
        text: vec!["Let me ", "see."],
        calls: vec![("order", vec!["{\"what\":\"te", "a\",\"amount\":2}"])],
        ..Said::default()
    }
}

#[tokio::test]
async fn an_approval_in_between_leaves_the_conversation_as_it_was_byte_for_byte() {
    for format in ALL {
        for buffered in [false, true] {
            let replies = [wants_tea(), Said::text("The tea is on its way.")];
            let provider = Provider::start(replies.map(|said| format.reply(&said, buffered))).await;
            let (data, orders) = shop(format, &provider, buffered).await;
            assert_eq!((&data["text"], &data["steps"]), (&json!("The tea is on its way."), &json!(2)), "{format:?}");
            assert_eq!((&data["usage"]["total"], orders), (&json!(36), 1), "{format:?}");
            let received = provider.received();
            assert_eq!(received.len(), 2, "{format:?}: the first pass is not paid for again");
            let [first, second] = [0, 1].map(|place| conversation(&received[place]));
            assert!(goes_on(&second, &first), "{format:?}: {second} does not begin with {first}");
            assert!(second.contains("ordered") && second.contains("Let me see."), "{format:?}: {second}");
            let same = |key: &str| received[0].body().get(key) == received[1].body().get(key);
            let keys = ["model", "system", "instructions", "systemInstruction", "tools"];
            assert!(keys.into_iter().all(same), "{format:?}");
        }
    }
}

#[tokio::test]
async fn what_fails_before_the_first_token_is_asked_again_with_the_same_bytes() {
    for format in ALL {
        let busy = Reply::json(529, &json!({"error": {"type": "overloaded_error", "message": "overloaded"}}));
        let cut = Reply::stream(&[]);
        let said = [wants_tea(), Said::text("Done.")].map(|said| format.reply(&said, false));
        let provider = Provider::start([busy, cut].into_iter().chain(said)).await;
        let (data, orders) = shop(format, &provider, false).await;
        assert_eq!((&data["text"], orders), (&json!("Done."), 1), "{format:?}");
        let texts: Vec<String> = provider.received().into_iter().map(|received| received.text).collect();
        assert_eq!(texts.len(), 4);
        assert!(texts[0] == texts[1] && texts[1] == texts[2], "{format:?}");
    }
}

#[tokio::test]
async fn what_breaks_after_the_first_token_ends_the_call_and_is_not_made_twice() {
    for format in ALL {
        let frames = format.frames(&wants_tea());
        let until = frames.iter().position(|frame| frame.contains("Let me")).unwrap() + 1;
        let provider = Provider::start([Reply::stream(&frames[..until]).broken()]).await;
        let (store, orders) = (Arc::new(MemoryStore::new()), Arc::new(AtomicUsize::new(0)));
        let workflow = workflow(format.at(&provider, false), orders);
        let failed = agent(&workflow, &store).await.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
        let ExecutionResult::Failed { error, .. } = failed else { panic!("{format:?}: {failed:?}") };
        assert_eq!(error.code.as_str(), "PROVIDER_TRANSPORT_ERROR", "{format:?}");
        assert_eq!(provider.received().len(), 1, "{format:?}");
    }
}
