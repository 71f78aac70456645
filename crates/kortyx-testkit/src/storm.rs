//! Load from several processes while processes die and servers go away.

use std::{collections::BTreeSet, time::Duration};

use futures_util::future::try_join;
use kortyx_orchestrator::Agent;
use kortyx_protocol::RunId;
use kortyx_store::RunStatus;
use tokio::time::{Instant, sleep};

use crate::{
    BoxError, Ended, Error, Event, Evidence, Invariant, Kit, Process, Task, World,
    error::{Doing as _, broken, holds},
    evidence::begun,
    member::random,
    message::DRAIN,
    outage::{Outage, Recovery, check_errors},
};

/// How often to look whether all runs have ended.
const LOOK: Duration = Duration::from_millis(700);

/// Has several processes begin, answer and recover runs for a while, and disturbs them. At the end every run has ended well, with
/// every answer that was accepted used, and nothing stays.
#[derive(Debug, Clone)]
#[must_use]
pub struct Storm {
    lasts: Duration,
    processes: usize,
    at_once: u32,
    rest: Duration,
    open: u32,
    lease: Duration,
    kills: Option<Duration>,
    stops: Option<Duration>,
    settles: Duration,
}

/// What a storm did.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Stormed {
    /// Runs that began and ended.
    pub runs: usize,
    /// Answers that were accepted.
    pub answers: usize,
    /// Processes that were killed.
    pub kills: usize,
    /// Processes that stood still for a while.
    pub stops: usize,
    /// Calls that failed, all of them while a server was away or soon after.
    pub failures: usize,
    /// How it went on after each time that a server was away.
    pub recoveries: Vec<Recovery>,
}

impl Storm {
    /// A storm that lasts so long, of three processes that nobody kills.
    pub fn lasting(lasts: Duration) -> Self {
        Self {
            lasts,
            processes: 3,
            at_once: 2,
            rest: Duration::from_millis(300),
            open: 20,
            lease: Duration::from_secs(1),
            kills: None,
            stops: None,
            settles: Duration::from_mins(1),
        }
    }

    /// How many processes there are: 3 by default.
    pub fn processes(self, processes: usize) -> Self {
        Self { processes: processes.max(1), ..self }
    }

    /// How many calls each process makes at once, and how long it rests after each: 2 and 300 ms by default.
    pub fn load(self, at_once: u32, rest: Duration) -> Self {
        Self { at_once: at_once.max(1), rest, ..self }
    }

    /// How many questions may be open before no more runs begin: 20 by default.
    pub fn open(self, questions: u32) -> Self {
        Self { open: questions.clamp(1, 200), ..self }
    }

    /// How long leases last: a second by default.
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Kills a process at random so often, on average, and starts another one in its place.
    pub fn kills_every(self, interval: Duration) -> Self {
        Self { kills: Some(interval), ..self }
    }

    /// Has every other process that would be killed stand still for so long instead, and then go on: longer than its leases last, so
    /// that it wakes up when its runs are somebody else's. Not for stores whose processes wait for each other, such as a file.
    pub fn stops_for(self, time: Duration) -> Self {
        Self { stops: Some(time), ..self }
    }

    /// How long runs may take to end once no more begin: a minute by default.
    pub fn settles(self, within: Duration) -> Self {
        Self { settles: within, ..self }
    }

    /// Does it.
    pub async fn run(&self, kit: &Kit) -> Result<Stormed, Error> {
        self.run_during(kit, async { Ok(Vec::new()) }).await
    }

    /// Does it while something else happens: servers stop and come back, connections break. That future says when servers were away;
    /// at all other times no call may fail. The storm lasts at least as long as the future.
    pub async fn run_during(
        &self,
        kit: &Kit,
        disturb: impl Future<Output = Result<Vec<Outage>, BoxError>>,
    ) -> Result<Stormed, Error> {
        let world = kit.world()?;
        // Set up by one: that the schema can be made by many at once is another matter.
        let clerk = world.clerk().await?;
        let mut members = (0..self.processes).map(|_| self.start(&world)).collect::<Result<Vec<_>, _>>()?;
        let killing = self.kill(&world, &mut members);
        let disturbing = async { disturb.await.doing("disturbing") };
        let ((kills, stops), outages) = try_join(killing, disturbing).await?;
        for member in &mut members {
            member.say(DRAIN).await;
        }
        self.settled(&world, &clerk).await?;
        for mut member in members {
            let ended = member.end().await?;
            holds(ended == Ended::Well, Invariant::DeathsHappen, || "a process died that nobody killed".to_owned())?;
        }
        let stormed = Stormed { kills, stops, ..judge(&world, &outages).await? };
        holds(stormed.runs > 0 && stormed.answers > 0, Invariant::RunsEnd, || {
            format!("nothing happened: {stormed:?}")
        })?;
        Ok(stormed)
    }

    fn start(&self, world: &World) -> Result<Process, Error> {
        let task = Task::Storm { at_once: self.at_once, rest: self.rest, open: self.open };
        world.member(task).lease(self.lease).start()
    }

    /// Kills and stops processes until the time is over. How many of each.
    async fn kill(&self, world: &World, members: &mut [Process]) -> Result<(usize, usize), Error> {
        let until = Instant::now() + self.lasts;
        let Some(interval) = self.kills else {
            tokio::time::sleep_until(until).await;
            return Ok((0, 0));
        };
        let (mut kills, mut stops) = (0, 0);
        while Instant::now() < until {
            sleep(interval.mul_f64(0.5 + f64::from(random(1000)) / 1000.0)).await;
            let victim = random(u32::try_from(members.len()).unwrap_or(u32::MAX));
            let Some(member) = members.get_mut(usize::try_from(victim).unwrap_or_default()) else { continue };
            match self.stops {
                Some(time) if stops < kills => {
                    member.stop()?;
                    sleep(time).await;
                    member.go_on(world.log())?;
                    stops += 1;
                }
                _ => {
                    member.kill().await?;
                    *member = self.start(world)?;
                    kills += 1;
                }
            }
        }
        Ok((kills, stops))
    }

    /// Waits until every run that storage knows has ended, and no more have begun since.
    async fn settled(&self, world: &World, clerk: &Agent) -> Result<(), Error> {
        let until = Instant::now() + self.settles;
        let mut ended: BTreeSet<RunId> = BTreeSet::new();
        let mut seen = usize::MAX;
        loop {
            let lines = world.lines()?;
            let runs: Vec<_> = begun(&lines).collect();
            let mut waiting = Vec::new();
            for run_id in &runs {
                if !ended.contains(*run_id) {
                    match clerk.store().run(run_id).await.doing("reading a run")? {
                        Some(run) if run.status == RunStatus::Parked => {
                            return broken(Invariant::RunsEnd, format!("a run was set aside: {run:?}"));
                        }
                        Some(run) if !run.status.is_terminal() => waiting.push(run),
                        Some(_) => drop(ended.insert((*run_id).clone())),
                        None => {}
                    }
                }
            }
            if waiting.is_empty() && runs.len() == seen {
                return Ok(());
            }
            seen = runs.len();
            holds(Instant::now() < until, Invariant::RunsEnd, || {
                format!("{} runs have not ended after {:?}: {waiting:?}", waiting.len(), self.settles)
            })?;
            sleep(LOOK).await;
        }
    }
}

async fn judge(world: &World, outages: &[Outage]) -> Result<Stormed, Error> {
    let evidence = Evidence::of(world).await?;
    let recoveries = check_errors(evidence.lines(), outages)?;
    let runs = evidence.check_runs().await?;
    evidence.check_announced()?;
    evidence.check_steps()?;
    let count = |is: fn(&Event) -> bool| evidence.lines().iter().filter(|line| is(&line.event)).count();
    let answers = count(|event| matches!(event, Event::Accepted { .. }));
    let failures = count(|event| matches!(event, Event::Failed { .. }));
    evidence.check_nothing_left().await?;
    Ok(Stormed { runs, answers, kills: 0, stops: 0, failures, recoveries })
}
