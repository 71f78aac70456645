//! What calls are made of that are made of several.

use kortyx_contracts::Text;
use kortyx_protocol::{Failure, FailureCode, StreamChunk, TextMark};
use kortyx_runtime::{NodeContext, NodeOutput, Workflow};
use serde_json::json;

use crate::support::{Drive, World, completed, text};

#[tokio::test]
async fn uses_of_an_id_are_counted_the_same_way_in_every_pass() {
    let node = |ctx: NodeContext| async move {
        let first = ctx.occurrence("brief")?;
        let name = ctx.interrupt("brief", Text::new("Name?")).await?;
        let third = ctx.occurrence("brief")?;
        Ok(NodeOutput::new().data("uses", &[first, third]).data("name", &name))
    };
    let workflow = Workflow::builder("uses").node("node", node).build().unwrap();
    let world = World::new(&[&workflow]);
    world.run(&workflow, json!({})).await;
    assert_eq!(completed(world.answer("brief", text("Ann")).await), json!({"uses": [0, 2], "name": "Ann"}));
}

#[tokio::test]
async fn a_chunk_of_the_node_is_delivered_once_and_one_of_the_engine_is_refused() {
    let node = |ctx: NodeContext| async move {
        ctx.chunk(StreamChunk::TextStart(TextMark::default())).await?;
        ctx.chunk(StreamChunk::text_delta("Hello")).await?;
        let refused = ctx.chunk(StreamChunk::Done { data: None }).await.is_err();
        ctx.interrupt("name", Text::new("Name?")).await?;
        Ok(NodeOutput::new().data("refused", &refused))
    };
    let workflow = Workflow::builder("chunks").node("node", node).build().unwrap();
    let world = World::new(&[&workflow]);
    world.run(&workflow, json!({})).await;
    assert_eq!(completed(world.answer("name", text("Ann")).await), json!({"refused": true}));
    assert_eq!((world.text().as_str(), world.chunks.lock().unwrap().len()), ("Hello", 2));
}

#[tokio::test]
async fn a_node_that_parks_goes_no_further_and_its_answer_stays() {
    let make = |parks: bool| {
        let node = move |ctx: NodeContext| async move {
            let name = ctx.interrupt("name", Text::new("Name?")).await?;
            if parks {
                ctx.park::<()>(Failure::new(FailureCode::ReplayDiverged, "other code is needed")).await;
            }
            Ok(NodeOutput::new().data("name", &name))
        };
        Workflow::builder("parks").node("node", node).build().unwrap()
    };
    let world = World::new(&[&make(true)]);
    world.run(&make(true), json!({})).await;
    let Drive::Parked(failure) = world.answer("name", text("Ann")).await else { panic!("it is not parked") };
    assert_eq!(failure.message, "other code is needed");
    let world = world.redeploy(&[&make(false)]);
    assert_eq!(completed(world.resume().await), json!({"name": "Ann"}));
}
