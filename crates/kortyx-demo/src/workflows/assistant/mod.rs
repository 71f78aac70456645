//! An assistant that works with a model: it asks for what is missing, looks for a table, and books it when a person allows it.

mod scripted;
mod tables;

use std::sync::Arc;

use kortyx_contracts::{InterruptContract, OutputContract};
use kortyx_orchestrator::ChatInput;
use kortyx_reason::{Interrupts, Model, Outputs, Reason, ReasonExt as _, partial::Field, tool};
use kortyx_runtime::{NodeContext, NodeOutput, NodeResult, Workflow, workflow::DefinitionError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::scripted::scripted;

/// What the model is told before anything else.
const INSTRUCTIONS: &str = "You book tables in restaurants. You need a day and the number of guests; when either is not clear, ask \
    with `kortyx_request_input__details`, never in words. Look for tables with `find_tables`, choose one, say in a sentence which, and \
    book it with `book_table`. A person may change or reject the booking: then do as they say. Once a table is \
    booked, show it with `kortyx_emit__card`, and end with one sentence. Be brief and friendly.";

/// What the model has to know before it looks for tables.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Missing {
    /// What is asked, in one sentence.
    question: String,
}

/// For when and for how many.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Details {
    /// The day of the dinner.
    #[schemars(extend("format" = "date", "title" = "Day"))]
    day: String,
    /// How many will sit at the table.
    #[schemars(range(min = 1, max = 8), extend("title" = "Guests"))]
    guests: u8,
}

const DETAILS: InterruptContract<Missing, Details> = InterruptContract::new("details")
    .description(
        "Asks the person for the day and the number of guests. Use it when the request leaves one of them open.",
    )
    .schema_id("demo.details")
    .version("1");

/// A booking to show.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Card {
    /// The restaurant.
    title: String,
    /// The day and the time.
    when: String,
    guests: u8,
    confirmation: String,
    /// Two sentences to look forward to it.
    about: String,
    /// Two or three hints for the evening, each a short sentence.
    tips: Vec<String>,
}

const CARD: OutputContract<Card> = OutputContract::new("card")
    .description("Shows the person a booking that was made.")
    .schema_id("demo.card")
    .version("1");

pub(super) fn workflow(model: Arc<dyn Model>) -> Result<Workflow, DefinitionError> {
    Workflow::builder("assistant").node("assist", move |ctx: NodeContext| assist(ctx, model.clone())).build()
}

async fn assist(ctx: NodeContext, model: Arc<dyn Model>) -> NodeResult {
    let said: ChatInput = ctx.input()?;
    let reason = Reason::new(model)
        .system(INSTRUCTIONS)
        .history(ctx.history()?)
        .input(said.input)
        .interrupts(Interrupts::optional().contract(&DETAILS).max_requests(3))
        .tool(tool("find_tables", "Finds free tables for a day and a number of guests.", tables::find))
        .tool(tool("book_table", "Books one of the tables that were found.", tables::book).approve_always())
        .outputs(Outputs::new().emit(&CARD).fields([
            Field::set("title"),
            Field::set("when"),
            Field::set("guests"),
            Field::text_delta("about"),
            Field::append("tips"),
        ]))
        .max_steps(12)
        .emit();
    let done = ctx.reason("assist", reason).await?;
    Ok(NodeOutput::new().data("reply", &done.text))
}
