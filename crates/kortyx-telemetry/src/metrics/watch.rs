//! What there is now, read again and again.

use std::{fmt, sync::Arc, time::Duration};

use kortyx_orchestrator::Agent;
use kortyx_store::{RunStatus, Store};
use metrics::SharedString;
use tokio::time::{MissedTickBehavior, interval};

use super::{names, quietly};
#[cfg(feature = "studio")]
use crate::StudioReporter;

const STATUSES: [RunStatus; 7] = [
    RunStatus::Running,
    RunStatus::Suspended,
    RunStatus::Completed,
    RunStatus::Failed,
    RunStatus::Cancelled,
    RunStatus::Expired,
    RunStatus::Parked,
];

/// Reads what no fact tells and sets it as gauges: how many questions are open and how many runs there are, which only the store knows;
/// and what this process holds.
///
/// [`Store::stats`] counts all that a store holds, which takes a large one a while: a minute is a good interval, and one process is enough
/// to watch a store. Where several do, each sets the same values: take the largest, not the sum.
///
/// ```
/// use std::time::Duration;
/// use kortyx_orchestrator::Agent;
/// use kortyx_telemetry::metrics::Watch;
///
/// # fn example(agent: &Agent) {
/// let watch = Watch::new().store("postgres", agent.store().clone()).agent(agent);
/// let watching = tokio::spawn(watch.run(Duration::from_secs(60)));
/// // … and at the end:
/// watching.abort();
/// # }
/// ```
#[derive(Default)]
#[must_use = "a watch reads nothing before `run` or `read` is awaited"]
pub struct Watch {
    stores: Vec<(&'static str, Arc<dyn Store>)>,
    agent: Option<Agent>,
    streams: Option<Box<dyn Fn() -> usize + Send + Sync>>,
    #[cfg(feature = "studio")]
    reporter: Option<StudioReporter>,
}

impl Watch {
    /// Watches nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Watches a store: `kortyx_questions_open`, `kortyx_runs`. The name is the label.
    pub fn store(mut self, name: &'static str, store: Arc<dyn Store>) -> Self {
        self.stores.push((name, store));
        self
    }

    /// Watches an agent: `kortyx_runs_driven`. It keeps the agent alive.
    pub fn agent(mut self, agent: &Agent) -> Self {
        self.agent = Some(agent.clone());
        self
    }

    /// Watches how many streams are open: `kortyx_streams_open`. With `kortyx-http`, `move || http.open_streams()`.
    pub fn streams(mut self, count: impl Fn() -> usize + Send + Sync + 'static) -> Self {
        self.streams = Some(Box::new(count));
        self
    }

    /// Watches the reporter: `kortyx_reporter_waiting`, `kortyx_reporter_events_total`.
    #[cfg(feature = "studio")]
    pub fn reporter(mut self, reporter: &StudioReporter) -> Self {
        self.reporter = Some(reporter.clone());
        self
    }

    /// Reads at once and then at this interval, for as long as it is polled. Spawn it, and abort the task at the end.
    pub async fn run(self, every: Duration) {
        quietly(names::describe);
        let mut ticks = interval(every.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.read().await;
        }
    }

    /// Reads once, for applications that are asked for their metrics and read then.
    pub async fn read(&self) {
        quietly(|| self.read_process());
        for (name, store) in &self.stores {
            read_store(name, &**store).await;
        }
    }

    fn read_process(&self) {
        if let Some(agent) = &self.agent {
            names::RUNS_DRIVEN.set([], number(agent.driven_runs()));
        }
        if let Some(streams) = &self.streams {
            names::STREAMS_OPEN.set([], number(streams()));
        }
        #[cfg(feature = "studio")]
        if let Some(reporter) = &self.reporter {
            read_reporter(reporter);
        }
    }
}

async fn read_store(name: &'static str, store: &dyn Store) {
    let stats = match store.stats().await {
        Ok(stats) => stats,
        Err(error) => {
            tracing::debug!(store = name, %error, "a store was not counted");
            return quietly(|| names::STATS_FAILURES.add([name.into()], 1));
        }
    };
    quietly(|| {
        let name = || SharedString::const_str(name);
        names::QUESTIONS_OPEN.set([name()], number(stats.open_questions));
        for status in STATUSES {
            names::RUNS.set([name(), status.as_str().into()], number(stats.runs.of(status)));
        }
        // So that there is something whose growth can be seen.
        names::STATS_FAILURES.add([name()], 0);
    });
}

#[cfg(feature = "studio")]
fn read_reporter(reporter: &StudioReporter) {
    let counts = reporter.counts();
    names::REPORTER_WAITING.set([], number(reporter.waiting()));
    let outcomes = [
        ("sent", counts.sent),
        ("dropped", counts.dropped),
        ("refused", counts.refused),
        ("abandoned", counts.abandoned),
        ("unbuildable", counts.unbuildable),
    ];
    for (outcome, count) in outcomes {
        names::REPORTER_EVENTS.counted([outcome.into()], count);
    }
}

/// A count as a gauge's value. Above what one holds exactly it says the most that it does.
fn number(count: impl TryInto<u64>) -> f64 {
    let count: u64 = count.try_into().unwrap_or(u64::MAX);
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stores: Vec<_> = self.stores.iter().map(|(name, _)| name).collect();
        f.debug_struct("Watch").field("stores", &stores).finish_non_exhaustive()
    }
}
