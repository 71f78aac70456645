//! What an operator's inspector reads: pages of runs and sessions, whoever they belong to, counts, and all that is kept of a run.
//!
//! Nothing holds every run or session in order, and a walk over a server's keys may meet one twice. So a page is made of those whose
//! places (of a run its session's digest and its id) come next among all that a walk over every server meets: however often it is
//! made, and whichever server holds them by then, pages follow each other without gap or repetition. Its price is that walk, in
//! small steps.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join_all;
use kortyx_protocol::{CheckpointId, RunId, SessionId};
use kortyx_store::{
    RunHistory, RunPage, RunQuery, RunRecord, SessionPage, SessionQuery, SessionRecord, StoreError, StoreErrorKind,
    StoreStats,
};

use crate::{
    locate::Place,
    names::{DIGEST, Kind, is_digest, session_digest},
    reply::{Damage, Parts, Reading, Reply},
    row::{self, parsed},
    script, snapshot,
    store::RedisStore,
};

const LIST: &str = "list runs";
const HISTORY: &str = "history";
const SESSIONS: &str = "list sessions";
const STATS: &str = "stats";
/// The most runs or sessions of a page.
const PAGE: u32 = 200;
/// How many runs one call looks at before it gives what it has.
const SCAN: usize = 2_000;
/// How many keys one step of the walk looks at.
const STEP: usize = 1_000;
/// How many runs are read at once.
const BATCH: usize = 100;
/// What cursors start with; the place of the last run, or session, that was looked at follows.
const OF_RUNS: &str = "runs.";
const OF_SESSIONS: &str = "sessions.";

/// Where a run is: the digest of its session, and its id.
type RunPlace = (String, String);

impl RedisStore {
    pub(crate) async fn page_of_runs(&self, query: RunQuery) -> Result<RunPage, StoreError> {
        let after = query.cursor.as_deref().map(read_runs_cursor).transpose()?;
        let limit = usize::try_from(query.limit.clamp(1, PAGE)).unwrap_or(1);
        let places = self.run_places(&query, after.as_ref()).await?;
        let (mut page, mut last) = (RunPage::default(), None);
        for batch in places.get(..places.len().min(SCAN)).unwrap_or_default().chunks(BATCH) {
            for (place, record) in batch.iter().zip(self.runs_at(batch).await?) {
                let record = record.filter(|record| query.matches(record));
                if record.is_some() && page.runs.len() == limit {
                    page.next = last.map(cursor);
                    return Ok(page);
                }
                page.runs.extend(record);
                last = Some(place);
            }
        }
        if places.len() > SCAN {
            page.next = last.map(cursor);
        }
        Ok(page)
    }

    /// The first places after this one, in order: one more than a call looks at, when there are so many.
    async fn run_places(&self, query: &RunQuery, after: Option<&RunPlace>) -> Result<Vec<RunPlace>, StoreError> {
        let digest = query.session_id.as_ref().map(session_digest);
        let pattern = self.names.runs_of(digest.as_deref());
        let place = |key: &str| {
            let (digest, run) = self.names.in_session(key)?;
            Some((digest.to_owned(), run.strip_prefix("r:")?.to_owned()))
        };
        self.first(LIST, &pattern, SCAN + 1, |key| place(key).filter(|place| after.is_none_or(|after| place > after)))
            .await
    }

    /// The first so many places of keys with such a name, in order.
    async fn first<P: Ord>(
        &self,
        operation: &'static str,
        pattern: &str,
        most: usize,
        place: impl Fn(&str) -> Option<P>,
    ) -> Result<Vec<P>, StoreError> {
        let mut places = BTreeSet::new();
        for node in self.client(operation)?.nodes() {
            let mut from = "0".to_owned();
            loop {
                let (next, keys) = self.scan(operation, &node, (from, pattern, STEP)).await?;
                for place in keys.iter().filter_map(|key| place(key)) {
                    places.insert(place);
                    if places.len() > most {
                        places.pop_last();
                    }
                }
                if next == "0" {
                    break;
                }
                from = next;
            }
        }
        Ok(places.into_iter().collect())
    }

    /// The runs at these places, which are in order, without what they carry; `None` for one that is gone.
    async fn runs_at(&self, places: &[RunPlace]) -> Result<Vec<Option<RunRecord>>, StoreError> {
        let sessions = places.chunk_by(|(one, _), (other, _)| one == other).map(|session| async move {
            let digest = session.first().map_or("", |(digest, _)| digest);
            let ids: Vec<_> = session.iter().map(|(_, run)| run.as_str()).collect();
            let rows = self.read_ids(LIST, "brief", digest, &ids).await?;
            let read = |row| if row::is_absent(&row) { Ok(None) } else { row::run(row).map(Some) };
            rows.into_iter().map(read).collect::<Reading<Vec<_>>>().map_err(|damage| damage.during(LIST))
        });
        Ok(try_join_all(sessions).await?.into_iter().flatten().collect())
    }

    pub(crate) async fn page_of_sessions(&self, query: SessionQuery) -> Result<SessionPage, StoreError> {
        let after = match &query.cursor {
            Some(cursor) => {
                let digest = cursor.strip_prefix(OF_SESSIONS).filter(|digest| is_digest(digest));
                digest.ok_or_else(|| unknown_cursor(SESSIONS))?
            }
            None => "",
        };
        let limit = usize::try_from(query.limit.clamp(1, PAGE)).unwrap_or(1);
        let place = |key: &str| {
            let (digest, rest) = self.names.in_session(key)?;
            (rest == "t" && digest > after).then(|| digest.to_owned())
        };
        let digests = self.first(SESSIONS, &self.names.turns(), limit + 1, place).await?;
        let shown = digests.get(..digests.len().min(limit)).unwrap_or_default();
        let rows = try_join_all(shown.iter().map(|digest| self.read_ids(SESSIONS, "session", digest, &[]))).await?;
        let sessions = rows.into_iter().flatten().map(session).collect::<Reading<_>>();
        let sessions = sessions.map_err(|damage| damage.during(SESSIONS))?;
        let last = shown.last().filter(|_| digests.len() > limit);
        Ok(SessionPage { sessions, next: last.map(|digest| format!("{OF_SESSIONS}{digest}")) })
    }

    /// Counts what a walk over every server meets.
    pub(crate) async fn count_all(&self) -> Result<StoreStats, StoreError> {
        let mut stats = StoreStats::default();
        for node in self.client(STATS)?.nodes() {
            let mut from = "0".to_owned();
            loop {
                let (next, keys) = self.scan(STATS, &node, (from, &self.names.countable(), STEP)).await?;
                let mut sessions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
                for (digest, rest) in keys.iter().filter_map(|key| self.names.in_session(key)) {
                    sessions.entry(digest).or_default().insert(rest);
                }
                let counts = sessions.iter().map(|(digest, rests)| self.count(digest, rests));
                for said in try_join_all(counts).await? {
                    add(&mut stats, said).map_err(|damage| damage.during(STATS))?;
                }
                if next == "0" {
                    break;
                }
                from = next;
            }
        }
        Ok(stats)
    }

    /// Counts what these keys of a session hold.
    async fn count(&self, digest: &str, rests: &BTreeSet<&str>) -> Result<Reply, StoreError> {
        let runs: Vec<_> = rests.iter().filter_map(|rest| rest.strip_prefix("r:")).collect();
        let mut request = self.request(STATS);
        request.set("runs", runs);
        request.set("turns", rests.contains("t"));
        self.read(STATS, &script::COUNT, digest, request).await
    }

    pub(crate) async fn read_history(&self, run_id: &RunId) -> Result<Option<RunHistory>, StoreError> {
        let Some(Place { digest, .. }) = self.find(HISTORY, Kind::Run, run_id.as_str()).await? else { return Ok(None) };
        let found = self.history_at(&digest, run_id).await?;
        if found.is_some() {
            return Ok(found);
        }
        // What this process remembers of its place may be old.
        let other = self.look_up(HISTORY, Kind::Run, run_id.as_str()).await?;
        match other.filter(|other| other.digest != digest) {
            Some(other) => self.history_at(&other.digest, run_id).await,
            None => Ok(None),
        }
    }

    async fn history_at(&self, digest: &str, run_id: &RunId) -> Result<Option<RunHistory>, StoreError> {
        let mut request = self.request(HISTORY);
        request.set("run", run_id.as_str());
        let said = self.read(HISTORY, &script::HISTORY, digest, request).await?;
        history(said).map_err(|damage| damage.during(HISTORY))
    }
}

/// A history as `history.lua` gives it.
fn history(said: Reply) -> Reading<Option<RunHistory>> {
    if row::is_absent(&said) {
        return Ok(None);
    }
    let mut parts = Parts::of(said)?;
    let run = row::run_with_response(parts.next()?)?;
    let snapshot = match parts.next()? {
        // A run that has ended keeps an empty one.
        Reply::Nil => None,
        _ if run.status.is_terminal() => None,
        given => Some(snapshot::given(given.bytes()?)?),
    };
    let mut history = RunHistory::new(run);
    history.snapshot = snapshot;
    history.entries = parts.list()?.into_iter().skip(1).map(Reply::bytes).collect::<Reading<_>>()?;
    history.questions = row::questions(parts.list()?)?;
    Ok(Some(history))
}

/// A session as `read.lua` gives it.
fn session(row: Reply) -> Reading<SessionRecord> {
    let mut parts = Parts::of(row)?;
    let (active_runs, turn_index, head_at) =
        (parts.next()?.count()?, parts.next()?.count()?, row::moment(parts.next()?)?);
    let head = parsed("a checkpoint's id", CheckpointId::new(parts.text()?))?;
    let session_id = parsed("a session's id", SessionId::new(parts.text()?))?;
    Ok(SessionRecord { session_id, head, turn_index, head_at, active_runs })
}

/// Adds what `count.lua` counted.
fn add(stats: &mut StoreStats, said: Reply) -> Result<(), Damage> {
    let mut parts = Parts::of(said)?;
    for status in parts.list()? {
        stats.runs.add(row::run_status(status)?, 1);
    }
    stats.open_questions += parts.next()?.count()?;
    let checkpoints = parts.next()?.count()?;
    stats.checkpoints += checkpoints;
    stats.sessions += u64::from(checkpoints > 0);
    Ok(())
}

fn cursor((digest, run): &RunPlace) -> String {
    format!("{OF_RUNS}{digest}{run}")
}

fn read_runs_cursor(cursor: &str) -> Result<RunPlace, StoreError> {
    let place = cursor.strip_prefix(OF_RUNS).and_then(|place| place.split_at_checked(DIGEST));
    let place = place.filter(|(digest, run)| is_digest(digest) && !run.is_empty());
    let place = place.map(|(digest, run)| (digest.to_owned(), run.to_owned()));
    place.ok_or_else(|| unknown_cursor(LIST))
}

fn unknown_cursor(operation: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::InvalidRequest, operation, "the cursor is none that a page of this listing gave")
}
