//! Many runs that several processes begin, answer and recover.

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kortyx_orchestrator::Interrupt;
use kortyx_store::InterruptQuery;
use tokio::time::sleep;

use super::{State, lines};
use crate::{BoxError, Event, message::DRAIN};

/// The most questions to choose from.
const CHOICE: u32 = 50;

pub(super) async fn storm(state: &Arc<State>, at_once: u32, rest: Duration, open: u32) -> Result<(), BoxError> {
    let draining = Arc::new(AtomicBool::new(false));
    let work = |_| tokio::spawn(work(state.clone(), draining.clone(), rest, open));
    let workers: Vec<_> = (0..at_once).map(work).collect();
    let mut lines = lines();
    while let Some(line) = lines.recv().await {
        if line == DRAIN {
            draining.store(true, Ordering::Relaxed);
        }
    }
    workers.iter().for_each(tokio::task::JoinHandle::abort);
    Ok(())
}

async fn work(state: Arc<State>, draining: Arc<AtomicBool>, rest: Duration, open: u32) {
    loop {
        sleep(rest.mul_f64(0.5 + f64::from(random(1000)) / 1000.0)).await;
        if let Err(error) = act(&state, draining.load(Ordering::Relaxed), open).await {
            let event = Event::Failed { call: "agent".to_owned(), reason: error.to_string() };
            if let Err(error) = state.log.append(event) {
                eprintln!("the log cannot be written: {error}");
            }
        }
    }
}

/// Answers some open question, or begins a run.
async fn act(state: &State, is_draining: bool, most: u32) -> Result<(), BoxError> {
    let limit = most.max(CHOICE);
    let query = InterruptQuery { scope: state.subject.scope(), limit, ..InterruptQuery::default() };
    let mut open: Vec<Interrupt> = state.agent.list_interrupts(query).await?.interrupts;
    let count = u32::try_from(open.len())?;
    // A chance to begin that falls as questions pile up.
    if !is_draining && random(most) >= count {
        return state.begin(u64::from(random(u32::MAX))).await.map(drop);
    }
    if count == 0 {
        return Ok(());
    }
    let question = [open.swap_remove(usize::try_from(random(count))?)];
    state.answer(&question).await
}

/// A number below this one, a different one every time.
pub(crate) fn random(below: u32) -> u32 {
    let number = RandomState::new().build_hasher().finish();
    u32::try_from(number % u64::from(below.max(1))).unwrap_or_default()
}
