//! Answers from a process that drives nothing.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use kortyx::{
    Agent, Answer, Interrupt,
    store::{InterruptQuery, RunStatus},
};
use kortyx_tests::driven::{Event, Log, answer_to};
use tokio::time::sleep;

use crate::world::scope;

const LOOK: Duration = Duration::from_millis(3);

/// Answers the oldest question of every run that waits, again and again.
pub(crate) async fn answer_for_ever(clerk: &Agent, log: &Log) {
    loop {
        let query = InterruptQuery { scope: scope(), limit: 200, ..InterruptQuery::default() };
        if let Some(question) = clerk.list_interrupts(query).await.unwrap().interrupts.first() {
            let run = clerk.store().run(&question.run_id).await.unwrap().unwrap();
            if run.status == RunStatus::Suspended {
                answer(clerk, log, question).await;
            }
        }
        sleep(LOOK).await;
    }
}

async fn answer(clerk: &Agent, log: &Log, question: &Interrupt) {
    static ANSWERS: AtomicU64 = AtomicU64::new(0);
    let (request_id, token) = (question.id.clone(), Some(question.handle().token.clone()));
    log.append(Event::Announced { request_id: request_id.clone(), token }).unwrap();
    let id = question.input.id.as_deref().unwrap();
    let answer = answer_to(&question.input, &format!("{id}/clerk/{}", ANSWERS.fetch_add(1, Ordering::Relaxed)));
    let acceptance = clerk.submit(vec![Answer::with_handle(question.handle(), answer.clone())]).await.unwrap();
    log.append(Event::Accepted { request_id, seq: acceptance.receipts[0].seq, answer }).unwrap();
}
