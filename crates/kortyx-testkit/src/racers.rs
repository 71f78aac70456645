//! Processes that give many answers at once.

use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use kortyx_protocol::{ResumeHandle, ResumeResponse};
use kortyx_store::{Clock as _, SystemClock};

use crate::{
    Ended, Error, Kill, Outcome, Process, Task, World,
    error::Doing as _,
    message::{READY, Volley},
};

/// How long the processes get to read what they are told before they start together.
const HEAD_START: Duration = Duration::from_millis(30);

/// Processes that wait for answers to give.
pub struct Racers(Vec<Process>);

impl Racers {
    /// Starts them, and waits until they are ready.
    pub async fn start(world: &World, count: usize, kill: Kill) -> Result<Self, Error> {
        let racer = async || {
            let mut process = world.member(Task::Race).kill(kill).start()?;
            let heard = process.hear().await?;
            if heard.as_deref() == Some(READY) { Ok(process) } else { Err("it is not ready").doing("starting a racer") }
        };
        Ok(Self(try_join_all((0..count).map(|_| racer())).await?))
    }

    /// Has each give its answers, all at once. What each said became of them, in their order; nothing if it died.
    pub async fn give(
        &mut self,
        answers: Vec<Vec<(ResumeHandle, ResumeResponse)>>,
    ) -> Result<Vec<Option<Vec<Outcome>>>, Error> {
        let at = SystemClock.now().saturating_add(HEAD_START);
        for (racer, answers) in self.0.iter_mut().zip(answers) {
            racer.say(&serde_json::to_string(&Volley { answers, at }).doing("writing answers")?).await;
        }
        let heard = try_join_all(self.0.iter_mut().map(Process::hear)).await?;
        let read = |line: String| serde_json::from_str(&line).doing("reading what a racer says");
        heard.into_iter().map(|line| line.map(read).transpose()).collect()
    }

    /// Ends them. How each ended.
    pub async fn end(mut self) -> Result<Vec<Ended>, Error> {
        join_all(self.0.iter_mut().map(Process::end)).await.into_iter().collect()
    }
}
