//! A driver's work: open, record, suspend, finish, park, renew, release.

use std::time::Duration;

use bytes::Bytes;
use kortyx_protocol::RunId;
use kortyx_store::{
    Finish, Finished, Lease, NewCheckpoint, NewInterrupt, NewResponse, OpenRun, Park, Record, Recorded, Renewed,
    RunRef, RunStatus, StoreError, StoreErrorKind, Suspend, Suspended, TurnRef,
};

use crate::{
    encode::{Request, definition, fixed, millis},
    locate::NewId,
    names::{Kind, session_digest},
    reply::{Damage, Parts, Reading, Reply},
    row, script,
    store::RedisStore,
};

/// The ids that a turn brings, and where questions are asked.
fn ids_of(
    new: Option<&RunId>,
    run: Option<&RunId>,
    publish: &[NewInterrupt],
    checkpoint: Option<&NewCheckpoint>,
) -> Vec<NewId> {
    let new = new.map(NewId::run);
    let questions = publish.iter().zip(run.into_iter().cycle()).map(|(new, run)| NewId::question(&new.request_id, run));
    new.into_iter().chain(questions).chain(checkpoint.map(|new| NewId::checkpoint(&new.id))).collect()
}

fn run_id_of(run: &RunRef) -> &RunId {
    match run {
        RunRef::New(new, _) => &new.run_id,
        RunRef::Held(lease) => &lease.run_id,
    }
}

fn followed(run: &RunRef) -> Option<&TurnRef> {
    match run {
        RunRef::New(new, _) => new.follows.as_ref(),
        RunRef::Held(_) => None,
    }
}

impl RedisStore {
    /// The session of a run that a lease is held on.
    async fn held(&self, operation: &'static str, lease: &Lease) -> Result<String, StoreError> {
        let found = self.find(operation, Kind::Run, lease.run_id.as_str()).await?;
        found
            .map(|place| place.digest)
            .ok_or_else(|| StoreError::new(StoreErrorKind::LeaseLost, operation, "the run is not stored"))
    }

    /// Says which run a turn is of; gives its session, of a new one its id, and what never changes of it.
    async fn run_of(
        &self,
        operation: &'static str,
        request: &mut Request,
        run: &RunRef,
    ) -> Result<(String, Option<RunId>, Bytes), StoreError> {
        match run {
            RunRef::New(new, _) => {
                let kind = if new.follows.is_some() { 2 } else { 1 };
                request.packed.byte(kind).id(new.run_id.as_str()).number(0);
                Ok((session_digest(&new.session_id), Some(new.run_id.clone()), fixed(new)))
            }
            RunRef::Held(lease) => {
                request.packed.byte(0).id(lease.run_id.as_str()).number(lease.fence);
                Ok((self.held(operation, lease).await?, None, Bytes::new()))
            }
        }
    }

    /// A request under a lease.
    fn under(&self, operation: &'static str, lease: &Lease) -> Request {
        let mut request = self.request(operation);
        request.packed.id(lease.run_id.as_str()).number(lease.fence);
        request
    }

    pub(crate) async fn open_run(&self, open: OpenRun) -> Result<Lease, StoreError> {
        const OPERATION: &str = "open";
        let OpenRun { run, driver, snapshot, chunks } = open;
        let mut request = self.request(OPERATION);
        request.packed.id(run.run_id.as_str()).number(millis(driver.ttl));
        request.follows(run.follows.as_ref());
        request.payloads.push(definition(&run.workflow));
        request.snapshot(snapshot)?;
        request.payloads.push(fixed(&run));
        request.chunks(chunks)?;
        let (digest, ids) = (session_digest(&run.session_id), ids_of(Some(&run.run_id), None, &[], None));
        let said = self.bring(OPERATION, &script::OPEN, &digest, &ids, request).await?;
        let read = || {
            let mut parts = Parts::of(said)?;
            Ok(Lease { run_id: run.run_id, fence: parts.next()?.count()?, until: row::moment(parts.next()?)? })
        };
        read().map_err(|damage: Damage| damage.during(OPERATION))
    }

    pub(crate) async fn record_entries(&self, record: Record) -> Result<Recorded, StoreError> {
        const OPERATION: &str = "record";
        let Record { lease, entries, chunks, publish, withdraw, answers_seen, response } = record;
        let mut request = self.under(OPERATION, &lease);
        request.packed.number(answers_seen).count(entries.len()).byte(u8::from(response.is_some()));
        let checkpoint = response.as_ref().and_then(|response| response.checkpoint.as_ref());
        let ids = ids_of(None, Some(&lease.run_id), &publish, checkpoint);
        if let Some(NewResponse { outcome, checkpoint }) = response {
            request.payload("a response", outcome)?;
            request.turn(checkpoint)?;
        }
        entries.into_iter().try_for_each(|entry| request.payload("an entry", entry))?;
        request.asks(publish, &withdraw)?;
        request.chunks(chunks)?;
        let digest = self.held(OPERATION, &lease).await?;
        let said = self.bring(OPERATION, &script::RECORD, &digest, &ids, request).await?;
        let read = || {
            let mut parts = Parts::of(said)?;
            let (answers, published) = (row::answers(parts.list()?)?, row::questions(parts.list()?)?);
            Ok(Recorded { answers, published, cancel_requested: parts.next()? == Reply::Int(1) })
        };
        read().map_err(|damage: Damage| damage.during(OPERATION))
    }

    pub(crate) async fn suspend_run(&self, suspend: Suspend) -> Result<Suspended, StoreError> {
        const OPERATION: &str = "suspend";
        let mut request = self.request(OPERATION);
        let (digest, new, fixed) = self.run_of(OPERATION, &mut request, &suspend.run).await?;
        request.packed.number(suspend.answers_seen);
        request.payloads.push(definition(&suspend.workflow));
        request.snapshot(suspend.snapshot)?;
        request.payloads.push(fixed.clone());
        let run_id = run_id_of(&suspend.run);
        let ids = ids_of(new.as_ref(), Some(run_id), &suspend.publish, suspend.checkpoint.as_ref());
        request.asks(suspend.publish, &suspend.withdraw)?;
        request.follows(followed(&suspend.run));
        let rest = request.payloads.last().cloned().unwrap_or_default();
        request.ending(suspend.checkpoint, suspend.chunks)?;
        let said = self.bring(OPERATION, &script::SUSPEND, &digest, &ids, request).await?;
        suspended(said, rest, fixed).map_err(|damage| damage.during(OPERATION))
    }

    pub(crate) async fn finish_run(&self, finish: Finish) -> Result<Finished, StoreError> {
        const OPERATION: &str = "finish";
        let mut request = self.request(OPERATION);
        let (digest, new, fixed) = self.run_of(OPERATION, &mut request, &finish.run).await?;
        let status = row::status_number(RunStatus::from(finish.status));
        request.packed.number(finish.answers_seen).byte(status).option(finish.reason.as_deref());
        request.follows(followed(&finish.run));
        request.payloads.push(definition(&finish.workflow));
        request.payload("an outcome", finish.outcome)?;
        if !fixed.is_empty() || finish.checkpoint.is_some() || !finish.chunks.is_empty() {
            request.payloads.push(fixed);
        }
        let ids = ids_of(new.as_ref(), None, &[], finish.checkpoint.as_ref());
        request.ending(finish.checkpoint, finish.chunks)?;
        let said = self.bring(OPERATION, &script::FINISH, &digest, &ids, request).await?;
        if matches!(said, Reply::Bytes(_)) {
            return Ok(Finished::Done);
        }
        let read = || {
            let mut parts = Parts::of(said)?;
            match parts.text()?.as_str() {
                "done" => Ok(Finished::Done),
                _ => Ok(Finished::Answered(row::answers(parts.list()?)?)),
            }
        };
        read().map_err(|damage: Damage| damage.during(OPERATION))
    }

    pub(crate) async fn park_run(&self, park: Park) -> Result<(), StoreError> {
        const OPERATION: &str = "park";
        let mut request = self.under(OPERATION, &park.lease);
        request.packed.bytes(park.reason.as_bytes());
        let digest = self.held(OPERATION, &park.lease).await?;
        self.transition(OPERATION, &script::PARK, &digest, request).await.map(drop)
    }

    pub(crate) async fn renew_lease(&self, lease: &Lease, ttl: Duration, seen: u64) -> Result<Renewed, StoreError> {
        const OPERATION: &str = "renew";
        let mut request = self.under(OPERATION, lease);
        request.packed.number(millis(ttl)).number(seen);
        let digest = self.held(OPERATION, lease).await?;
        let said = self.transition(OPERATION, &script::RENEW, &digest, request).await?;
        let read = || {
            let mut parts = Parts::of(said)?;
            let until = row::moment(parts.next()?)?;
            let lease = Lease { until, ..lease.clone() };
            let answers = row::answers(parts.list()?)?;
            Ok(Renewed { lease, answers, cancel_requested: parts.next()? == Reply::Int(1) })
        };
        read().map_err(|damage: Damage| damage.during(OPERATION))
    }

    pub(crate) async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        const OPERATION: &str = "release";
        let request = self.under(OPERATION, lease);
        let digest = self.held(OPERATION, lease).await?;
        self.transition(OPERATION, &script::RELEASE, &digest, request).await.map(drop)
    }
}

/// What became of a pause; the ordinary one says of its only question what the caller does not have.
fn suspended(said: Reply, rest: Bytes, fixed: Bytes) -> Reading<Suspended> {
    if let Reply::Bytes(said) = said {
        return Ok(Suspended::Saved(vec![row::saved(said, rest, fixed)?]));
    }
    let mut parts = Parts::of(said)?;
    Ok(match parts.text()?.as_str() {
        "saved" => Suspended::Saved(row::questions(parts.list()?)?),
        "answered" => Suspended::Answered(row::answers(parts.list()?)?),
        "cancelled" => Suspended::Cancelled,
        "expired" => Suspended::Expired,
        other => return Err(Damage::new(format!("an unknown outcome `{other}`"))),
    })
}
