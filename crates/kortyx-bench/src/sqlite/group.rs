//! The raw loop of many: a writer that commits whatever is queued together, and nothing else.

use std::{collections::VecDeque, sync::Arc};

use sqlx::{Connection as _, SqliteConnection};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use super::{
    rows::{Step, statements},
    statement::{Statement, Trip},
};
use crate::{
    error::Error,
    template::{Ids, Template},
};

/// The most steps of one commit, as in the store.
const GROUP: usize = 128;
/// How many steps of one kind travel in one round trip, as in the store.
const TOGETHER: [usize; 4] = [8, 4, 2, 1];

/// How statements travel to the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Travel {
    /// Several in one round trip, as the store sends them.
    Together,
    /// One by one.
    Alone,
}

struct Job {
    step: Step,
    key: i64,
    ids: Arc<Ids>,
    done: oneshot::Sender<()>,
}

/// A writer on a connection of its own.
pub(super) struct Group {
    queue: mpsc::Sender<Job>,
    task: JoinHandle<Result<(), Error>>,
}

/// What the loops of a [`Group`] hold of it.
#[derive(Clone)]
pub(super) struct Client(mpsc::Sender<Job>);

impl Group {
    pub(super) fn start(connection: SqliteConnection, template: Arc<Template>, travel: Travel) -> Self {
        let (queue, jobs) = mpsc::channel(1024);
        let task = tokio::spawn(serve(connection, template, travel, jobs));
        Self { queue, task }
    }

    pub(super) fn client(&self) -> Client {
        Client(self.queue.clone())
    }

    /// Ends once every client is gone.
    pub(super) async fn close(self) -> Result<(), Error> {
        drop(self.queue);
        self.task.await.map_err(|_| Error::unexpected("the raw writer panicked"))?
    }
}

impl Client {
    /// Writes a cycle, step by step.
    pub(super) async fn cycle(&self, key: i64) -> Result<(), Error> {
        let ids = Arc::new(Ids::of(key.unsigned_abs()));
        for step in Step::ALL {
            let (done, committed) = oneshot::channel();
            let gone = || Error::unexpected("the raw writer ended");
            self.0.send(Job { step, key, ids: ids.clone(), done }).await.map_err(|_| gone())?;
            committed.await.map_err(|_| gone())?;
        }
        Ok(())
    }
}

async fn serve(
    mut connection: SqliteConnection,
    template: Arc<Template>,
    travel: Travel,
    mut queue: mpsc::Receiver<Job>,
) -> Result<(), Error> {
    let mut jobs = Vec::with_capacity(GROUP);
    while queue.recv_many(&mut jobs, GROUP).await > 0 {
        jobs.sort_by_key(|job| job.step);
        let units = jobs.iter().map(|job| (job.step, statements(&template, job.step, job.key, &job.ids)));
        commit(&mut connection, units.collect(), travel).await?;
        for job in jobs.drain(..) {
            // A loop that ended needs no word.
            let _ = job.done.send(());
        }
    }
    connection.close().await?;
    Ok(())
}

/// Writes steps, those of a kind next to each other, in one transaction.
pub(super) async fn commit(
    connection: &mut SqliteConnection,
    units: Vec<(Step, Vec<Statement>)>,
    travel: Travel,
) -> Result<(), Error> {
    let mut trips = match travel {
        Travel::Together => together(units),
        Travel::Alone => alone(units),
    };
    if let Some(last) = trips.last_mut() {
        last.say("COMMIT;");
    }
    for trip in trips {
        trip.run(connection).await?;
    }
    Ok(())
}

fn alone(units: Vec<(Step, Vec<Statement>)>) -> Vec<Trip> {
    let mut begin = Trip::default();
    begin.say("BEGIN IMMEDIATE;");
    let mut trips = vec![begin];
    for statement in units.into_iter().flat_map(|(_, statements)| statements) {
        let mut trip = Trip::default();
        trip.add(statement);
        trips.push(trip);
    }
    trips.push(Trip::default());
    trips
}

fn together(units: Vec<(Step, Vec<Statement>)>) -> Vec<Trip> {
    let mut next = Trip::default();
    next.say("BEGIN IMMEDIATE;");
    let mut trips = Vec::new();
    let mut units = VecDeque::from(units);
    while let Some((step, _)) = units.front() {
        let alike = units.iter().take_while(|(other, _)| other == step).count();
        let size = TOGETHER.into_iter().find(|size| *size <= alike).unwrap_or(1);
        for statement in units.drain(..size).flat_map(|(_, statements)| statements) {
            next.add(statement);
        }
        trips.push(std::mem::take(&mut next));
    }
    trips
}
