//! One run, from wherever it stands to its end.

use std::{error::Error, time::Duration};

use clap::ValueEnum;
use kortyx::{
    ExecuteOptions, Interrupt,
    protocol::RunId,
    store::{InterruptQuery, RunStatus},
};
use kortyx_tests::driven::Event;
use serde_json::json;

use crate::process::{Process, session};

/// How often to look at a run.
const LOOK: Duration = Duration::from_millis(3);

/// Who answers the questions of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Answering {
    /// This process, the oldest first, and the next when the run waits again.
    OneByOne,
    /// This process, all that are open at once.
    Together,
    /// Another process.
    Elsewhere,
}

pub(crate) async fn finish(process: &Process, answering: Answering) -> Result<(), Box<dyn Error>> {
    let run_id = match stored(process).await? {
        Some(run_id) => run_id,
        None => begin(process).await?,
    };
    loop {
        let scope = Process::scope()?;
        let run = process.agent.get_run(&run_id, &scope).await?.ok_or("the run is gone")?;
        match run.status {
            RunStatus::Suspended if answers(process, answering) => answer(process, &run_id, answering).await?,
            RunStatus::Parked => return Err(format!("the run is set aside: {:?}", run.failure).into()),
            status if status.is_terminal() => return Ok(()),
            _ => tokio::time::sleep(LOOK).await,
        }
    }
}

fn answers(process: &Process, answering: Answering) -> bool {
    answering != Answering::Elsewhere && !process.has_stood_still()
}

/// The run of the log that storage knows.
async fn stored(process: &Process) -> Result<Option<RunId>, Box<dyn Error>> {
    for line in process.log.read()? {
        if let Event::Began { run_id, .. } = line.event
            && process.is_stored(&run_id).await?
        {
            return Ok(Some(run_id));
        }
    }
    Ok(None)
}

async fn begin(process: &Process) -> Result<RunId, Box<dyn Error>> {
    let options = ExecuteOptions::new().session(session()?);
    let result = process.agent.execute(&process.flows.rich, json!({}), options).await?;
    for question in result.interrupts() {
        let token = Some(question.resume.token.clone());
        process.log.append(Event::Announced { request_id: question.request_id.clone(), token })?;
    }
    Ok(result.run_id().clone())
}

async fn answer(process: &Process, run_id: &RunId, answering: Answering) -> Result<(), Box<dyn Error>> {
    let query = InterruptQuery { run_id: Some(run_id.clone()), limit: 10, ..InterruptQuery::default() };
    let open: Vec<Interrupt> = process.agent.list_interrupts(query).await?.interrupts;
    process.announce(&open)?;
    let now = if answering == Answering::Together { open.as_slice() } else { open.get(..1).unwrap_or_default() };
    if now.is_empty() { Ok(()) } else { Ok(process.answer(now).await?) }
}
