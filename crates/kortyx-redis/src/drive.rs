//! A driver's work: open, record, suspend, finish, park, renew, release.

use std::time::Duration;

use kortyx_protocol::RunId;
use kortyx_store::{
    Finish, Finished, Lease, NewCheckpoint, NewInterrupt, OpenRun, Park, Record, Recorded, Renewed, RunRef, RunStatus,
    StoreError, StoreErrorKind, Suspend, Suspended,
};

use crate::{
    encode::{Request, millis, new_run, workflow},
    names::{Kind, session_digest},
    reply::{Damage, Parts, Reading, Reply},
    row, script,
    store::RedisStore,
};

/// The ids that a turn brings.
fn ids_of(run: Option<&RunId>, publish: &[NewInterrupt], checkpoint: Option<&NewCheckpoint>) -> Vec<(Kind, String)> {
    let run = run.map(|run_id| (Kind::Run, run_id.as_str().to_owned()));
    let questions = publish.iter().map(|new| (Kind::Question, new.request_id.as_str().to_owned()));
    let checkpoint = checkpoint.map(|new| (Kind::Checkpoint, new.id.as_str().to_owned()));
    run.into_iter().chain(questions).chain(checkpoint).collect()
}

impl RedisStore {
    /// The session of a run that a lease is held on.
    async fn held(&self, operation: &'static str, lease: &Lease) -> Result<String, StoreError> {
        let found = self.find(operation, Kind::Run, lease.run_id.as_str()).await?;
        found.ok_or_else(|| StoreError::new(StoreErrorKind::LeaseLost, operation, "the run is not stored"))
    }

    /// Says which run a turn is of; gives its session and, of a new one, its id.
    async fn run_of(
        &self,
        operation: &'static str,
        request: &mut Request,
        run: &RunRef,
    ) -> Result<(String, Option<RunId>), StoreError> {
        match run {
            RunRef::New(new, _) => {
                request.set("new", new_run(new));
                Ok((session_digest(&new.session_id), Some(new.run_id.clone())))
            }
            RunRef::Held(lease) => {
                request.lease(lease);
                Ok((self.held(operation, lease).await?, None))
            }
        }
    }

    pub(crate) async fn open_run(&self, open: OpenRun) -> Result<Lease, StoreError> {
        const OPERATION: &str = "open";
        let OpenRun { run, driver, snapshot } = open;
        let mut request = self.request(OPERATION);
        request.set("run", new_run(&run));
        request.set("workflow", workflow(&run.workflow));
        request.driver(Some(&driver));
        let snapshot = request.payload("a snapshot", snapshot)?;
        request.set("snapshot", snapshot);
        let (digest, ids) = (session_digest(&run.session_id), ids_of(Some(&run.run_id), &[], None));
        let said = self.bring(OPERATION, &script::OPEN, &digest, &ids, request).await?;
        let read = || {
            let mut parts = Parts::of(said)?;
            Ok(Lease { run_id: run.run_id, fence: parts.next()?.count()?, until: row::time(parts.next()?)? })
        };
        read().map_err(|damage: Damage| damage.during(OPERATION))
    }

    pub(crate) async fn record_entries(&self, record: Record) -> Result<Recorded, StoreError> {
        const OPERATION: &str = "record";
        let Record { lease, entries, publish, withdraw, answers_seen } = record;
        let mut request = self.request(OPERATION);
        request.lease(&lease);
        request.seen(answers_seen);
        request.withdraw(withdraw);
        let ids = ids_of(None, &publish, None);
        let entries = entries.into_iter().map(|entry| request.payload("an entry", entry));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        request.set("entries", entries);
        request.publish(publish)?;
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
        request.set("workflow", workflow(&suspend.workflow));
        request.seen(suspend.answers_seen);
        request.withdraw(suspend.withdraw);
        let snapshot = request.payload("a snapshot", suspend.snapshot)?;
        request.set("snapshot", snapshot);
        let (digest, new) = self.run_of(OPERATION, &mut request, &suspend.run).await?;
        let ids = ids_of(new.as_ref(), &suspend.publish, suspend.checkpoint.as_ref());
        request.publish(suspend.publish)?;
        request.checkpoint(suspend.checkpoint)?;
        let said = self.bring(OPERATION, &script::SUSPEND, &digest, &ids, request).await?;
        suspended(said).map_err(|damage| damage.during(OPERATION))
    }

    pub(crate) async fn finish_run(&self, finish: Finish) -> Result<Finished, StoreError> {
        const OPERATION: &str = "finish";
        let mut request = self.request(OPERATION);
        request.set("workflow", workflow(&finish.workflow));
        request.set("status", RunStatus::from(finish.status).as_str());
        request.set("reason", finish.reason);
        request.seen(finish.answers_seen);
        let outcome = request.payload("an outcome", finish.outcome)?;
        request.set("outcome", outcome);
        let (digest, new) = self.run_of(OPERATION, &mut request, &finish.run).await?;
        let ids = ids_of(new.as_ref(), &[], finish.checkpoint.as_ref());
        request.checkpoint(finish.checkpoint)?;
        let said = self.bring(OPERATION, &script::FINISH, &digest, &ids, request).await?;
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
        let mut request = self.request(OPERATION);
        request.lease(&park.lease);
        request.set("reason", park.reason);
        let digest = self.held(OPERATION, &park.lease).await?;
        self.transition(OPERATION, &script::PARK, &digest, request).await.map(drop)
    }

    pub(crate) async fn renew_lease(&self, lease: &Lease, ttl: Duration, seen: u64) -> Result<Renewed, StoreError> {
        const OPERATION: &str = "renew";
        let mut request = self.request(OPERATION);
        request.lease(lease);
        request.set("ttl", millis(ttl));
        request.seen(seen);
        let digest = self.held(OPERATION, lease).await?;
        let said = self.transition(OPERATION, &script::RENEW, &digest, request).await?;
        let read = || {
            let mut parts = Parts::of(said)?;
            let lease = Lease { until: row::time(parts.next()?)?, ..lease.clone() };
            let answers = row::answers(parts.list()?)?;
            Ok(Renewed { lease, answers, cancel_requested: parts.next()? == Reply::Int(1) })
        };
        read().map_err(|damage: Damage| damage.during(OPERATION))
    }

    pub(crate) async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        const OPERATION: &str = "release";
        let mut request = self.request(OPERATION);
        request.lease(lease);
        let digest = self.held(OPERATION, lease).await?;
        self.transition(OPERATION, &script::RELEASE, &digest, request).await.map(drop)
    }
}

fn suspended(said: Reply) -> Reading<Suspended> {
    let mut parts = Parts::of(said)?;
    Ok(match parts.text()?.as_str() {
        "saved" => Suspended::Saved(row::questions(parts.list()?)?),
        "answered" => Suspended::Answered(row::answers(parts.list()?)?),
        "cancelled" => Suspended::Cancelled,
        "expired" => Suspended::Expired,
        other => return Err(Damage::new(format!("an unknown outcome `{other}`"))),
    })
}
