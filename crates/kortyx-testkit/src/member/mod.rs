//! What a process of a harness does.

mod finish;
mod race;
mod state;
mod storm;

use std::{
    env,
    io::{self, BufRead as _},
    sync::Arc,
    time::Duration,
};

use tokio::sync::mpsc;

pub(crate) use self::{state::State, storm::random};
use crate::{
    BoxError, Subject,
    message::{Orders, Task, VARIABLE},
};

/// How long a process lets its runs reach a pause or their end when it is told to end.
const FAREWELL: Duration = Duration::from_secs(20);

/// In a process that a harness started: does what it was started for, and ends the process. In any other: does nothing.
///
/// Call it first in the `main` of the program that holds the subject. A harness starts that same program again for each of its
/// processes, unless [`Kit::program`](crate::Kit::program) names another.
pub async fn member<S: Subject>(subject: Arc<S>) {
    let Ok(orders) = env::var(VARIABLE) else { return };
    match run(subject, &orders).await {
        Ok(()) => std::process::exit(0),
        Err(error) => {
            eprintln!("error: {error} ({error:?})");
            std::process::exit(1);
        }
    }
}

async fn run(subject: Arc<dyn Subject>, orders: &str) -> Result<(), BoxError> {
    let orders: Orders = serde_json::from_str(orders)?;
    let state = Arc::new(State::start(subject, &orders).await?);
    match orders.task {
        Task::Finish { answering, .. } => finish::finish(&state, answering).await?,
        Task::Race => race::race(&state).await?,
        Task::Storm { at_once, rest, open } => storm::storm(&state, at_once, rest, open).await?,
        Task::Serve => while lines().recv().await.is_some() {},
    }
    state.agent.shutdown(FAREWELL).await;
    state.end()
}

/// The lines of the input, until nobody holds its other end.
fn lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || io::stdin().lock().lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    receiver
}
