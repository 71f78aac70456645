//! What a run shares with its children is counted in storage: each process counts on where the one before stopped.

use kortyx::{
    Agent, ExecuteOptions, NodeContext, NodeError, NodeOutput, Workflow,
    protocol::{ExecutionResult, FailureCode, ResumeResponse, Usage},
    reason::{
        MODEL_PASSES, Message, Reason, ReasonExt as _, Script, ScriptedModel, TOOL_CALLS, ToolContext, ToolError, tool,
    },
};
use kortyx_tests::{Counter, World, data, failure, only};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Serialize, Deserialize, JsonSchema)]
struct Note {
    text: String,
}

/// Reasons in three passes, with two calls of a tool.
async fn reasons(ctx: NodeContext, notes: Counter) -> Result<NodeOutput, NodeError> {
    let model = ScriptedModel::from_fn(move |messages| {
        let spoken = messages.iter().filter(|message| matches!(message, Message::Assistant { .. }));
        match spoken.count() {
            0 => Script::new().call("note", json!({"text": "a"})).usage(2, 1),
            1 => Script::new().call("note", json!({"text": "b"})).usage(2, 1),
            _ => Script::new().text("Done.").usage(2, 1),
        }
    });
    let note = tool("note", "Notes it", move |note: Note, _: ToolContext| {
        notes.hit();
        async move { Ok::<_, ToolError>(note.text) }
    });
    let done = ctx.reason("brief", Reason::new(model).input("Go.").tool(note)).await?;
    Ok(NodeOutput::new().data("text", &done.text))
}

/// A run of two branches, each with a child that reasons.
fn family(notes: &Counter) -> [Workflow; 2] {
    let notes = notes.clone();
    let child = Workflow::builder("child").node("reason", move |ctx| reasons(ctx, notes.clone())).build().unwrap();
    let calls = || {
        let child = child.clone();
        move |ctx: NodeContext| {
            let child = child.clone();
            async move {
                ctx.call::<_, Value>("child", &child, json!({})).await?;
                Ok(NodeOutput::new())
            }
        }
    };
    let join = |ctx: NodeContext| async move {
        let (passes, calls) = (ctx.level(MODEL_PASSES)?.used, ctx.level(TOOL_CALLS)?.used);
        Ok(NodeOutput::new().data("used", &[passes, calls]))
    };
    let parent = Workflow::builder("parent")
        .node("start", |_: NodeContext| async { Ok(NodeOutput::new()) })
        .node("left", calls())
        .node("right", calls())
        .node("join", join)
        .edge("start", "left")
        .edge("start", "right")
        .edge("left", "join")
        .edge("right", "join")
        .build()
        .unwrap();
    [parent, child]
}

async fn process(world: &World, [parent, child]: &[Workflow; 2]) -> Agent {
    world.builder().await.workflow(parent).workflow(child).without_worker().build().await.unwrap()
}

fn within(passes: u64) -> ExecuteOptions {
    ExecuteOptions::new().limit(MODEL_PASSES, passes)
}

#[tokio::test]
async fn each_process_counts_on_asks_once_and_goes_on_with_all_branches() {
    let (world, notes) = (World::new(), Counter::new());
    let family = family(&notes);
    let mut result = process(&world, &family).await.execute(&family[0], json!({}), within(2)).await.unwrap();
    // Six passes, two at a time.
    for total in [6, 12] {
        assert_eq!(result.usage().map(|usage| usage.total), Some(total));
        let question = only(&result);
        assert_eq!((question.workflow.as_str(), question.input.id.as_deref()), ("parent", Some("limit-reached")));
        let yes = ResumeResponse::select(["continue"]);
        result = process(&world, &family).await.resume(&question.resume, yes).await.unwrap();
    }
    assert_eq!(result.usage(), Some(Usage { input: 12, output: 6, total: 18 }));
    assert_eq!((data(result), notes.count()), (json!({"used": [6, 4]}), 4));
}

#[tokio::test]
async fn a_no_in_another_process_ends_the_run_for_good() {
    let (world, notes) = (World::new(), Counter::new());
    let family = family(&notes);
    let paused = process(&world, &family).await.execute(&family[0], json!({}), within(3)).await.unwrap();
    let question = only(&paused);
    let (before, no) = (notes.count(), ResumeResponse::select(["stop"]));
    for _ in 0..2 {
        let ended = process(&world, &family).await.resume(&question.resume, no.clone()).await.unwrap();
        assert!(matches!(ended, ExecutionResult::Failed { .. }), "{ended:?}");
        assert_eq!(ended.usage().map(|usage| usage.total), Some(9));
        assert_eq!((failure(ended).code, notes.count()), (FailureCode::LimitReached, before));
    }
}
