//! Many runs that several processes begin, answer and recover.

use std::{collections::BTreeSet, error::Error, time::Duration};

use kortyx::{
    ExecuteOptions, Interrupt,
    store::{Clock as _, InterruptQuery, SystemClock},
};
use kortyx_tests::driven::Event;
use serde_json::json;

use crate::process::{self, Process, session};

/// How often a process answers a question, so that the runs last while processes are killed.
const PACE: Duration = Duration::from_millis(60);

pub(crate) async fn pool(process: &Process, own: i64, of: i64, runs: i64) -> Result<(), Box<dyn Error>> {
    let stored = stored(process).await?;
    let missing = (0..runs).filter(|number| number % of == own && !stored.contains(number));
    tokio::select! {
        ended = work(process, missing) => ended,
        () = process::input_ended() => Ok(()),
    }
}

async fn work(process: &Process, missing: impl Iterator<Item = i64>) -> Result<(), Box<dyn Error>> {
    for number in missing {
        let options = ExecuteOptions::new().session(session()?).context("number", number);
        process.agent.execute(&process.flows.rich, json!({}), options).await?;
        answer_any(process).await?;
    }
    loop {
        answer_any(process).await?;
        tokio::time::sleep(PACE).await;
    }
}

/// The numbers of the runs that storage knows.
async fn stored(process: &Process) -> Result<BTreeSet<i64>, Box<dyn Error>> {
    let mut numbers = BTreeSet::new();
    for line in process.log.read()? {
        if let Event::Began { run_id, number } = line.event
            && process.is_stored(&run_id).await?
        {
            numbers.insert(number);
        }
    }
    Ok(numbers)
}

/// Answers some open question.
async fn answer_any(process: &Process) -> Result<(), Box<dyn Error>> {
    let query = InterruptQuery { scope: Process::scope()?, limit: 200, ..InterruptQuery::default() };
    let mut open: Vec<Interrupt> = process.agent.list_interrupts(query).await?.interrupts;
    if open.is_empty() {
        return Ok(());
    }
    let any = usize::try_from(SystemClock.now().as_millis())?.wrapping_mul(31) % open.len();
    let question = [open.swap_remove(any)];
    process.announce(&question)?;
    Ok(process.answer(&question).await?)
}
