//! How a batch is written: in few round trips, with statements that stay prepared.
//!
//! A round trip to the thread that owns the connection costs more than most statements, so statements travel together. To
//! be prepared once, their texts must repeat: runs that need the same statements are grouped, and each group is cut into
//! packs of 8, 4, 2 and 1.

use std::{collections::HashMap, sync::Arc};

use kortyx_protocol::Timestamp;
use sqlx::SqliteConnection;

use super::{Batch, Leftover, Write, run::Change, run::Run, write_sql};
use crate::{
    client::{self, Value, values},
    row::encode_context,
};

/// The most statements that a pack of runs joins. Longer ones go statement by statement.
const JOINED: usize = 12;

/// Texts put together from statements, kept for the next time.
#[derive(Debug, Default)]
pub(crate) struct Texts(HashMap<Vec<&'static str>, Arc<str>>);

impl Texts {
    pub(crate) fn join(&mut self, parts: &[&'static str]) -> Arc<str> {
        if let Some(text) = self.0.get(parts) {
            return Arc::clone(text);
        }
        if self.0.len() >= 256 {
            self.0.clear();
        }
        let text: Arc<str> = parts.concat().into();
        self.0.insert(parts.to_vec(), Arc::clone(&text));
        text
    }
}

/// Round trips to make, in order.
#[derive(Debug, Default)]
pub(crate) struct Plan(Vec<Pack>);

#[derive(Debug, Default)]
struct Pack {
    sql: Vec<&'static str>,
    values: Vec<Value>,
}

impl Plan {
    /// Whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Begins with a transaction that fails unless the data version is this one.
    pub(crate) fn guard(&mut self, version: i64) {
        if let Some(first) = self.0.first_mut() {
            first.sql.insert(0, write_sql!("guard"));
            first.values.insert(0, version.into());
        }
    }

    /// Runs everything and commits.
    pub(crate) async fn commit(
        mut self,
        connection: &mut SqliteConnection,
        texts: &mut Texts,
    ) -> Result<(), sqlx::Error> {
        if self.0.is_empty() {
            self.0.push(Pack::default());
        }
        if let Some(last) = self.0.last_mut() {
            last.sql.push("COMMIT;");
        }
        self.write(connection, texts).await
    }

    /// Runs everything.
    pub(crate) async fn write(self, connection: &mut SqliteConnection, texts: &mut Texts) -> Result<(), sqlx::Error> {
        for pack in self.0 {
            client::fetch_composed(connection, texts.join(&pack.sql), pack.values).await?;
        }
        Ok(())
    }

    /// Adds the writes of things that do not depend on each other's.
    fn add(&mut self, units: Vec<Vec<Write>>) {
        let (short, long): (Vec<_>, Vec<_>) = units.into_iter().partition(|unit| unit.len() <= JOINED);
        let mut groups: Vec<(Vec<&'static str>, Vec<Vec<Write>>)> = Vec::new();
        for unit in short {
            let shape: Vec<_> = unit.iter().map(|write| write.sql).collect();
            match groups.iter_mut().find(|(known, _)| *known == shape) {
                Some((_, units)) => units.push(unit),
                None => groups.push((shape, vec![unit])),
            }
        }
        for (_, units) in groups {
            self.pack(units);
        }
        for unit in long {
            for series in series(unit) {
                self.pack(series);
            }
        }
    }

    /// Adds units of one shape.
    fn pack(&mut self, units: Vec<Vec<Write>>) {
        let mut units = units.into_iter();
        while units.len() > 0 {
            let size = [8, 4, 2].into_iter().find(|size| *size <= units.len()).unwrap_or(1);
            let mut pack = Pack::default();
            for write in units.by_ref().take(size).flatten() {
                pack.sql.push(write.sql);
                pack.values.extend(write.values);
            }
            self.0.push(pack);
        }
    }
}

/// A long unit as series of the same statement, in its order.
fn series(unit: Vec<Write>) -> Vec<Vec<Vec<Write>>> {
    let mut all: Vec<Vec<Vec<Write>>> = Vec::new();
    let mut last = None;
    for write in unit {
        let sql = Some(write.sql);
        match all.last_mut() {
            Some(series) if last == sql => series.push(vec![write]),
            _ => all.push(vec![vec![write]]),
        }
        last = sql;
    }
    all
}

impl Batch {
    /// What has to be written, runs first, then sessions; and what is known once it is.
    pub(crate) fn into_plan(mut self) -> (Plan, Leftover) {
        let mut plan = Plan::default();
        let runs = self.runs.iter_mut().filter_map(|(key, run)| run.take_writes(*key));
        plan.add(runs.collect());
        let sessions = self.sessions.into_values().map(|session| session.writes);
        plan.add(sessions.filter(|writes| !writes.is_empty()).collect());
        let leftover = Leftover {
            runs: self.runs.into_iter().collect(),
            questions: self.questions,
            last: self.has_keys.then_some((self.last.run, self.last.question)),
        };
        (plan, leftover)
    }
}

impl Run {
    fn take_writes(&mut self, key: i64) -> Option<Vec<Write>> {
        let row = match std::mem::replace(&mut self.change, Change::Nothing) {
            Change::Nothing => None,
            Change::Lease => {
                Some(Write { sql: write_sql!("renew_run"), values: values![millis(self.record.lease_until), key] })
            }
            Change::Everything => Some(Write { sql: write_sql!("change_run"), values: self.changed_values(key) }),
            Change::New => Some(Write { sql: write_sql!("add_run"), values: self.new_values(key) }),
        };
        let writes: Vec<_> = row.into_iter().chain(std::mem::take(&mut self.writes)).collect();
        (!writes.is_empty()).then_some(writes)
    }

    fn new_values(&self, key: i64) -> Vec<Value> {
        let run = &self.record;
        values![
            key,
            run.run_id.as_str(),
            run.session_id.as_str(),
            &run.workflow.id,
            &run.workflow.version,
            &run.workflow.fingerprint,
            encode_context(&run.context),
            run.status.as_str(),
            run.created_at,
            run.updated_at,
            run.fence,
            millis(run.lease_until),
            self.driver.as_ref(),
            run.answers,
            self.absorbed,
            run.cancel_requested,
            run.outcome.as_ref(),
            run.reason.as_ref(),
        ]
    }

    fn changed_values(&self, key: i64) -> Vec<Value> {
        let run = &self.record;
        values![
            &run.workflow.id,
            &run.workflow.version,
            &run.workflow.fingerprint,
            run.status.as_str(),
            run.updated_at,
            run.fence,
            millis(run.lease_until),
            self.driver.as_ref(),
            run.answers,
            self.absorbed,
            run.cancel_requested,
            run.outcome.as_ref(),
            run.reason.as_ref(),
            key,
        ]
    }
}

/// The end of a lease as stored.
fn millis(lease_until: Option<Timestamp>) -> i64 {
    lease_until.map_or(0, Timestamp::as_millis)
}
