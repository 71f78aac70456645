//! What transitions want to see, and how it is read: in one round trip, together with the start of the transaction.

use std::sync::Arc;

use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId, Timestamp};
use kortyx_store::{NewCheckpoint, NewInterrupt, RunRef};
use sqlx::{SqliteConnection, sqlite::SqliteRow};

use super::{Batch, Head, Question, Run, Session, flush::Texts};
use crate::{
    client::{self, Value, values},
    row::{self, Malformed, Reading, get},
};

/// The rows that the transitions of a commit decide by.
#[derive(Debug, Default)]
pub(crate) struct Wants {
    runs: Vec<RunId>,
    seen: Vec<(RunId, u64)>,
    pending: Vec<RunId>,
    questions: Vec<RequestId>,
    payloads: Vec<RequestId>,
    siblings: Vec<RequestId>,
    taken: Vec<RequestId>,
    sessions: Vec<SessionId>,
    sessions_of: Vec<RunId>,
    checkpoints: Vec<CheckpointId>,
}

impl Wants {
    /// A run, or that there is none.
    pub(crate) fn run(&mut self, run_id: &RunId) {
        self.runs.push(run_id.clone());
    }

    /// A run's answers above this place.
    pub(crate) fn answers(&mut self, run_id: &RunId, seen: u64) {
        self.seen.push((run_id.clone(), seen));
    }

    /// A run's pending questions.
    pub(crate) fn pending(&mut self, run_id: &RunId) {
        self.pending.push(run_id.clone());
    }

    /// A question and its run.
    pub(crate) fn question(&mut self, id: &RequestId) {
        self.questions.push(id.clone());
    }

    /// What a new driver of a question's run needs.
    pub(crate) fn payload(&mut self, id: &RequestId) {
        self.payloads.push(id.clone());
    }

    /// All pending questions of a question's run.
    pub(crate) fn siblings(&mut self, id: &RequestId) {
        self.siblings.push(id.clone());
    }

    /// Whether ids of questions are taken.
    pub(crate) fn publish(&mut self, publish: &[NewInterrupt]) {
        self.taken.extend(publish.iter().map(|new| new.request_id.clone()));
    }

    /// Whether an id of a question is taken.
    pub(crate) fn free_request(&mut self, id: &RequestId) {
        self.taken.push(id.clone());
    }

    /// A session and its head, and whether a checkpoint's id is taken.
    pub(crate) fn session(&mut self, session_id: &SessionId, checkpoint: &CheckpointId) {
        self.sessions.push(session_id.clone());
        self.checkpoints.push(checkpoint.clone());
    }

    /// What appending the checkpoint of a run's turn needs.
    pub(crate) fn turn(&mut self, run: &RunRef, checkpoint: Option<&NewCheckpoint>) {
        let Some(checkpoint) = checkpoint else { return };
        match run {
            RunRef::New(new, _) => self.sessions.push(new.session_id.clone()),
            RunRef::Held(lease) => self.sessions_of.push(lease.run_id.clone()),
        }
        self.checkpoints.push(checkpoint.id.clone());
    }

    /// The statements that read all this.
    fn sql(&self) -> Vec<&'static str> {
        let mut parts = Vec::new();
        let mut add = |wanted: bool, sql: &'static str| {
            if wanted {
                parts.push(sql);
            }
        };
        add(!self.runs.is_empty(), include_str!("../queries/load/runs.sql"));
        add(!self.seen.is_empty(), include_str!("../queries/load/answers.sql"));
        add(!self.pending.is_empty(), include_str!("../queries/load/pending.sql"));
        add(!self.questions.is_empty(), include_str!("../queries/load/questions.sql"));
        add(!self.siblings.is_empty(), include_str!("../queries/load/siblings.sql"));
        add(!self.payloads.is_empty(), include_str!("../queries/load/payloads.sql"));
        add(!self.taken.is_empty(), include_str!("../queries/load/taken.sql"));
        add(!self.checkpoints.is_empty(), include_str!("../queries/load/sessions.sql"));
        parts
    }

    fn values(&self, live_until: Timestamp) -> Vec<Value> {
        let seen: Vec<_> = self.seen.iter().map(|(id, seen)| serde_json::json!([id.as_str(), seen])).collect();
        values![
            ids_json(self.runs.iter().map(RunId::as_str)),
            serde_json::Value::from(seen).to_string(),
            ids_json(self.pending.iter().map(RunId::as_str)),
            ids_json(self.questions.iter().map(RequestId::as_str)),
            ids_json(self.siblings.iter().map(RequestId::as_str)),
            ids_json(self.payloads.iter().map(RequestId::as_str)),
            live_until,
            ids_json(self.taken.iter().map(RequestId::as_str)),
            ids_json(self.sessions.iter().map(SessionId::as_str)),
            ids_json(self.sessions_of.iter().map(RunId::as_str)),
            ids_json(self.checkpoints.iter().map(CheckpointId::as_str)),
        ]
    }

    /// Reads in a transaction that has begun.
    pub(crate) async fn read(
        &self,
        connection: &mut SqliteConnection,
        texts: &mut Texts,
        live_until: Timestamp,
    ) -> Result<Vec<SqliteRow>, sqlx::Error> {
        let sql = texts.join(&self.sql());
        client::fetch_composed(connection, sql, self.values(live_until)).await
    }

    /// Begins a transaction and reads. Payloads are read of runs whose lease is not live at `live_until`, which must not
    /// be before the time that the batch decides by.
    pub(crate) async fn begin(
        &self,
        connection: &mut SqliteConnection,
        texts: &mut Texts,
        live_until: Timestamp,
    ) -> Result<Vec<SqliteRow>, sqlx::Error> {
        let mut sql = self.sql();
        sql.insert(0, include_str!("../queries/load/begin.sql"));
        client::fetch_composed(connection, texts.join(&sql), self.values(live_until)).await
    }
}

/// Ids as a JSON array, for `json_each`.
fn ids_json<'a>(ids: impl Iterator<Item = &'a str>) -> String {
    serde_json::Value::from(ids.collect::<Vec<_>>()).to_string()
}

impl Batch {
    /// Takes rows in, by their `tag`. Runs must come before what belongs to them.
    pub(crate) fn load(&mut self, rows: &[SqliteRow]) -> Reading<()> {
        for row in rows {
            match get::<&str>(row, "tag")? {
                "last" => self.load_last(row)?,
                "run" => self.load_run(row)?,
                "pending" => self.load_question(row, true)?,
                "question" => self.load_question(row, false)?,
                "answer" => self.load_answer(row)?,
                "snapshot" => self.load_snapshot(row)?,
                "entry" => self.load_entry(row)?,
                "taken" => drop(self.taken_requests.insert(row::request_id(row)?)),
                "session" => self.load_session(row)?,
                "checkpoint" => drop(self.taken_checkpoints.insert(row::checkpoint_id(row)?)),
                other => return Err(Malformed(format!("a row is tagged {other:?}"))),
            }
        }
        Ok(())
    }

    fn load_last(&mut self, row: &SqliteRow) -> Reading<()> {
        self.last.run = get(row, "run")?;
        self.last.question = get(row, "question")?;
        self.last.session = get(row, "session")?;
        self.last.checkpoint = get(row, "checkpoint")?;
        Ok(())
    }

    fn load_run(&mut self, row: &SqliteRow) -> Reading<()> {
        let (key, id): (i64, &str) = (get(row, "id")?, get(row, "run_id")?);
        if self.runs.contains_key(&key) {
            return Ok(());
        }
        let read = || Ok((row::run(row)?, get(row, "driver")?, row::count(row, "absorbed")?));
        match read() {
            Ok((record, driver, absorbed)) => {
                self.run_keys.insert(record.run_id.clone(), key);
                self.runs.insert(key, Run::stored(record, driver, absorbed));
            }
            Err(malformed) => self.reject_run(id, malformed),
        }
        Ok(())
    }

    fn load_question(&mut self, row: &SqliteRow, is_pending: bool) -> Reading<()> {
        let (key, run, id): (i64, i64, &str) = (get(row, "id")?, get(row, "run")?, get(row, "request_id")?);
        let Some(owner) = self.runs.get_mut(&run) else {
            self.reject_question(id, Malformed("a question's run does not read back".to_owned()));
            return Ok(());
        };
        if is_pending && !owner.pending.contains(&key) {
            owner.pending.push(key);
        }
        let (run_id, context) = (owner.record.run_id.clone(), Arc::clone(&owner.context));
        if self.questions.contains_key(&key) {
            return Ok(());
        }
        match row::question(row, run_id.clone(), context) {
            Ok(record) => {
                self.question_keys.insert(record.request_id.clone(), key);
                self.questions.insert(key, Question { run, record });
            }
            Err(malformed) => {
                self.reject_question(id, malformed.clone());
                self.reject_run(run_id.as_str(), malformed);
            }
        }
        Ok(())
    }

    fn load_answer(&mut self, row: &SqliteRow) -> Reading<()> {
        let Some(run) = self.runs.get_mut(&get(row, "run")?) else { return Ok(()) };
        let id = run.record.run_id.clone();
        match row::answer(row) {
            Ok(answer) => drop(run.answers.insert(answer.seq, answer)),
            Err(malformed) => self.reject_run(id.as_str(), malformed),
        }
        Ok(())
    }

    fn load_snapshot(&mut self, row: &SqliteRow) -> Reading<()> {
        let body = row::blob(row, "body")?;
        if let Some(run) = self.runs.get_mut(&get(row, "run")?) {
            run.snapshot = Some(body);
        }
        Ok(())
    }

    fn load_entry(&mut self, row: &SqliteRow) -> Reading<()> {
        let body = row::blob(row, "body")?;
        if let Some(run) = self.runs.get_mut(&get(row, "run")?) {
            run.entries.push(body);
        }
        Ok(())
    }

    fn load_session(&mut self, row: &SqliteRow) -> Reading<()> {
        let key = get(row, "id")?;
        // A session that is being pruned has lost its head.
        let head = match get::<Option<&str>>(row, "checkpoint_id")? {
            Some(_) => {
                let (id, turn) = (row::checkpoint_id(row)?, row::count(row, "turn_index")?);
                Some(Head { key: get(row, "head")?, id, turn })
            }
            None => None,
        };
        let (session_id, checkpoints) = (row::session_id(row)?, row::count(row, "checkpoints")?);
        self.session_keys.insert(session_id, key);
        self.sessions.entry(key).or_insert(Session { head, checkpoints, writes: Vec::new() });
        Ok(())
    }
}
