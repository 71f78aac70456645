//! The workflow: draft a summary of a document, have a person approve or revise it, then plan its release.

use kortyx::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{summary::summarize, terminal::announce};

/// What the workflow is started with.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Document {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The decision about a draft; the `match` below must handle every option.
#[derive(ChoiceOptions)]
enum Verdict {
    /// Approve it
    Approve,
    /// Revise it
    Revise,
}

/// What the person who plans the release sees.
#[derive(Serialize, JsonSchema)]
struct ReleaseRequest {
    summary: String,
    channels: Vec<String>,
}

/// What that person answers.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Release {
    /// The day, as YYYY-MM-DD
    #[schemars(regex(pattern = r"^20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$"))]
    date: String,
    /// Who it is for
    audience: Audience,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Audience {
    Internal,
    Customers,
    Everyone,
}

const RELEASE: InterruptContract<ReleaseRequest, Release> = InterruptContract::new("release")
    .description("When and for whom the document is released")
    .schema_id("example.release")
    .version("1");

/// The graph: three nodes in a row.
pub(crate) fn workflow() -> Result<Workflow<Document>, DefinitionError> {
    Workflow::builder("document-review")
        .version("1")
        .input::<Document>()
        .node("draft", draft)
        .node("review", review)
        .node("release", release)
        .edge("draft", "review")
        .edge("review", "release")
        .build()
}

async fn draft(ctx: NodeContext) -> NodeResult {
    let document: Document = ctx.input()?;
    Ok(NodeOutput::new().data("summary", &summarize(&document.text, "")))
}

async fn review(ctx: NodeContext) -> NodeResult {
    let document: Document = ctx.input()?;
    let mut summary: String = ctx.data("summary")?;

    // A step runs once: after a crash, or when an answer brings the node back, its recorded result is used instead.
    ctx.step("notify", || async { announce(&format!("Notification sent: `{}` is up for review.", document.name)) })
        .await?;

    loop {
        // The run stops here, for seconds or weeks. No task, no thread and no memory waits for the answer.
        let question = format!("{summary}\n\nWhat do you say to this summary?");
        match ctx.interrupt("verdict", Choice::of::<Verdict>(question)).await? {
            Verdict::Approve => return Ok(NodeOutput::new().data("summary", &summary)),
            Verdict::Revise => {
                let note = ctx.interrupt("note", Text::new("What should it be about?").max_length(200)).await?;
                summary = summarize(&document.text, &note);
            }
        }
    }
}

async fn release(ctx: NodeContext) -> NodeResult {
    let summary: String = ctx.data("summary")?;
    let channels = MultiChoice::new("Where should it be published?")
        .option("web", "Web site")
        .option("mail", "Newsletter")
        .option("wiki", "Intranet wiki");
    let channels = ctx.interrupt("channels", channels).await?;
    let plan = RELEASE.ask(ReleaseRequest { summary, channels: channels.clone() });
    let plan = ctx.interrupt("release", plan).await?;
    Ok(NodeOutput::new().data("channels", &channels).data("release", &plan))
}
