//! One run, from wherever it stands to its end.

use std::time::Duration;

use kortyx_orchestrator::Interrupt;
use kortyx_protocol::RunId;
use kortyx_store::{InterruptQuery, RunStatus};

use super::State;
use crate::{Answering, BoxError, Event};

/// How often to look at a run.
const LOOK: Duration = Duration::from_millis(3);

pub(super) async fn finish(state: &State, answering: Answering) -> Result<(), BoxError> {
    let run_id = match stored(state).await? {
        Some(run_id) => run_id,
        None => state.begin(0).await?.run_id().clone(),
    };
    let scope = state.subject.scope();
    loop {
        let run =
            state.agent.get_run(&run_id, &scope).await?.ok_or("the run is gone, or outside the subject's scope")?;
        match run.status {
            // What an answer leads to stands in the log behind what led to the question.
            RunStatus::Suspended if answers(state, answering) && state.has_told_all() => {
                answer(state, &run_id, answering).await?;
            }
            RunStatus::Parked => return Err(format!("the run is set aside: {:?}", run.failure).into()),
            status if status.is_terminal() => return Ok(()),
            _ => tokio::time::sleep(LOOK).await,
        }
    }
}

fn answers(state: &State, answering: Answering) -> bool {
    answering != Answering::Elsewhere && !state.has_stood_still()
}

/// The run of the log that storage knows.
async fn stored(state: &State) -> Result<Option<RunId>, BoxError> {
    for line in state.log.read()? {
        if let Event::Began { run_id } = line.event
            && state.is_stored(&run_id).await?
        {
            return Ok(Some(run_id));
        }
    }
    Ok(None)
}

async fn answer(state: &State, run_id: &RunId, answering: Answering) -> Result<(), BoxError> {
    let query = InterruptQuery { run_id: Some(run_id.clone()), limit: 10, ..InterruptQuery::default() };
    let open: Vec<Interrupt> = state.agent.list_interrupts(query).await?.interrupts;
    let now = if answering == Answering::Together { open.as_slice() } else { open.get(..1).unwrap_or_default() };
    if now.is_empty() { Ok(()) } else { state.answer(now).await }
}
