//! The stream of one who follows a run.

use std::{
    collections::{HashSet, VecDeque},
    fmt,
    sync::Arc,
    time::Duration,
};

use futures_util::{Stream, stream::unfold};
use kortyx_protocol::{CheckpointId, DoneData, RawJson, RequestId, RunId, SessionId, StreamChunk, Timestamp};
use kortyx_store::{RunStatus, StoreError};
use serde_json::{Map, Value};
use tokio::time::sleep;

use super::{RunChunk, watch::Follower};
use crate::{
    OrchestratorError,
    agent::Inner,
    driver::{OpenInterrupt, Stand, State, corrupt},
    error::chain,
    host::jittered,
    present,
    wait::response_of,
};

/// The most chunks that are read at once.
const PAGE: u32 = 64;
/// How long to wait before looking again at a run of which nothing was told, at first and at most.
const LOOK: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(8));

/// What a run said and says. Ends after `done`; earlier when the agent shuts down or the run's output was removed meanwhile.
#[must_use = "nothing is read from storage before the stream is"]
pub struct RunStream {
    agent: Arc<Inner>,
    run_id: RunId,
    session_id: SessionId,
    follower: Follower,
    /// The number of the last chunk that was read.
    after: u64,
    /// What was read and not yet given.
    ready: VecDeque<RunChunk>,
    /// Questions that were put.
    asked: HashSet<RequestId>,
    /// When the run changed last, once all was told of how it stands since.
    told: Option<Timestamp>,
    pause: Duration,
    is_over: bool,
}

impl RunStream {
    pub(super) fn new(agent: Arc<Inner>, run_id: RunId, session_id: SessionId, after: u64) -> Self {
        // From here on nothing that this process stores is missed.
        let follower = agent.followers.follow(run_id.clone());
        let mut stream = Self {
            agent,
            run_id,
            session_id: session_id.clone(),
            follower,
            after,
            ready: VecDeque::new(),
            asked: HashSet::new(),
            told: None,
            pause: LOOK.0,
            is_over: false,
        };
        stream.say(&StreamChunk::session(session_id));
        stream
    }

    /// The session that the run belongs to.
    pub fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// The next piece; `None` when there will be none. Dropping the future loses nothing.
    ///
    /// # Errors
    /// Storage failed, and trying again will not help; the stream is over.
    pub async fn next(&mut self) -> Result<Option<RunChunk>, OrchestratorError> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(Some(chunk));
            }
            if self.is_over {
                return Ok(None);
            }
            let has_news = match self.look().await {
                Err(OrchestratorError::Storage(error)) if error.is_retryable() => {
                    self.note(&error);
                    false
                }
                looked => looked.inspect_err(|_| self.is_over = true)?,
            };
            if has_news {
                self.pause = LOOK.0;
            } else if !self.is_over {
                self.wait().await;
            }
        }
    }

    /// The same as a stream, which ends with an error if there is one.
    pub fn into_stream(self) -> impl Stream<Item = Result<RunChunk, OrchestratorError>> + Send {
        unfold(self, async |mut stream| stream.next().await.transpose().map(|item| (item, stream)))
    }

    fn note(&self, error: &StoreError) {
        tracing::warn!(run_id = %self.run_id, error = chain(error), "what a run says was not read; it is tried again");
    }

    /// Reads what is new. `true`: there was something.
    async fn look(&mut self) -> Result<bool, OrchestratorError> {
        let Some(page) = self.agent.store.chunks(&self.run_id, self.after, PAGE).await? else {
            // Storage does not know it yet, or no longer.
            self.is_over = self.agent.drivers.get(&self.run_id).is_none();
            return Ok(false);
        };
        for chunk in &page.chunks {
            let json = str::from_utf8(&chunk.chunk).ok().and_then(|text| RawJson::parse(text).ok());
            let json = json.ok_or_else(|| {
                OrchestratorError::Corrupt(corrupt(&format!("chunk {} of {} does not read", chunk.number, self.run_id)))
            })?;
            self.ready.push_back(RunChunk { number: Some(chunk.number), json });
            self.after = chunk.number;
        }
        if !self.ready.is_empty() || page.last > self.after {
            return Ok(!self.ready.is_empty());
        }
        if page.response_completed {
            return self.respond().await;
        }
        if page.status == RunStatus::Running {
            return Ok(false);
        }
        self.stand(page.status).await
    }

    /// Tells how a run stands that said everything and is not under way.
    async fn stand(&mut self, status: RunStatus) -> Result<bool, OrchestratorError> {
        let Some(run) = self.agent.store.run(&self.run_id).await? else { return Ok(false) };
        if run.status != status {
            // It went on since, and may have said more.
            return Ok(true);
        }
        let changed = Some(run.updated_at);
        if status == RunStatus::Suspended && self.told == changed {
            return Ok(false);
        }
        let Some(stand) = self.agent.stand_of(run).await? else { return Ok(false) };
        match stand.state {
            State::Suspended(open) => self.ask(open)?,
            _ if status.is_terminal() => self.end(status, stand),
            // It is set aside, and goes on when code that fits is deployed.
            _ => {}
        }
        self.told = changed;
        Ok(!self.ready.is_empty())
    }

    /// Ends as the turn did whose response is complete: what came later is not for those who read it.
    async fn respond(&mut self) -> Result<bool, OrchestratorError> {
        let Some(run) = self.agent.store.run(&self.run_id).await? else { return Ok(false) };
        let Some(response) = response_of(&run)? else { return Ok(false) };
        let stand = self.agent.with_questions(Stand::at(run.run_id, run.session_id, response)).await?;
        let State::Responded(response, open) = stand.state else { return Ok(false) };
        let awaiting_human_input = !open.is_empty();
        self.ask(open)?;
        let mut data = Value::Object(Map::new());
        match response.data.to_value() {
            Ok(value) => {
                data = value;
                self.keep(stand.checkpoint.as_ref()).await?;
            }
            Err(error) => self.say(&StreamChunk::error(present::undecodable(&stand.workflow, &error))),
        }
        let (status, current_workflow) = (RunStatus::Running.as_str().to_owned(), stand.workflow.to_string());
        let done = DoneData { run_id: stand.run_id, status, current_workflow, awaiting_human_input, data };
        self.say(&StreamChunk::done(Some(done)));
        self.is_over = true;
        Ok(true)
    }

    /// Tells of the checkpoint that keeps the turn, unless the conversation was taken back behind it.
    async fn keep(&mut self, checkpoint: Option<&CheckpointId>) -> Result<(), OrchestratorError> {
        let Some(id) = checkpoint else { return Ok(()) };
        if let Some(record) = self.agent.store.checkpoint(id).await? {
            let (id, session_id) = (record.checkpoint.id, record.session_id);
            let (turn_index, label) = (record.turn_index, record.checkpoint.label);
            self.say(&StreamChunk::Checkpoint { id, session_id, turn_index, label });
        }
        Ok(())
    }

    /// Puts questions that were not put yet.
    fn ask(&mut self, open: Vec<OpenInterrupt>) -> Result<(), OrchestratorError> {
        for interrupt in open {
            if self.asked.insert(interrupt.record.request_id.clone()) {
                let chunk = present::chunk(&interrupt)?;
                self.say(&chunk.into());
            }
        }
        Ok(())
    }

    fn end(&mut self, status: RunStatus, stand: Stand) {
        let Stand { run_id, workflow, state, .. } = stand;
        let mut data = Value::Object(Map::new());
        match state {
            State::Completed(end) => match end.data.to_value() {
                Ok(value) => data = value,
                Err(error) => self.say(&StreamChunk::error(present::undecodable(&workflow, &error))),
            },
            State::Cancelled(reason) => self.say(&StreamChunk::Cancelled { reason }),
            State::Failed(failure) => self.say(&StreamChunk::error(failure)),
            State::Expired => self.say(&StreamChunk::error(present::expired())),
            _ => {}
        }
        let (status, current_workflow) = (status.as_str().to_owned(), workflow.to_string());
        let done = DoneData { run_id, status, current_workflow, awaiting_human_input: false, data };
        self.say(&StreamChunk::done(Some(done)));
        self.is_over = true;
    }

    /// Says what has no number.
    fn say(&mut self, chunk: &StreamChunk) {
        match RawJson::of(chunk) {
            Ok(json) => self.ready.push_back(RunChunk { number: None, json }),
            Err(error) => tracing::error!(%error, "a chunk is not JSON"),
        }
    }

    async fn wait(&mut self) {
        tokio::select! {
            () = self.follower.news() => {
                self.pause = LOOK.0;
                return;
            }
            () = sleep(jittered(self.pause)) => {}
            () = self.agent.stopping.cancelled() => self.is_over = true,
        }
        self.pause = (self.pause * 2).min(LOOK.1);
    }
}

impl fmt::Debug for RunStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunStream").field("run_id", &self.run_id).field("after", &self.after).finish_non_exhaustive()
    }
}
