//! What transitions want to see, and how it is read: in one round trip, together with the start of the transaction.

use std::sync::Arc;

use bytes::Bytes;
use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId, Timestamp};
use kortyx_store::{NewCheckpoint, NewRun, RunRef, TurnRef};
use sqlx::{SqliteConnection, sqlite::SqliteRow};

use super::{Batch, Head, Known, Question, Run, Session, flush::Texts};
use crate::{
    client::{self, Value, values},
    row::{self, Malformed, Reading, get},
};

/// The rows that the transitions of a commit decide by.
#[derive(Debug, Default)]
pub(crate) struct Wants {
    new_runs: Vec<RunId>,
    runs: Vec<RunId>,
    seen: Vec<(RunId, u64)>,
    pending: Vec<RunId>,
    questions: Vec<RequestId>,
    payloads: bool,
    siblings: Vec<RequestId>,
    new_questions: Vec<RequestId>,
    sessions: Vec<SessionId>,
    sessions_of: Vec<RunId>,
    checkpoints: Vec<CheckpointId>,
    follows: Vec<(SessionId, TurnRef)>,
}

impl Wants {
    /// Whether the id of a run is taken, and whether the turn that it follows was taken back.
    pub(crate) fn begun(&mut self, run: &NewRun) {
        self.new_run(&run.run_id);
        self.follows.extend(run.follows.clone().map(|turn| (run.session_id.clone(), turn)));
    }

    /// Whether the id of a run is taken.
    pub(crate) fn new_run(&mut self, run_id: &RunId) {
        self.new_runs.push(run_id.clone());
    }

    /// A run.
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

    /// What new drivers of the questions' runs need.
    pub(crate) fn payloads(&mut self) {
        self.payloads = true;
    }

    /// All pending questions of a question's run.
    pub(crate) fn siblings(&mut self, id: &RequestId) {
        self.siblings.push(id.clone());
    }

    /// Whether ids of questions are taken.
    pub(crate) fn new_questions<'a>(&mut self, ids: impl Iterator<Item = &'a RequestId>) {
        self.new_questions.extend(ids.cloned());
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

    /// The keys of all these runs, where everything that is wanted of them is known.
    pub(super) fn known(&self, known: &Known) -> Option<Vec<i64>> {
        let brings_ids = !self.new_runs.is_empty() || !self.new_questions.is_empty();
        if !self.checkpoints.is_empty() || !self.follows.is_empty() || (brings_ids && !known.has_keys()) {
            return None;
        }
        // An id that is taken fails the commit, and the group decides again over what it reads.
        let taken = self.new_runs.iter().filter_map(|id| known.run(id, None)).map(Some);
        let runs = self.runs.iter().map(|id| known.run(id, None));
        let seen = self.seen.iter().map(|(id, seen)| known.run(id, Some(*seen)));
        let questions = self.questions.iter().map(|id| known.question(id));
        taken.chain(runs).chain(seen).chain(questions).collect()
    }

    /// The statements that read all this.
    fn sql(&self) -> Vec<&'static str> {
        let mut parts = Vec::new();
        if !self.new_runs.is_empty() || !self.new_questions.is_empty() {
            parts.push(include_str!("../queries/load/keys.sql"));
        }
        if !self.runs.is_empty() {
            parts.push(include_str!("../queries/load/runs.sql"));
        }
        if !self.questions.is_empty() {
            parts.push(include_str!("../queries/load/questions.sql"));
        }
        if !self.checkpoints.is_empty() {
            parts.push(include_str!("../queries/load/sessions.sql"));
        }
        if !self.follows.is_empty() {
            parts.push(include_str!("../queries/load/follows.sql"));
        }
        parts
    }

    fn values(&self, live_until: Timestamp) -> Vec<Value> {
        values![
            ids_json(self.new_runs.iter().map(RunId::as_str)),
            ids_json(self.new_questions.iter().map(RequestId::as_str)),
            ids_json(self.runs.iter().map(RunId::as_str)),
            ids_json(self.questions.iter().map(RequestId::as_str)),
            self.payloads,
            live_until,
            ids_json(self.sessions.iter().map(SessionId::as_str)),
            ids_json(self.sessions_of.iter().map(RunId::as_str)),
            ids_json(self.checkpoints.iter().map(CheckpointId::as_str)),
            self.follows_json(),
        ]
    }

    fn follows_json(&self) -> String {
        let turns = self.follows.iter().map(|(session_id, turn)| {
            serde_json::json!([turn.checkpoint_id.as_str(), session_id.as_str(), turn.turn_index])
        });
        serde_json::Value::from(turns.collect::<Vec<_>>()).to_string()
    }

    /// Reads into a batch, within a transaction or, with `begin`, at its start. Payloads are read of runs whose lease is
    /// not live at `live_until`, which must not be before the time that the batch decides by.
    pub(crate) async fn read(
        &self,
        connection: &mut SqliteConnection,
        texts: &mut Texts,
        begin: bool,
        live_until: Timestamp,
    ) -> Result<Vec<SqliteRow>, sqlx::Error> {
        let mut sql = self.sql();
        if begin {
            sql.insert(0, include_str!("../queries/load/begin.sql"));
        }
        if sql.is_empty() {
            return Ok(Vec::new());
        }
        client::fetch_composed(connection, texts.join(&sql), self.values(live_until)).await
    }

    /// Reads what only some runs have, now that they are known; nothing for most.
    pub(crate) async fn read_more(
        &self,
        connection: &mut SqliteConnection,
        batch: &Batch,
    ) -> Result<Vec<SqliteRow>, sqlx::Error> {
        let siblings = self.siblings.iter().filter_map(|id| batch.question_keys.get(id));
        let siblings = siblings.filter_map(|key| batch.questions.get(key)).map(|question| question.run);
        let pending = self.pending.iter().filter_map(|id| batch.run_keys.get(id).copied()).chain(siblings);
        let run = |key: &i64| batch.runs.get(key);
        let granted = || batch.runs.iter().filter(|(_, run)| run.has_payload());
        let pending = pending.chain(granted().map(|(key, _)| *key));
        let pending: Vec<i64> = pending.filter(|key| run(key).is_some_and(|run| run.has_pending)).collect();
        let entries: Vec<i64> = granted().filter(|(_, run)| run.has_entries).map(|(key, _)| *key).collect();
        let undelivered = granted().filter(|(_, run)| run.has_undelivered()).map(|(key, run)| (*key, run.absorbed));
        let unseen = self.seen.iter().filter_map(|(id, seen)| Some((*batch.run_keys.get(id)?, *seen)));
        let unseen = unseen.filter(|(key, seen)| run(key).is_some_and(|run| run.record.answers > *seen));
        let answers: Vec<_> = undelivered.chain(unseen).map(|pair| serde_json::json!(pair)).collect();
        if pending.is_empty() && entries.is_empty() && answers.is_empty() {
            return Ok(Vec::new());
        }
        let json = |values: serde_json::Value| values.to_string();
        let values = values![json(pending.into()), json(entries.into()), json(answers.into())];
        client::fetch(connection, include_str!("../queries/load/more.sql"), values).await
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
                "version" => self.version = get(row, "data_version")?,
                "keys" => self.load_keys(row)?,
                "run" => self.load_run(row)?,
                "pending" => self.load_question(row, true)?,
                "question" => self.load_question(row, false)?,
                "answer" => self.load_answer(row)?,
                "snapshot" => self.load_snapshot(row)?,
                "entry" => self.load_entry(row)?,
                "sessions" => self.load_sessions(row)?,
                "session" => self.load_session(row)?,
                "abandoned" => drop(self.abandoned_checkpoints.insert(get(row, "checkpoint_id")?)),
                other => return Err(Malformed(format!("a row is tagged {other:?}"))),
            }
        }
        Ok(())
    }

    /// Notes that runs whose payload was read are whole.
    pub(crate) fn loaded(&mut self) {
        for run in self.runs.values_mut() {
            run.is_whole = run.has_payload();
        }
    }

    fn load_keys(&mut self, row: &SqliteRow) -> Reading<()> {
        self.last.run = get(row, "run")?;
        self.last.question = get(row, "question")?;
        self.has_keys = true;
        self.taken_runs.extend(row::names(row, "runs")?);
        self.taken_requests.extend(row::names(row, "requests")?);
        Ok(())
    }

    fn load_sessions(&mut self, row: &SqliteRow) -> Reading<()> {
        self.last.session = get(row, "session")?;
        self.last.checkpoint = get(row, "checkpoint")?;
        self.taken_checkpoints.extend(row::names(row, "checkpoints")?);
        Ok(())
    }

    fn load_run(&mut self, row: &SqliteRow) -> Reading<()> {
        let (key, id): (i64, &str) = (get(row, "id")?, get(row, "run_id")?);
        let snapshot = get::<Option<Vec<u8>>>(row, "snapshot")?.map(Bytes::from);
        let (has_pending, has_entries) = (row::flag(row, "has_pending")?, row::flag(row, "has_entries")?);
        let has_response = row::flag(row, "has_response")?;
        if let Some(run) = self.runs.get_mut(&key) {
            run.snapshot = snapshot.or(run.snapshot.take());
            return Ok(());
        }
        let read = || Ok((row::run(row)?, get(row, "driver")?, row::count(row, "absorbed")?));
        match read() {
            Ok((record, driver, absorbed)) => {
                self.run_keys.insert(record.run_id.clone(), key);
                let run = Run::stored(record, driver, absorbed);
                self.runs.insert(key, Run { snapshot, has_pending, has_entries, has_response, ..run });
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
