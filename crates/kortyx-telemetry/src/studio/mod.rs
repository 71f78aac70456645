//! The reporter to Kortyx Studio.

mod config;
mod counts;
mod error;
mod map;
mod queue;
mod recent;
mod revision;
mod sender;
mod topology;
mod transport;
mod weight;

use std::{fmt, sync::Arc, time::Duration};

use kortyx_orchestrator::{Captures, Correlation, Fact, TelemetrySink};
use kortyx_store::Scalar;
use tokio::runtime::Handle;

pub use self::{config::StudioConfig, counts::ReporterCounts, error::StudioError};
use self::{map::Mapper, queue::Queue, revision::Revisions, sender::Sender, transport::Http};

/// Sends what happens in runs to Kortyx Studio. Cheap to clone: clones share one queue and one sender.
///
/// Telling it a fact copies it into a bounded queue and returns: no run waits for the network, a slow or dead receiver costs events, never
/// runs. One task makes events of the facts and sends them in the order in which they were told. When the last clone is dropped, what still
/// waits is tried once; [`flush`](Self::flush) before that waits for it.
///
/// ```no_run
/// use std::time::Duration;
/// use kortyx_orchestrator::Agent;
/// use kortyx_telemetry::{StudioConfig, StudioReporter};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let config = StudioConfig::new("https://studio.example.com", "key", "production", "desk")?;
/// let reporter = StudioReporter::start(&config)?;
/// let agent = Agent::builder().telemetry(reporter.clone()).build().await?;
/// // …
/// agent.shutdown(Duration::from_secs(10)).await;
/// reporter.flush(Duration::from_secs(5)).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct StudioReporter(Arc<Shared>);

struct Shared {
    queue: Arc<Queue>,
    captures: Captures,
    user: Option<String>,
}

/// The sender ends once it has tried what still waits.
impl Drop for Shared {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl StudioReporter {
    /// Starts a reporter, and its task on the Tokio runtime that this is called in.
    pub fn start(config: &StudioConfig) -> Result<Self, StudioError> {
        let runtime = Handle::try_current().map_err(|_| StudioError::NoRuntime)?;
        let queue = Arc::new(Queue::new(config.bounds.clone()));
        let sender = Sender {
            queue: queue.clone(),
            mapper: Mapper::new(config),
            revisions: Revisions::new(config)?,
            patience: config.patience,
            to: Http::new(config)?,
        };
        // Detached: it ends by itself when the queue is closed.
        drop(runtime.spawn(sender.run()));
        let captures = Captures::nothing().with_input(config.input).with_output(config.output);
        Ok(Self(Arc::new(Shared { queue, captures, user: config.described.user.clone() })))
    }

    /// Sends all that was told until now without waiting for more, and returns when each event of it was taken, refused or given up. Says
    /// whether that was the case before this time had passed.
    pub async fn flush(&self, time: Duration) -> bool {
        self.0.queue.flush(time).await
    }

    /// What became of what it was told.
    pub fn counts(&self) -> ReporterCounts {
        self.0.queue.counts.now()
    }

    /// How many facts wait to be sent. Those of the batch that is under way are not among them.
    pub fn waiting(&self) -> usize {
        self.0.queue.length()
    }
}

impl TelemetrySink for StudioReporter {
    fn record(&self, fact: &Fact) {
        if map::is_event(fact) {
            self.0.queue.push(fact);
        }
    }

    fn watches_nodes(&self) -> bool {
        true
    }

    fn captures(&self) -> Captures {
        self.0.captures
    }

    fn user<'a>(&self, about: &'a Correlation) -> Option<&'a str> {
        match about.context().get(self.0.user.as_deref()?)? {
            Scalar::Text(user) => Some(user),
            Scalar::Bool(_) | Scalar::Int(_) => None,
        }
    }
}

impl fmt::Debug for StudioReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StudioReporter").field("counts", &self.counts()).finish_non_exhaustive()
    }
}
