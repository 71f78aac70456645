//! A review with questions of every kind, and a loop.

use kortyx_contracts::{Choice, ChoiceOption, ChoiceOptions, InterruptContract, MultiChoice, Picker, Text};
use kortyx_orchestrator::ChatInput;
use kortyx_runtime::{NodeContext, NodeOutput, NodeResult, Workflow, workflow::DefinitionError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::say;
use crate::options::PEOPLE;

/// What the release is about.
#[derive(Serialize, JsonSchema)]
struct Plan {
    headline: String,
    owner: String,
    channels: Vec<String>,
}

/// When and how it is released.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Release {
    /// The day of the release.
    #[schemars(extend("format" = "date", "title" = "Date"))]
    date: String,
    #[schemars(extend("title" = "Audience"))]
    audience: Audience,
    /// How many reminders follow.
    #[schemars(range(min = 0, max = 5), extend("title" = "Reminders"))]
    reminders: u8,
    #[schemars(extend("title" = "Send to subscribers too"))]
    subscribers: bool,
    /// Anything that the editors should know.
    #[schemars(length(max = 200), extend("title" = "Note"))]
    note: Option<String>,
}

/// Who reads it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Audience {
    Everyone,
    Staff,
    Partners,
}

#[derive(ChoiceOptions)]
enum Verdict {
    #[choice(label = "Approve", description = "Go on to the release")]
    Approve,
    #[choice(label = "Revise", description = "Say what should change")]
    Revise,
    #[choice(label = "Discard", description = "Forget the draft")]
    Discard,
}

const RELEASE: InterruptContract<Plan, Release> = InterruptContract::new("release")
    .description("When and to whom the draft is released")
    .schema_id("demo.release")
    .version("1");

pub(super) fn workflow() -> Result<Workflow, DefinitionError> {
    Workflow::builder("review")
        .node("draft", draft)
        .node("review", review)
        .node("plan", plan)
        .node("publish", publish)
        .node("discard", discard)
        .edge("draft", "review")
        .edge_if("review", "plan", "approve")
        .edge_if("review", "draft", "revise")
        .edge_if("review", "discard", "discard")
        .edge("plan", "publish")
        .build()
}

/// Says a draft, the first one or one with the note in it.
async fn draft(ctx: NodeContext) -> NodeResult {
    let said: ChatInput = ctx.input()?;
    let draft = match ctx.optional_data::<String>("note")? {
        None => {
            format!("Here is a draft about “{}”: it is short, it is friendly, and it says what is new.", said.input)
        }
        Some(note) => format!("Here is the draft again, about “{}”, and now with this: {note}.", said.input),
    };
    say(&ctx, &draft).await;
    Ok(NodeOutput::new().data("draft", &draft))
}

async fn review(ctx: NodeContext) -> NodeResult {
    let condition = match ctx.interrupt("verdict", Choice::of::<Verdict>("What do you say to this draft?")).await? {
        Verdict::Approve => "approve",
        Verdict::Discard => "discard",
        Verdict::Revise => {
            let note = Text::new("What should be in it?").min_length(3).max_length(200);
            let note = ctx.interrupt("note", note).await?;
            return Ok(NodeOutput::new().data("note", &note).condition("revise"));
        }
    };
    Ok(NodeOutput::new().condition(condition))
}

/// Asks for everything that a release needs, one question after the other.
async fn plan(ctx: NodeContext) -> NodeResult {
    let headline = ctx.interrupt("headline", Text::new("Which headline?").min_length(3).max_length(80)).await?;
    let channels = MultiChoice::new("Where shall it appear?")
        .option("web", "Web site")
        .option_with(ChoiceOption::new("mail", "Newsletter").description("Goes out on Friday"))
        .option("print", "Printed bulletin")
        .min(1)
        .max(2);
    let channels = ctx.interrupt("channels", channels).await?;
    let owner = ctx.interrupt("owner", Picker::new(PEOPLE).version("1").with_question("Who owns it?")).await?;
    let plan = Plan { headline: headline.clone(), owner: owner.clone(), channels: channels.clone() };
    let release = ctx.interrupt("release", RELEASE.ask(plan)).await?;
    let output = NodeOutput::new().data("headline", &headline).data("channels", &channels).data("owner", &owner);
    Ok(output.data("release", &release))
}

async fn publish(ctx: NodeContext) -> NodeResult {
    let (headline, owner): (String, String) = (ctx.data("headline")?, ctx.data("owner")?);
    let channels: Vec<String> = ctx.data("channels")?;
    let release: Release = ctx.data("release")?;
    let channels = channels.join(" and ");
    let reply = format!("“{headline}” is released on {} by {owner}, through {channels}. Well done!", release.date);
    say(&ctx, &reply).await;
    Ok(NodeOutput::new().data("reply", &reply))
}

async fn discard(ctx: NodeContext) -> NodeResult {
    let reply = "The draft is gone. Send another message to begin again.";
    ctx.message(reply).await;
    Ok(NodeOutput::new().data("reply", reply))
}
