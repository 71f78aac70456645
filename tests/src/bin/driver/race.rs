//! Many answers at once.

use std::{
    error::Error,
    io::{self, BufRead as _, Write as _},
    sync::Arc,
    time::Duration,
};

use kortyx::{
    Agent, Answer,
    protocol::{ResumeHandle, ResumeResponse},
    store::{Clock as _, SystemClock},
};
use kortyx_tests::driven::{Outcome, Race};
use tokio::sync::{Barrier, mpsc};

use crate::process::Process;

/// Reads races, one a line, and prints what became of the answers of each, one line for each race.
pub(crate) async fn race(process: &Process) -> Result<(), Box<dyn Error>> {
    let mut lines = lines();
    writeln!(io::stdout(), "ready")?;
    while let Some(line) = lines.recv().await {
        let outcomes = run(&process.agent, serde_json::from_str(&line)?).await?;
        writeln!(io::stdout(), "{}", serde_json::to_string(&outcomes)?)?;
    }
    Ok(())
}

fn lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || io::stdin().lock().lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    receiver
}

async fn run(agent: &Agent, race: Race) -> Result<Vec<Outcome>, Box<dyn Error>> {
    let barrier = Arc::new(Barrier::new(race.answers.len()));
    tokio::time::sleep(race.at.since(SystemClock.now())).await;
    let give = |(handle, answer)| tokio::spawn(give(agent.clone(), handle, answer, barrier.clone()));
    let tasks: Vec<_> = race.answers.into_iter().map(give).collect();
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

async fn give(agent: Agent, handle: ResumeHandle, answer: String, barrier: Arc<Barrier>) -> Outcome {
    barrier.wait().await;
    match agent.submit(vec![Answer::with_handle(&handle, ResumeResponse::text(&answer))]).await {
        Ok(acceptance) => match acceptance.receipts.as_slice() {
            [receipt] => {
                Outcome::Accepted { answer, is_repeat: acceptance.is_duplicate, seq: receipt.seq, at: receipt.at }
            }
            receipts => Outcome::Refused { answer, code: format!("{} receipts", receipts.len()) },
        },
        Err(error) => Outcome::Refused { answer, code: error.code().as_str().into() },
    }
}
