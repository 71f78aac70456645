//! What an operator's inspector reads: pages of runs, whoever they belong to, and all that is kept of one.
//!
//! Nothing holds every run in order, and a walk over a server's keys may meet one twice. So a page is made of the runs whose places,
//! session's digest and id, come next among all that a walk over every server meets: however often it is made, and whichever
//! server holds them by then, pages follow each other without gap or repetition. Its price is that walk, in small steps.

use std::collections::BTreeSet;

use futures_util::future::try_join_all;
use kortyx_protocol::RunId;
use kortyx_store::{RunHistory, RunPage, RunQuery, RunRecord, StoreError, StoreErrorKind};

use crate::{
    locate::Place,
    names::{DIGEST, Kind, is_digest, session_digest},
    reply::{Parts, Reading, Reply},
    row, script, snapshot,
    store::RedisStore,
};

const LIST: &str = "list runs";
const HISTORY: &str = "history";
/// The most runs of a page.
const PAGE: u32 = 200;
/// How many runs one call looks at before it gives what it has.
const SCAN: usize = 2_000;
/// How many keys one step of the walk looks at.
const STEP: usize = 1_000;
/// How many runs are read at once.
const BATCH: usize = 100;
/// What a cursor starts with; the place of the last run that was looked at follows.
const CURSOR: &str = "runs.";

/// Where a run is: the digest of its session, and its id.
type RunPlace = (String, String);

impl RedisStore {
    pub(crate) async fn page_of_runs(&self, query: RunQuery) -> Result<RunPage, StoreError> {
        let after = query.cursor.as_deref().map(read_cursor).transpose()?;
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
        let mut places = BTreeSet::new();
        for node in self.client(LIST)?.nodes() {
            let mut from = "0".to_owned();
            loop {
                let (next, keys) = self.scan(LIST, &node, (from, &pattern, STEP)).await?;
                let found = keys.iter().filter_map(|key| self.names.repairable(key));
                for (digest, run) in found.filter_map(|(digest, run)| Some((digest, run?))) {
                    let place = (digest.to_owned(), run.to_owned());
                    if after.is_none_or(|after| place > *after) {
                        places.insert(place);
                    }
                    if places.len() > SCAN + 1 {
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

fn cursor((digest, run): &RunPlace) -> String {
    format!("{CURSOR}{digest}{run}")
}

fn read_cursor(cursor: &str) -> Result<RunPlace, StoreError> {
    let place = cursor.strip_prefix(CURSOR).and_then(|place| place.split_at_checked(DIGEST));
    let place = place.filter(|(digest, run)| is_digest(digest) && !run.is_empty());
    let place = place.map(|(digest, run)| (digest.to_owned(), run.to_owned()));
    place.ok_or_else(|| {
        StoreError::new(StoreErrorKind::InvalidRequest, LIST, "the cursor is none that a page of this listing gave")
    })
}
