//! Structured streams that steps open: an attempt that came to nothing leaves no half of one behind.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use kortyx_protocol::{StreamChunk, StructuredChange, StructuredStreams};
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, Workflow};
use serde_json::{Value, json};

use crate::{
    sample::{one_node, yes_no},
    support::{World, completed, select},
};

/// What was said of streams: the number of the stream, in the order of their beginning, and the kind.
fn said(world: &World) -> Vec<(usize, &'static str)> {
    let mut ids: Vec<String> = Vec::new();
    let mut number = |id: &str| {
        ids.iter().position(|known| known == id).unwrap_or_else(|| {
            ids.push(id.to_owned());
            ids.len() - 1
        })
    };
    let chunks = world.chunks.lock().unwrap();
    let said = chunks.iter().filter_map(|chunk| match chunk {
        StreamChunk::StructuredData(chunk) => {
            let kind = if matches!(chunk.change, StructuredChange::Final { .. }) { "final" } else { "change" };
            Some((number(&chunk.stream_id), kind))
        }
        StreamChunk::StructuredDataInvalidated { stream_id, .. } => Some((number(stream_id), "taken back")),
        _ => None,
    });
    said.collect()
}

/// What a client has that applied everything.
fn client(world: &World) -> Vec<Value> {
    let mut streams = StructuredStreams::default();
    world.chunks.lock().unwrap().iter().for_each(|chunk| streams.apply(chunk).unwrap());
    streams.iter().filter_map(|stream| stream.value().cloned()).collect()
}

/// Says something in two streams of which one ends; the second time around something else.
async fn speak(ctx: &NodeContext, attempt: u32) -> Result<(), NodeError> {
    ctx.structured("open", "t").text_delta("a", format!("half {attempt}")).await;
    ctx.structured("done", "t").finish(&json!(attempt)).await
}

/// Runs until nothing happens any more, has stored what was said, and dies.
async fn die_after_a_flush(world: &Arc<World>, flow: &Workflow) {
    let mut execution = world.start(flow, &json!(null));
    let handle = execution.handle();
    let death = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        handle.flush();
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    tokio::select! {
        end = world.drive(&mut execution) => panic!("{end:?}"),
        () = death => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_in_a_step_leaves_streams_that_the_next_attempt_takes_back() {
    let attempts = Arc::new(AtomicU32::new(0));
    let counted = attempts.clone();
    let flow = one_node(move |ctx| {
        let counted = counted.clone();
        async move {
            let outside = ctx.structured("outside", "t");
            outside.set("kept", &true).await?;
            let (inner, stream) = (ctx.clone(), &outside);
            let work = || async move {
                let attempt = counted.fetch_add(1, Ordering::SeqCst);
                stream.set("attempt", &attempt).await?;
                speak(&inner, attempt).await?;
                if attempt == 0 {
                    // Only what is said is stored, as after a while without anything else to store.
                    std::future::pending::<()>().await;
                }
                Ok::<_, NodeError>(attempt)
            };
            ctx.step("speak", work).await?;
            ctx.interrupt("q", yes_no("?")).await?;
            outside.finish(&json!("end")).await?;
            Ok(NodeOutput::new())
        }
    });
    let world = World::new(&[&flow]);
    die_after_a_flush(&world, &flow).await;
    assert_eq!(said(&world), [(0, "change"), (0, "change"), (1, "change"), (2, "final")]);
    world.resume().await;
    let again = [(1, "taken back"), (2, "taken back"), (0, "change"), (1, "change"), (2, "final")];
    assert_eq!(said(&world)[4..], again);
    assert_eq!(client(&world), [json!({"kept": true, "attempt": 1}), json!({"a": "half 1"}), json!(1)]);
    completed(world.answer("q", select(&["yes"])).await);
    assert_eq!(said(&world)[9..], [(0, "final")]);
    assert_eq!(attempts.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_the_node_drops_takes_its_open_streams_back_though_the_node_ends_at_once() {
    let flow = one_node(|ctx| async move {
        let inner = ctx.clone();
        let work = || async move {
            speak(&inner, 0).await?;
            std::future::pending::<Result<(), NodeError>>().await
        };
        let late = tokio::time::timeout(Duration::from_secs(1), ctx.step("speak", work)).await;
        assert!(late.is_err());
        Ok(NodeOutput::new())
    });
    let world = World::new(&[&flow]);
    completed(world.run(&flow, json!(null)).await);
    assert_eq!(said(&world), [(0, "change"), (1, "final"), (0, "taken back")]);
}
