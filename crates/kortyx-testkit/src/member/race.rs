//! Many answers at once.

use std::{
    io::{self, Write as _},
    sync::Arc,
    time::Duration,
};

use kortyx_orchestrator::{Agent, Answer};
use kortyx_protocol::{ResumeHandle, ResumeResponse};
use kortyx_store::{Clock as _, SystemClock};
use tokio::sync::Barrier;

use super::{State, lines};
use crate::{
    BoxError, Outcome,
    message::{READY, Volley},
};

/// Reads volleys, one a line, and prints what became of the answers of each, one line for each volley.
pub(super) async fn race(state: &State) -> Result<(), BoxError> {
    let mut lines = lines();
    writeln!(io::stdout(), "{READY}")?;
    while let Some(line) = lines.recv().await {
        let outcomes = run(&state.agent, serde_json::from_str(&line)?).await?;
        writeln!(io::stdout(), "{}", serde_json::to_string(&outcomes)?)?;
    }
    Ok(())
}

async fn run(agent: &Agent, volley: Volley) -> Result<Vec<Outcome>, BoxError> {
    let barrier = Arc::new(Barrier::new(volley.answers.len()));
    tokio::time::sleep(volley.at.since(SystemClock.now())).await;
    let give = |(handle, answer)| tokio::spawn(give(agent.clone(), handle, answer, barrier.clone()));
    let tasks: Vec<_> = volley.answers.into_iter().map(give).collect();
    let mut outcomes = Vec::with_capacity(tasks.len());
    for task in tasks {
        outcomes.push(task.await?);
    }
    // The next question is asked when this one's effect has happened.
    while agent.driven_runs() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(outcomes)
}

async fn give(agent: Agent, handle: ResumeHandle, answer: ResumeResponse, barrier: Arc<Barrier>) -> Outcome {
    barrier.wait().await;
    match agent.submit(vec![Answer::with_handle(&handle, answer.clone())]).await {
        Ok(acceptance) => match acceptance.receipts.as_slice() {
            [receipt] => {
                Outcome::Accepted { answer, is_repeat: acceptance.is_duplicate, seq: receipt.seq, at: receipt.at }
            }
            receipts => Outcome::Refused { answer, code: format!("{} receipts", receipts.len()) },
        },
        Err(error) => Outcome::Refused { answer, code: error.code().as_str().into() },
    }
}
