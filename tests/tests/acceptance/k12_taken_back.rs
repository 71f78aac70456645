//! K12: a turn that is under way in another process while its conversation is taken back.

use std::sync::Arc;

use kortyx::{
    ChatInput, NodeContext, NodeError, NodeOutput, Text, Workflow,
    protocol::{FailureCode, StreamChunk},
    store::{InterruptQuery, Scope},
};
use kortyx_tests::{Counter, World, kinds, one_node, with};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::k12_rollback::{data, say, session, start_of};

/// Remembers what was said; a second message waits at the gate, and then ends, asks or works.
fn remembering(how: &'static str, gate: &[Arc<Semaphore>; 2], worked: &Counter) -> Workflow {
    let node = with((gate.clone(), worked.clone()), move |ctx: NodeContext, ([begun, gate], worked)| async move {
        let said: ChatInput = ctx.input()?;
        let mut all: Vec<String> = ctx.data("all").unwrap_or_default();
        if said.input == "second" {
            begun.add_permits(1);
            gate.acquire().await.unwrap().forget();
            match how {
                "asks" => drop(ctx.interrupt("name", Text::new("Name?")).await?),
                "works" => drop(ctx.step("work", || async move { Ok::<_, NodeError>(worked.hit()) }).await?),
                "says" => ctx.message("On it.").await,
                _ => {}
            }
        }
        all.push(said.input);
        Ok(NodeOutput::new().data("all", &all))
    });
    one_node("remembering", node)
}

#[tokio::test]
async fn b160_a_turn_of_another_process_that_stored_nothing_yet_does_not_build_on_what_was_taken_back() {
    for how in ["ends", "asks", "works", "says"] {
        let (world, worked) = (World::new(), Counter::new());
        let gate = [(); 2].map(|()| Arc::new(Semaphore::new(0)));
        let flow = remembering(how, &gate, &worked);
        let (playing, elsewhere) = (world.agent(&flow).await, world.agent(&flow).await);
        assert_eq!(data(&say(&playing, "s", "first").await), json!({"all": ["first"]}));
        let turn = tokio::spawn({
            let agent = playing.clone();
            async move { say(&agent, "s", "second").await }
        });
        gate[0].acquire().await.unwrap().forget();

        let start = start_of(&elsewhere, "s").await;
        elsewhere.rollback_to(&start, None).await.unwrap();
        gate[1].add_permits(1);

        let chunks = turn.await.unwrap();
        let said: Vec<_> = kinds(&chunks).into_iter().filter(|kind| *kind != "message").collect();
        assert_eq!(said, ["session", "error", "done"], "{how}");
        let Some(StreamChunk::Error { failure, .. }) = chunks.iter().find(|chunk| chunk.kind() == "error") else {
            panic!("{chunks:?}")
        };
        assert_eq!((failure.code, failure.retryable), (FailureCode::Conflict, Some(true)), "{how}");
        assert!(failure.message.contains("taken back") && failure.message.contains("again"), "{failure:?}");
        assert_eq!(worked.count(), 0, "{how}");
        assert_eq!(elsewhere.list_checkpoints(&session("s"), None).await.unwrap().len(), 1, "{how}");
        let query = InterruptQuery { scope: Scope::session(session("s")), ..InterruptQuery::default() };
        assert!(elsewhere.list_interrupts(query).await.unwrap().interrupts.is_empty(), "{how}");

        gate[1].add_permits(1);
        let again = say(&playing, "s", "second").await;
        match how {
            "asks" => assert_eq!(kinds(&again), ["session", "interrupt", "checkpoint", "done"]),
            _ => assert_eq!(data(&again), json!({"all": ["second"]}), "{how}"),
        }
    }
}
