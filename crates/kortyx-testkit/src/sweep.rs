//! A kill at every durable point of a run, one at a time.

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::{
    Answering, Ended, Error, Event, Evidence, Invariant, Kill, Kit, Task, World,
    error::{Doing as _, holds},
};

/// Kills the process that drives a run at each of its durable points in turn, each time in a world of its own, and has another
/// process go on. At the end nothing that was stored has been repeated, and no answer is lost.
#[derive(Debug, Clone)]
#[must_use]
pub struct Sweep {
    answering: Answering,
    is_after: bool,
    clock_ahead: Duration,
    lease: Duration,
    others: usize,
    at_once: usize,
}

/// What a sweep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// How many durable points the run has, at each of which a process was killed.
    pub points: u64,
}

impl Sweep {
    /// Kills just before each durable point.
    pub fn before() -> Self {
        Self {
            answering: Answering::OneByOne,
            is_after: false,
            clock_ahead: Duration::ZERO,
            lease: Duration::from_millis(500),
            others: 0,
            at_once: 3,
        }
    }

    /// Kills just after each durable point, before anybody knows that it was passed.
    pub fn after() -> Self {
        Self { is_after: true, ..Self::before() }
    }

    /// Who answers; by default the process that drives, one question after the other.
    pub fn answering(self, answering: Answering) -> Self {
        Self { answering, ..self }
    }

    /// How long a driver that died keeps its run from the next: half a second by default.
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Has the clock of the process that goes on be ahead by this time, more than a lease lasts, so that nobody waits for leases
    /// to run out. For subjects whose [store](crate::Subject::open) can be told so.
    pub fn clock_ahead(self, by: Duration) -> Self {
        Self { clock_ahead: by, ..self }
    }

    /// How many other effects a run may have under way while one is; 0 by default. See
    /// [`Evidence::check_repeats`].
    pub fn others(self, others: usize) -> Self {
        Self { others, ..self }
    }

    /// How many worlds are under way at once: 3 by default.
    pub fn at_once(self, worlds: usize) -> Self {
        Self { at_once: worlds.max(1), ..self }
    }

    /// Does it.
    pub async fn run(&self, kit: &Kit) -> Result<Swept, Error> {
        // A switch that never fires counts alike.
        let undisturbed = kit.world()?;
        let ended = self.finish(&undisturbed, Duration::ZERO, self.kill(0)).await?;
        let passed = undisturbed.lines()?.into_iter().find_map(|line| match line.event {
            Event::Ended { points } => Some(points),
            _ => None,
        });
        let points =
            passed.filter(|_| ended == Ended::Well).ok_or("it was killed").doing("driving a run undisturbed")?;
        let worlds = (1..=points + 1).map(|point| self.killed_at(kit, point, point <= points));
        stream::iter(worlds).buffered(self.at_once).try_collect::<()>().await?;
        Ok(Swept { points })
    }

    /// Kills a process at this point and has another one finish.
    async fn killed_at(&self, kit: &Kit, point: u64, is_to_die: bool) -> Result<(), Error> {
        let world = kit.world()?;
        let first = self.finish(&world, Duration::ZERO, self.kill(point)).await?;
        holds((first == Ended::Killed) == is_to_die, Invariant::DeathsHappen, || {
            format!("at the durable point {point} it ended so: {first:?}")
        })?;
        if first == Ended::Killed {
            self.finish(&world, self.clock_ahead, Kill::Never).await?;
        }
        let evidence = Evidence::of(&world).await?;
        let runs = evidence.check_runs().await?;
        holds(runs == 1, Invariant::RunsEnd, || format!("there is not one run but {runs}"))?;
        evidence.check_announced()?;
        evidence.check_steps()?;
        evidence.check_repeats(self.others)
    }

    fn kill(&self, point: u64) -> Kill {
        if self.is_after { Kill::After(point) } else { Kill::Before(point) }
    }

    async fn finish(&self, world: &World, ahead: Duration, kill: Kill) -> Result<Ended, Error> {
        let task = Task::Finish { answering: self.answering, recovers: true };
        let process = world.member(task).lease(self.lease).ahead(ahead).kill(kill).run();
        if self.answering != Answering::Elsewhere {
            return process.await;
        }
        let clerk = world.clerk().await?;
        tokio::select! {
            ended = process => ended,
            error = world.answer_for_ever(&clerk) => Err(error),
        }
    }
}
