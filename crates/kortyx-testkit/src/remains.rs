//! What is left when nothing is to stay.

use std::time::Duration;

use kortyx_store::Retention;
use tokio::time::{Instant, sleep};

use crate::{
    Error, Evidence, Invariant,
    error::{Doing as _, broken, holds},
    evidence::begun,
};

/// How many things are removed at once.
const BATCH: u32 = 500;
/// How long removing may take.
const LIMIT: Duration = Duration::from_mins(2);
/// Retention of nothing: what changed before this is old enough to go.
const MOMENT: Duration = Duration::from_millis(1);

impl Evidence<'_> {
    /// Removes everything that has ended: nothing stays, neither what the log names nor what the subject
    /// [finds](crate::Subject::leftovers). The world is empty afterwards.
    pub async fn check_nothing_left(self) -> Result<(), Error> {
        let store = self.agent.store();
        let retention = Retention {
            finished_runs: MOMENT,
            checkpoints_per_session: 1,
            checkpoint_age: MOMENT,
            idle_sessions: MOMENT,
        };
        let until = Instant::now() + LIMIT;
        sleep(MOMENT * 20).await;
        while store.prune(&retention, BATCH).await.doing("pruning")?.more {
            holds(Instant::now() < until, Invariant::NothingIsLeft, || format!("pruning has no end after {LIMIT:?}"))?;
        }
        for run_id in begun(&self.lines) {
            if store.run(run_id).await.doing("reading a run")?.is_some() {
                return broken(Invariant::NothingIsLeft, format!("{run_id} is"));
            }
        }
        for request_id in self.questions.keys() {
            if store.interrupt(request_id).await.doing("reading a question")?.is_some() {
                return broken(Invariant::NothingIsLeft, format!("the question {request_id} is"));
            }
        }
        let left = self.world.subject().leftovers(self.world.place()).await.doing("looking for what is left")?;
        holds(left.is_empty(), Invariant::NothingIsLeft, || left.join(", "))
    }
}
