//! Answers from a process that drives nothing.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use kortyx_orchestrator::{Agent, Answer, Interrupt};
use kortyx_store::{InterruptQuery, RunStatus};
use tokio::time::sleep;

use crate::{Error, Event, World, error::Doing as _};

const LOOK: Duration = Duration::from_millis(3);
/// How long what is in storage may be missing in the log of the process that stored it.
const LAG: Duration = Duration::from_millis(20);

impl World {
    /// Answers the oldest question of every run that waits, again and again, with a [clerk](Self::clerk). It ends when something
    /// fails.
    pub async fn answer_for_ever(&self, clerk: &Agent) -> Error {
        loop {
            if let Err(error) = self.answer_oldest(clerk).await {
                return error;
            }
            sleep(LOOK).await;
        }
    }

    async fn answer_oldest(&self, clerk: &Agent) -> Result<(), Error> {
        let query = InterruptQuery { scope: self.subject().scope(), limit: 200, ..InterruptQuery::default() };
        let open = clerk.list_interrupts(query).await.doing("listing questions")?.interrupts;
        let Some(question) = open.first() else { return Ok(()) };
        let run = clerk.store().run(&question.run_id).await.doing("reading a run")?;
        if run.is_some_and(|run| run.status == RunStatus::Suspended) {
            // What an answer leads to stands in the log behind what led to the question.
            sleep(LAG).await;
            self.answer(clerk, question).await?;
        }
        Ok(())
    }

    async fn answer(&self, clerk: &Agent, question: &Interrupt) -> Result<(), Error> {
        static ANSWERS: AtomicU64 = AtomicU64::new(0);
        let (request_id, token) = (question.id.clone(), Some(question.handle().token.clone()));
        let told = |event| self.log().append(event).doing("writing the log");
        told(Event::Announced { request_id: request_id.clone(), token })?;
        let id = question.input.id.as_deref().unwrap_or_default();
        let text = format!("{id}/clerk/{}", ANSWERS.fetch_add(1, Ordering::Relaxed));
        let answer = self.subject().answer(&question.input, &text);
        let answers = vec![Answer::with_handle(question.handle(), answer.clone())];
        let acceptance = clerk.submit(answers).await.doing("answering")?;
        let seq = acceptance.receipts.first().map_or(0, |receipt| receipt.seq);
        told(Event::Accepted { request_id, seq, answer })
    }
}
