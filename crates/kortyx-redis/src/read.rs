//! Reading by id.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId};
use kortyx_store::{CheckpointRecord, ChunkPage, InterruptRecord, RunRecord, StoreError};

use crate::{
    locate::Place,
    names::{Kind, session_digest},
    reply::{Reading, Reply},
    row, script,
    store::RedisStore,
    turn,
};

impl RedisStore {
    /// Reads these ids of one session.
    pub(crate) async fn read_ids(
        &self,
        operation: &'static str,
        kind: &str,
        digest: &str,
        ids: &[&str],
    ) -> Result<Vec<Reply>, StoreError> {
        let mut request = self.request(operation);
        request.set("kind", kind);
        request.set("ids", ids);
        let said = self.read(operation, &script::READ, digest, request).await?;
        said.list().map_err(|damage| damage.during(operation))
    }

    /// Reads one thing wherever it is. What this process remembers of its place may be old, so an absent one is looked up.
    pub(crate) async fn read_one(
        &self,
        operation: &'static str,
        (kind, what): (Kind, &str),
        id: &str,
    ) -> Result<Option<Reply>, StoreError> {
        let Some(Place { digest, .. }) = self.find(operation, kind, id).await? else { return Ok(None) };
        let found = self.read_ids(operation, what, &digest, &[id]).await?.into_iter().find(|row| !row::is_absent(row));
        if found.is_some() {
            return Ok(found);
        }
        let Some(other) = self.look_up(operation, kind, id).await?.filter(|other| other.digest != digest) else {
            return Ok(None);
        };
        Ok(self.read_ids(operation, what, &other.digest, &[id]).await?.into_iter().find(|row| !row::is_absent(row)))
    }

    pub(crate) async fn read_run(&self, run_id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let found = self.read_one("run", (Kind::Run, "run"), run_id.as_str()).await?;
        found.map(row::run_with_response).transpose().map_err(|damage| damage.during("run"))
    }

    pub(crate) async fn read_chunks(
        &self,
        run_id: &RunId,
        after: u64,
        limit: u32,
    ) -> Result<Option<ChunkPage>, StoreError> {
        const OPERATION: &str = "chunks";
        let Some(place) = self.find(OPERATION, Kind::Run, run_id.as_str()).await? else { return Ok(None) };
        let page = self.chunks_at(OPERATION, &place.digest, run_id, (after, limit)).await?;
        if page.is_some() {
            return Ok(page);
        }
        // What this process remembers of its place may be old.
        let other = self.look_up(OPERATION, Kind::Run, run_id.as_str()).await?;
        match other.filter(|other| other.digest != place.digest) {
            Some(other) => self.chunks_at(OPERATION, &other.digest, run_id, (after, limit)).await,
            None => Ok(None),
        }
    }

    async fn chunks_at(
        &self,
        operation: &'static str,
        digest: &str,
        run_id: &RunId,
        (after, limit): (u64, u32),
    ) -> Result<Option<ChunkPage>, StoreError> {
        let from = i64::try_from(after).unwrap_or(i64::MAX);
        let last = if limit == 0 { String::new() } else { from.saturating_add(i64::from(limit) - 1).to_string() };
        let args = [run_id.as_str().to_owned(), from.to_string(), last].map(Bytes::from);
        let key = self.names.session(digest);
        let said = self.client(operation)?.script(operation, &script::CHUNKS, &key, &args).await?;
        row::output(said, after).map_err(|damage| damage.during(operation))
    }

    pub(crate) async fn read_question(&self, id: &RequestId) -> Result<Option<InterruptRecord>, StoreError> {
        const OPERATION: &str = "interrupt";
        // What this process remembers of its place may be old.
        let remembered = self.remembered(Kind::Question, id.as_str());
        if let Some(place) = &remembered
            && let (Some(found), _) = self.question_at(OPERATION, Some(place), id).await?
        {
            return Ok(Some(found));
        }
        let (found, place) = self.question_at(OPERATION, None, id).await?;
        match &place {
            Some(locator) => self.memory.put(Kind::Question, id.as_str(), locator.as_str()),
            None => self.memory.forget(Kind::Question, id.as_str()),
        }
        match place.as_deref().and_then(Place::of).filter(|place| found.is_none() && remembered.as_ref() != Some(place))
        {
            Some(place) => Ok(self.question_at(OPERATION, Some(&place), id).await?.0),
            None => Ok(found),
        }
    }

    /// Reads a question at its place, or where its locator says and if that is the same slot; gives what the locator says.
    async fn question_at(
        &self,
        operation: &'static str,
        place: Option<&Place>,
        id: &RequestId,
    ) -> Result<(Option<InterruptRecord>, Option<String>), StoreError> {
        let offset = self.config.clock_offset.load(Ordering::Relaxed).to_string();
        let key = place
            .map_or_else(|| self.names.locator(Kind::Question, id.as_str()), |place| self.names.session(&place.digest));
        let run = place.map_or("", |place| place.run.as_str());
        let is_single = u8::from(!self.config.by_slot).to_string();
        let args = [offset, id.as_str().to_owned(), run.to_owned(), is_single].map(Bytes::from);
        let said = self.client(operation)?.script(operation, &script::QUESTION, &key, &args).await?;
        row::one_question(said, id.as_str()).map_err(|damage| damage.during(operation))
    }

    pub(crate) async fn read_checkpoint(&self, id: &CheckpointId) -> Result<Option<CheckpointRecord>, StoreError> {
        let found = self.read_one("checkpoint", (Kind::Checkpoint, "checkpoint"), id.as_str()).await?;
        found.map(turn::checkpoint).transpose().map_err(|damage| damage.during("checkpoint"))
    }

    pub(crate) async fn read_head(&self, session_id: &SessionId) -> Result<Option<CheckpointRecord>, StoreError> {
        let rows = self.read_ids("head", "head", &session_digest(session_id), &[]).await?;
        Ok(checkpoints("head", rows)?.pop())
    }

    pub(crate) async fn read_checkpoints(&self, session_id: &SessionId) -> Result<Vec<CheckpointRecord>, StoreError> {
        const OPERATION: &str = "list checkpoints";
        let rows = self.read_ids(OPERATION, "checkpoints", &session_digest(session_id), &[]).await?;
        checkpoints(OPERATION, rows)
    }
}

fn checkpoints(operation: &'static str, rows: Vec<Reply>) -> Result<Vec<CheckpointRecord>, StoreError> {
    let read: Reading<_> = turn::checkpoints(rows);
    read.map_err(|damage| damage.during(operation))
}
