//! Pages of open questions.
//!
//! A page is read through an index that holds open questions in their order: by run, by session or by one context value.
//! Where a query names several, a bounded probe finds the one with the fewest, and the others filter.

use std::sync::Arc;

use kortyx_protocol::Timestamp;
use kortyx_store::{InterruptPage, InterruptQuery, StoreError, StoreErrorKind};
use sqlx::{SqliteConnection, sqlite::SqliteRow};

use crate::{
    client::{self, Value, values},
    row::{self, Reading, encode_scalar, get},
};

/// The most questions of a page.
const PAGE: u32 = 200;

/// The most entries that a probe looks at.
const PROBE: i64 = 1000;

/// A query that was checked.
pub(crate) struct Listing {
    query: InterruptQuery,
    limit: usize,
    /// The page starts after the question with this time and key.
    after: (i64, i64),
    now: Timestamp,
}

/// What a page is read by.
#[derive(Clone)]
enum Path {
    Run(String),
    Session(String),
    Context(String, String),
}

impl Listing {
    pub(crate) const OPERATION: &str = "list interrupts";

    /// Refuses a query without a session, a run or a context, and a cursor that no page gave.
    pub(crate) fn new(query: InterruptQuery, now: Timestamp) -> Result<Self, StoreError> {
        if query.scope.is_empty() && query.run_id.is_none() {
            let message = "listing needs a session, a run or a context";
            return Err(StoreError::new(StoreErrorKind::ScopeRequired, Self::OPERATION, message));
        }
        let limit = query.limit.clamp(1, PAGE) as usize;
        let after = match &query.cursor {
            Some(cursor) => read_cursor(cursor).ok_or_else(|| {
                StoreError::new(StoreErrorKind::InvalidRequest, Self::OPERATION, "the cursor is none that a page gave")
            })?,
            None => (-1, 0),
        };
        Ok(Self { query, limit, after, now })
    }

    /// The page that these rows hold, of which there may be one more than asked for.
    pub(crate) fn read(&self, rows: &[SqliteRow]) -> Reading<InterruptPage> {
        let mut page = InterruptPage::default();
        for row in rows.iter().take(self.limit) {
            page.interrupts.push(row::question(row, row::run_id(row)?, Arc::new(row::context(row)?))?);
        }
        if rows.len() > self.limit
            && let Some(last) = rows.get(self.limit.saturating_sub(1))
        {
            page.next = Some(format!("{}.{}", get::<i64>(last, "created_at")?, get::<i64>(last, "id")?));
        }
        Ok(page)
    }

    /// Every path that restricts the page, the narrowest kind first.
    fn paths(&self) -> Vec<Path> {
        let run = self.query.run_id.iter().map(|run_id| Path::Run(run_id.as_str().to_owned()));
        let session = self.query.scope.session_id.iter().map(|id| Path::Session(id.as_str().to_owned()));
        let context = self.query.scope.context.iter();
        let context = context.map(|(key, value)| Path::Context(key.clone(), encode_scalar(value)));
        run.chain(session).chain(context).collect()
    }
}

impl Path {
    /// The page on this path; `$1` and `$2` are its values.
    fn page_sql(&self) -> &'static str {
        match self {
            Self::Run(_) => include_str!("../queries/read/page_of_run.sql"),
            Self::Session(_) => include_str!("../queries/read/page_of_session.sql"),
            Self::Context(..) => include_str!("../queries/read/page_of_context.sql"),
        }
    }

    /// A bounded count of what lies on this path. A run's questions are few: it needs none.
    fn probe_sql(&self) -> Option<&'static str> {
        match self {
            Self::Run(_) => None,
            Self::Session(_) => Some(include_str!("../queries/read/probe_session.sql")),
            Self::Context(..) => Some(include_str!("../queries/read/probe_context.sql")),
        }
    }

    /// The condition that a question of the page lies on this path too, with its values from this place on. The plus
    /// signs keep the page's own index in front.
    fn filter(&self, place: usize) -> String {
        let (first, second) = (place, place + 1);
        match self {
            Self::Run(_) => format!(
                "AND EXISTS (SELECT 1 FROM interrupts AS y CROSS JOIN runs AS z ON z.id = y.run \
                 WHERE y.id = +page_id AND z.run_id = ${first}) "
            ),
            Self::Session(_) => {
                format!("AND EXISTS (SELECT 1 FROM interrupts AS y WHERE y.id = +page_id AND y.session_id = ${first}) ")
            }
            Self::Context(..) => format!(
                "AND EXISTS (SELECT 1 FROM pending_context AS x WHERE x.key = ${first} AND x.value = ${second} \
                 AND x.created_at = +p.created_at AND x.interrupt = +page_id) "
            ),
        }
        .replace("page_id", "p.id")
    }

    fn values(&self) -> [Value; 2] {
        match self {
            Self::Run(id) | Self::Session(id) => [id.into(), Value::Null],
            Self::Context(key, value) => [key.into(), value.into()],
        }
    }
}

/// Reads a page.
pub(crate) async fn page(connection: &mut SqliteConnection, listing: &Listing) -> Result<Vec<SqliteRow>, sqlx::Error> {
    let mut paths = listing.paths();
    let narrowest = narrowest(connection, listing, &paths).await?;
    if narrowest >= paths.len() {
        return Ok(Vec::new());
    }
    let path = paths.swap_remove(narrowest);
    let (sql, values) = page_sql(listing, &path, &paths);
    client::fetch_composed(connection, Arc::from(sql), values).await
}

/// The statement that reads a page on one path, filtered by the others.
fn page_sql(listing: &Listing, path: &Path, others: &[Path]) -> (String, Vec<Value>) {
    let mut values = Vec::from(path.values());
    let limit = i64::try_from(listing.limit + 1).unwrap_or(i64::MAX);
    let flag = listing.query.after_response_completed;
    values.extend(values![listing.after.0, listing.after.1, listing.now, flag, limit]);
    let mut filters = String::new();
    for other in others {
        filters.push_str(&other.filter(values.len() + 1));
        values.extend(other.values());
    }
    if matches!(path, Path::Context(..)) {
        filters = filters.replace("p.id", "p.interrupt");
    }
    (path.page_sql().replace("/* filters */", &filters), values)
}

/// Which path has the fewest open questions left, as far as a probe can tell.
async fn narrowest(connection: &mut SqliteConnection, listing: &Listing, paths: &[Path]) -> Result<usize, sqlx::Error> {
    let mut best = (PROBE, 0);
    if paths.len() < 2 {
        return Ok(best.1);
    }
    for (index, path) in paths.iter().enumerate() {
        let Some(sql) = path.probe_sql() else { return Ok(index) };
        let mut values = Vec::from(path.values());
        values.extend(values![listing.after.0, best.0]);
        let rows = client::fetch(connection, sql, values).await?;
        let count = rows.first().and_then(|row| get::<i64>(row, "found").ok()).unwrap_or(PROBE);
        if count < best.0 {
            best = (count, index);
        }
    }
    Ok(best.1)
}

#[cfg(test)]
impl Listing {
    /// Every statement that may read this page.
    pub(crate) fn statements(&self) -> Vec<String> {
        let paths = self.paths();
        let choices = (0..paths.len()).map(|index| {
            let mut others = paths.clone();
            let path = others.swap_remove(index);
            page_sql(self, &path, &others).0
        });
        choices.collect()
    }
}

fn read_cursor(cursor: &str) -> Option<(i64, i64)> {
    let (created_at, key) = cursor.split_once('.')?;
    let number = |text: &str| text.parse::<i64>().ok().filter(|number| *number >= 0);
    Some((number(created_at)?, number(key)?))
}
