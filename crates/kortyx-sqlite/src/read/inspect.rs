//! What an operator's inspector reads: pages of runs and sessions, newest first, counts, and all that is kept of a run.
//!
//! What takes several statements runs in one transaction that only reads, so that they see one moment.

use std::sync::Arc;

use kortyx_protocol::{RunId, Timestamp};
use kortyx_store::{
    RunHistory, RunPage, RunQuery, RunStatus, SessionPage, SessionQuery, SessionRecord, StoreError, StoreErrorKind,
    StoreStats,
};
use sqlx::{SqliteConnection, sqlite::SqliteRow};

use crate::{
    client::{self, Value, values},
    row::{self, Malformed, Reading, get},
};

/// The most runs or sessions of a page.
const PAGE: u32 = 200;
/// How many runs one call looks at before it gives what it has.
const SCAN: i64 = 10_000;
/// What cursors start with; the key of the last run, or session, that was looked at follows.
const RUNS: &str = "runs.";
const SESSIONS: &str = "sessions.";

/// Counts everything, at the time `$1`.
pub(crate) const STATS: &str = include_str!("../queries/read/stats.sql");

/// A query that was checked.
pub(crate) struct RunListing {
    query: RunQuery,
    limit: usize,
    /// The page has only runs with smaller keys.
    before: i64,
}

impl RunListing {
    pub(crate) const OPERATION: &str = "list runs";

    /// Refuses a cursor that no page gave.
    pub(crate) fn new(query: RunQuery) -> Result<Self, StoreError> {
        let limit = query.limit.clamp(1, PAGE) as usize;
        let before = read_cursor(Self::OPERATION, RUNS, query.cursor.as_deref())?;
        Ok(Self { query, limit, before })
    }

    /// The rows of a page, of which there may be one more than asked for, behind one that says what was looked at.
    pub(crate) async fn fetch(&self, connection: &mut SqliteConnection) -> Result<Vec<SqliteRow>, sqlx::Error> {
        let [edge, page] = match self.query.session_id {
            None => [include_str!("../queries/read/edge_of_runs.sql"), include_str!("../queries/read/runs.sql")],
            Some(_) => [
                include_str!("../queries/read/edge_of_session_runs.sql"),
                include_str!("../queries/read/session_runs.sql"),
            ],
        };
        let values = self.values();
        at_one_moment(connection, [(edge, values.clone()), (page, values)]).await
    }

    /// How many runs this call looks at: no more than it gives where any is wanted.
    fn scan(&self) -> i64 {
        let is_any = self.query.statuses.is_empty() && self.query.workflow.is_none();
        if is_any { i64::try_from(self.limit + 1).unwrap_or(SCAN) } else { SCAN }
    }

    fn values(&self) -> Vec<Value> {
        let statuses: Vec<_> = self.query.statuses.iter().map(|status| RunStatus::as_str(*status)).collect();
        let statuses = serde_json::Value::from(statuses).to_string();
        let limit = i64::try_from(self.limit + 1).unwrap_or(i64::MAX);
        let mut values = values![self.before, self.scan(), statuses, self.query.workflow.as_ref(), limit];
        values.extend(self.query.session_id.as_ref().map(|session_id| Value::from(session_id.as_str())));
        values
    }

    /// The page that these rows hold.
    pub(crate) fn read(&self, rows: &[SqliteRow]) -> Reading<RunPage> {
        let (edge, rows) = rows.split_first().ok_or_else(|| Malformed("a page has no edge".to_owned()))?;
        let mut page = RunPage::default();
        for row in rows.iter().take(self.limit) {
            page.runs.push(row::run(row)?);
        }
        let last = match rows.get(self.limit.saturating_sub(1)) {
            Some(last) if rows.len() > self.limit => Some(get::<i64>(last, "id")?),
            _ if get::<i64>(edge, "seen")? == self.scan() => get(edge, "edge")?,
            _ => None,
        };
        page.next = last.map(|last| format!("{RUNS}{last}"));
        Ok(page)
    }
}

/// The key before which a page is; every key is before the one of a listing's start.
fn read_cursor(operation: &'static str, kind: &str, cursor: Option<&str>) -> Result<i64, StoreError> {
    let Some(cursor) = cursor else { return Ok(i64::MAX) };
    let before = cursor.strip_prefix(kind).and_then(|before| before.parse().ok()).filter(|before| *before >= 0);
    before.ok_or_else(|| {
        StoreError::new(StoreErrorKind::InvalidRequest, operation, "the cursor is none that a page gave")
    })
}

/// A query for sessions that was checked.
pub(crate) struct SessionListing {
    limit: usize,
    /// The page has only sessions with smaller keys.
    before: i64,
}

impl SessionListing {
    /// Refuses a cursor that no page gave.
    pub(crate) fn new(query: &SessionQuery) -> Result<Self, StoreError> {
        let before = read_cursor("list sessions", SESSIONS, query.cursor.as_deref())?;
        Ok(Self { limit: query.limit.clamp(1, PAGE) as usize, before })
    }

    /// The rows of a page, of which there may be one more than asked for.
    pub(crate) async fn fetch(&self, connection: &mut SqliteConnection) -> Result<Vec<SqliteRow>, sqlx::Error> {
        let limit = i64::try_from(self.limit + 1).unwrap_or(i64::MAX);
        client::fetch(connection, include_str!("../queries/read/sessions.sql"), values![self.before, limit]).await
    }

    /// The page that these rows hold.
    pub(crate) fn read(&self, rows: &[SqliteRow]) -> Reading<SessionPage> {
        let mut page = SessionPage::default();
        for row in rows.iter().take(self.limit) {
            page.sessions.push(SessionRecord {
                session_id: row::session_id(row)?,
                head: row::checkpoint_id(row)?,
                turn_index: row::count(row, "turn_index")?,
                head_at: row::time(row, "created_at")?,
                active_runs: row::count(row, "active_runs")?,
            });
        }
        if rows.len() > self.limit
            && let Some(last) = rows.get(self.limit.saturating_sub(1))
        {
            page.next = Some(format!("{SESSIONS}{}", get::<i64>(last, "id")?));
        }
        Ok(page)
    }
}

/// The counts that rows of [`STATS`] hold.
pub(crate) fn stats(rows: &[SqliteRow]) -> Reading<StoreStats> {
    let mut stats = StoreStats::default();
    for row in rows {
        let number = row::count(row, "number")?;
        match get::<&str>(row, "tag")? {
            "run" => stats.runs.add(row::status(row)?, number),
            "question" => stats.open_questions = number,
            "session" => stats.sessions = number,
            _ => stats.checkpoints = number,
        }
    }
    Ok(stats)
}

/// Runs statements in one transaction that only reads.
async fn at_one_moment(
    connection: &mut SqliteConnection,
    statements: impl IntoIterator<Item = (&'static str, Vec<Value>)>,
) -> Result<Vec<SqliteRow>, sqlx::Error> {
    client::fetch(connection, "BEGIN", Vec::new()).await?;
    let mut rows = Vec::new();
    for (sql, values) in statements {
        rows.extend(client::fetch(connection, sql, values).await?);
    }
    client::fetch(connection, "COMMIT", Vec::new()).await?;
    Ok(rows)
}

/// The rows of all that is kept of a run.
pub(crate) async fn fetch_history(
    connection: &mut SqliteConnection,
    run_id: &RunId,
) -> Result<Vec<SqliteRow>, sqlx::Error> {
    let statements = [
        include_str!("../queries/read/history_run.sql"),
        include_str!("../queries/read/history_entries.sql"),
        include_str!("../queries/read/history_questions.sql"),
    ];
    at_one_moment(connection, statements.map(|sql| (sql, values![run_id.as_str()]))).await
}

/// The history that such rows hold.
pub(crate) fn history(rows: &[SqliteRow], now: Timestamp) -> Reading<Option<RunHistory>> {
    let Some((first, rows)) = rows.split_first() else { return Ok(None) };
    let Some(run) = super::run(std::slice::from_ref(first))? else { return Ok(None) };
    let context = Arc::new(run.context.clone());
    let mut history = RunHistory::new(run);
    history.snapshot = row::optional_blob(first, "snapshot")?;
    for row in rows {
        match get::<&str>(row, "tag")? {
            "entry" => history.entries.push(row::blob(row, "body")?),
            _ => history.questions.push(super::question(row, Arc::clone(&context), now)?),
        }
    }
    Ok(Some(history))
}

#[cfg(test)]
mod tests {
    use sqlx::Connection as _;

    use super::*;

    /// A database with so many runs that ended, after one that is parked.
    async fn with_one_parked_before(ended: i64) -> SqliteConnection {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        for schema in [include_str!("../queries/schema_1.sql"), include_str!("../queries/schema_2.sql")] {
            sqlx::raw_sql(schema).execute(&mut connection).await.unwrap();
        }
        let filled = "WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < $1)
            INSERT INTO runs SELECT n + 1, 'run-' || n, 'session', 'review', '1', '5e', '{}',
                CASE n WHEN 0 THEN 'parked' ELSE 'completed' END, 1, 1, 1, 0, NULL, 0, 0, 0, NULL, NULL FROM numbers";
        client::fetch(&mut connection, filled, values![ended]).await.unwrap();
        connection
    }

    #[tokio::test]
    async fn a_rare_run_is_found_by_calls_that_each_look_at_a_part() {
        let mut connection = with_one_parked_before(2 * SCAN).await;
        for session_id in [None, Some("session".parse().unwrap())] {
            let mut query = RunQuery { statuses: vec![RunStatus::Parked], session_id, limit: 5, ..RunQuery::default() };
            let mut found = Vec::new();
            loop {
                let listing = RunListing::new(query.clone()).unwrap();
                let rows = listing.fetch(&mut connection).await.unwrap();
                let page = listing.read(&rows).unwrap();
                found.push(page.runs.len());
                let Some(next) = page.next else { break };
                query.cursor = Some(next);
            }
            assert_eq!(found, [0, 0, 1]);
        }
    }
}
