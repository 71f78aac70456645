//! The worker: recovers runs whose driver is gone, fires expiries, removes what retention allows.

mod config;
mod pass;

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use kortyx_store::{Signal, Signals, StoreErrorKind};
use tokio::{sync::broadcast::error::RecvError, time::sleep};
use tokio_util::sync::CancellationToken;

use self::pass::Rounds;
pub use self::{config::WorkerConfig, pass::WorkerPass};
use crate::{Agent, OrchestratorError, agent::Inner, host::jittered};

/// The longest pause after failures of the store.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long to go on collecting hints before a pass, so that a burst of them makes one.
const GATHER: Duration = Duration::from_millis(5);

/// Recovers runs, fires expiries, prunes. Any number may work on one store, in any number of processes.
///
/// Every agent runs one by default. Get one with [`Agent::worker`] to run it alone.
#[derive(Debug)]
pub struct Worker {
    agent: Agent,
    rounds: Rounds,
}

impl Agent {
    /// A worker of this agent, to run alone. For an agent built with [`without_worker`](crate::AgentBuilder::without_worker).
    pub fn worker(&self) -> Worker {
        Worker { agent: self.clone(), rounds: Rounds::new(&self.0.worker) }
    }
}

impl Worker {
    /// Works until the token is cancelled or the agent shuts down. Failures of the store are logged, and it tries again.
    pub async fn run(mut self, until: CancellationToken) {
        let mut waits = Waits::new(&self.agent.0);
        loop {
            let outcome = self.pass().await;
            if is_closed(&outcome) {
                return;
            }
            let pause = waits.after(&outcome, &self.agent.0);
            tokio::select! {
                () = until.cancelled() => return,
                () = self.agent.0.stopping.cancelled() => return,
                () = waits.wait(pause) => {}
                () = self.rounds.freed() => {}
            }
        }
    }

    /// Makes one pass: everything that is due now, within the batch sizes. Runs that it recovers go on in the background.
    pub async fn pass(&mut self) -> Result<WorkerPass, OrchestratorError> {
        self.agent.0.pass(&mut self.rounds).await
    }
}

/// Starts the agent's own worker, which ends with the agent.
pub(crate) fn start(inner: &Arc<Inner>) {
    let work = work(Arc::downgrade(inner), inner.stopping.clone(), Rounds::new(&inner.worker), Waits::new(inner));
    inner.tasks.spawn_on(work, &inner.runtime);
}

/// Passes are never cut short: what they claimed is driven.
async fn work(weak: Weak<Inner>, stopping: CancellationToken, mut rounds: Rounds, mut waits: Waits) {
    loop {
        let Some(inner) = weak.upgrade() else { return };
        let outcome = inner.pass(&mut rounds).await;
        if is_closed(&outcome) {
            return;
        }
        let pause = waits.after(&outcome, &inner);
        drop(inner);
        tokio::select! {
            () = stopping.cancelled() => return,
            () = waits.wait(pause) => {}
            () = rounds.freed() => {}
        }
    }
}

/// Hands the store's hints to the drivers in this process; ends with the agent.
pub(crate) fn start_listener(inner: &Arc<Inner>) {
    let gone = inner.gone.clone();
    let listen = listen(Arc::downgrade(inner), inner.store.signals());
    inner.runtime.spawn(async move { gone.run_until_cancelled(listen).await });
}

async fn listen(weak: Weak<Inner>, mut signals: Signals) {
    loop {
        let signal = signals.recv().await;
        let Some(inner) = weak.upgrade() else { return };
        match signal {
            Ok(Signal::Attention(run_id)) => inner.attend(&run_id),
            Ok(Signal::Work) => {}
            Err(RecvError::Lagged(_)) => inner.drivers.attend_all(),
            Err(RecvError::Closed) => return,
        }
    }
}

fn is_closed(outcome: &Result<WorkerPass, OrchestratorError>) -> bool {
    matches!(outcome, Err(OrchestratorError::Storage(error)) if error.kind() == StoreErrorKind::Closed)
}

/// When to make the next pass.
struct Waits {
    signals: Option<Signals>,
    failures: u32,
}

impl Waits {
    fn new(inner: &Inner) -> Self {
        Self { signals: Some(inner.store.signals()), failures: 0 }
    }

    /// How long to wait after a pass at most.
    fn after(&mut self, outcome: &Result<WorkerPass, OrchestratorError>, inner: &Inner) -> Duration {
        let poll = jittered(inner.worker.poll);
        match outcome {
            Ok(pass) if pass.is_more => {
                self.failures = 0;
                Duration::ZERO
            }
            Ok(_) => {
                self.failures = 0;
                poll
            }
            Err(_) => {
                self.failures = self.failures.saturating_add(1);
                poll.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE)
            }
        }
    }

    /// Waits that long, or until there is work.
    async fn wait(&mut self, pause: Duration) {
        // After a failure a hint is no reason to try at once.
        if self.failures > 0 {
            return sleep(pause).await;
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = work_signalled(&mut self.signals) => {
                sleep(GATHER.min(pause)).await;
                if let Some(signals) = &mut self.signals {
                    *signals = signals.resubscribe();
                }
            }
        }
    }
}

async fn work_signalled(signals: &mut Option<Signals>) {
    while let Some(receiver) = signals {
        match receiver.recv().await {
            Ok(Signal::Work) | Err(RecvError::Lagged(_)) => return,
            Ok(Signal::Attention(_)) => {}
            Err(RecvError::Closed) => *signals = None,
        }
    }
    std::future::pending::<()>().await;
}
