//! Reviews a document in the terminal. Kill it at any prompt and start it again: it goes on at that prompt.

mod review;
mod summary;
mod terminal;

use std::{error::Error, fs, path::PathBuf, process::ExitCode, time::Duration};

use clap::Parser;
use etcetera::{AppStrategy, AppStrategyArgs, choose_app_strategy};
use kortyx::{
    Interrupt, OrchestratorError,
    prelude::*,
    protocol::{Failure, FailureCode, RequestId, SessionId},
    sqlite::{SqliteConfig, SqliteStore},
    store::{InterruptQuery, Scope},
};

use crate::review::Document;

/// A day: long enough to come back tomorrow.
const QUESTION_TTL: Duration = Duration::from_hours(24);

/// Reviews a document: drafts a summary, asks you to approve or revise it, and plans its release.
///
/// Leave at any prompt, with Ctrl-C or with `kill -9`, and start the program again: it goes on at that prompt, and nothing that
/// was done is done again.
#[derive(Parser)]
struct Arguments {
    /// The text file to review; a sample ships with the program
    file: Option<PathBuf>,
    /// The SQLite file that holds the runs [default: in your data directory]
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
    /// Show the open questions and leave
    #[arg(long, conflicts_with = "answer")]
    list: bool,
    /// Answer a question without the dialog: its id as shown by --list, and an option id, ids with commas, text or JSON
    #[arg(long, num_args = 2, value_names = ["ID", "VALUE"])]
    answer: Option<Vec<String>>,
}

/// Where the review stands after an answer.
#[derive(PartialEq, Eq)]
enum Review {
    Over,
    Waits,
    /// The answer was refused.
    Unchanged,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let workflow = review::workflow()?;
    let path = arguments.store.map_or_else(default_store, Ok)?;
    let store = SqliteStore::open(SqliteConfig::new(&path)).await?;
    let agent = Agent::builder().workflow(&workflow).store(store).question_ttl(QUESTION_TTL).build().await?;

    let session = SessionId::new("approval")?;
    let open = open_questions(&agent, &session).await?;
    let result = match (arguments.list, arguments.answer.as_deref()) {
        (true, _) => {
            terminal::list(&open);
            Ok(())
        }
        (_, Some([id, value])) => answer(&agent, &open, id, value).await,
        _ => dialog(&agent, &workflow, &session, open, arguments.file).await,
    };
    agent.shutdown(Duration::from_secs(5)).await;
    result
}

/// Goes on with the open review, or begins one, until it is finished or the person leaves.
async fn dialog(
    agent: &Agent,
    workflow: &Workflow<Document>,
    session: &SessionId,
    mut open: Vec<Interrupt>,
    file: Option<PathBuf>,
) -> Result<(), Box<dyn Error>> {
    if open.is_empty() {
        let document = read(file)?;
        println!("Reviewing `{}`.", document.name);
        let options = ExecuteOptions::new().session(session.clone());
        let started = agent.execute(workflow, document, options);
        if report(terminal::working("drafting a summary", started).await?) == Review::Over {
            return Ok(());
        }
        open = open_questions(agent, session).await?;
    } else {
        println!("Going on where you left off.");
    }
    while let Some(question) = open.first() {
        let Some(response) = terminal::prompt(&question.input)? else {
            println!("The question stays open. Start the program again to go on.");
            return Ok(());
        };
        if respond(agent, &question.id, response).await? == Review::Over {
            return Ok(());
        }
        open = open_questions(agent, session).await?;
    }
    Ok(())
}

/// Answers one question from the command line.
async fn answer(agent: &Agent, open: &[Interrupt], id: &str, value: &str) -> Result<(), Box<dyn Error>> {
    let matching: Vec<_> = open.iter().filter(|record| record.id.as_str().starts_with(id)).collect();
    let [question] = matching.as_slice() else {
        return Err(format!("{} open questions have an id that begins with `{id}`; see --list", matching.len()).into());
    };
    match respond(agent, &question.id, terminal::parse(&question.input, value)?).await? {
        Review::Unchanged => Err("the answer was refused".into()),
        Review::Over | Review::Waits => Ok(()),
    }
}

/// Gives an answer; one that does not fit is explained and changes nothing.
async fn respond(agent: &Agent, id: &RequestId, response: ResumeResponse) -> Result<Review, Box<dyn Error>> {
    let scope = Scope::session(SessionId::new("approval")?);
    let answered = agent.answer(id, scope, response, whoami());
    match terminal::working("working", answered).await {
        Ok(result) => Ok(report(result)),
        Err(error) if error.code() == FailureCode::InvalidResponse => {
            println!("This answer does not fit, and the question stays open:");
            for issue in Failure::from(error).issues.unwrap_or_default() {
                println!("  {}", terminal::explain(&issue));
            }
            Ok(Review::Unchanged)
        }
        Err(error) => Err(Failure::from(error).into()),
    }
}

/// Shows where the review stands.
fn report<T: serde::Serialize>(result: ExecutionResult<T>) -> Review {
    match result {
        ExecutionResult::Completed { data, .. } => {
            let text = serde_json::to_string_pretty(&data).unwrap_or_default();
            println!("\nThe review is finished:\n{text}");
            Review::Over
        }
        ExecutionResult::Suspended { interrupts, .. } => {
            let nodes: Vec<&str> = interrupts.iter().map(|question| &*question.node).collect();
            println!("Saved; the run waits in `{}`.", nodes.join("`, `"));
            Review::Waits
        }
        ExecutionResult::Failed { error, .. } => {
            println!("The review failed: {error}");
            Review::Over
        }
        ExecutionResult::Cancelled { .. } => Review::Over,
    }
}

async fn open_questions(agent: &Agent, session: &SessionId) -> Result<Vec<Interrupt>, OrchestratorError> {
    let query = InterruptQuery { scope: Scope::session(session.clone()), limit: 50, ..InterruptQuery::default() };
    Ok(agent.list_interrupts(query).await?.interrupts)
}

fn read(file: Option<PathBuf>) -> Result<Document, Box<dyn Error>> {
    let Some(path) = file else {
        return Ok(Document { name: "sample.txt".into(), text: include_str!("sample.txt").into() });
    };
    let text = fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Ok(Document { name: path.display().to_string(), text })
}

fn default_store() -> Result<PathBuf, Box<dyn Error>> {
    let app =
        AppStrategyArgs { top_level_domain: "dev".into(), author: "Kortyx".into(), app_name: "kortyx-approval".into() };
    Ok(choose_app_strategy(app)?.in_data_dir("runs.sqlite"))
}

fn whoami() -> Option<String> {
    std::env::var("USER").ok()
}
