//! What retention allows to go, in bounded batches.

use kortyx_store::{Pruned, Retention, StoreError};

use crate::{
    call::Entry,
    encode::millis,
    names::Kind,
    reply::{Damage, Parts},
    script,
    store::RedisStore,
};

const OPERATION: &str = "prune";

/// How much may still be removed, and what was.
struct Batch {
    room: u64,
    pruned: Pruned,
}

impl Batch {
    /// How many candidates to look for: one more than there is room for tells whether more is left.
    fn candidates(&self) -> usize {
        usize::try_from(self.room.saturating_add(1)).unwrap_or(usize::MAX)
    }

    /// Whether there is room; without any, notes that more is left.
    fn has_room(&mut self) -> bool {
        self.pruned.more |= self.room == 0;
        self.room > 0
    }
}

/// A reason why checkpoints or a session go.
struct Reason {
    what: &'static str,
    age: u64,
    keep: u32,
}

impl RedisStore {
    pub(crate) async fn prune_batch(&self, retention: &Retention, limit: u32) -> Result<Pruned, StoreError> {
        let mut batch = Batch { room: limit.into(), pruned: Pruned::default() };
        self.prune_runs(millis(retention.finished_runs), &mut batch).await?;
        let by_age = |what, age| Reason { what, age: millis(age), keep: 0 };
        self.prune_sessions(&by_age("idle", retention.idle_sessions), &mut batch).await?;
        let keep = retention.checkpoints_per_session.max(1);
        self.prune_sessions(&Reason { what: "crowd", age: 0, keep }, &mut batch).await?;
        self.prune_sessions(&by_age("aged", retention.checkpoint_age), &mut batch).await?;
        Ok(batch.pruned)
    }

    async fn prune_runs(&self, age: u64, batch: &mut Batch) -> Result<(), StoreError> {
        let index = self.names.index("ended");
        let members = self.due(OPERATION, &index, age, batch.candidates()).await?;
        for entry in members.into_iter().filter_map(Entry::of_stamped) {
            if !batch.has_room() {
                break;
            }
            let Some(run_id) = entry.run_id() else { continue };
            let mut request = self.request(OPERATION);
            request.set("run", run_id);
            request.set("index", index.as_str());
            request.set("member", entry.member.as_str());
            request.set("age", age);
            let said = self.transition(OPERATION, &script::PRUNE_RUN, &entry.digest, request).await?;
            let code = Parts::of(said).and_then(|mut parts| parts.text()).map_err(|damage| damage.during(OPERATION))?;
            if code == "removed" {
                batch.room -= 1;
                batch.pruned.runs += 1;
                self.memory.forget(Kind::Run, run_id);
            }
        }
        Ok(())
    }

    async fn prune_sessions(&self, reason: &Reason, batch: &mut Batch) -> Result<(), StoreError> {
        let index = self.names.index(reason.what);
        let members = match reason.what {
            "crowd" => self.highest(OPERATION, &index, u64::from(reason.keep) + 1, batch.candidates()).await?,
            _ => self.due(OPERATION, &index, reason.age, batch.candidates()).await?,
        };
        for entry in members.into_iter().filter_map(Entry::of_session) {
            if !batch.has_room() {
                break;
            }
            let mut request = self.request(OPERATION);
            request.set("what", reason.what);
            request.set("index", index.as_str());
            request.set("member", entry.member.as_str());
            request.set("room", batch.room);
            request.set("age", reason.age);
            request.set("keep", reason.keep);
            let said = self.transition(OPERATION, &script::PRUNE_SESSION, &entry.digest, request).await?;
            let read = || {
                let mut parts = Parts::of(said)?;
                Ok((parts.next()?.count()?, parts.next()?.count()?, parts.next()?.count()?))
            };
            let (checkpoints, sessions, more) = read().map_err(|damage: Damage| damage.during(OPERATION))?;
            batch.room = batch.room.saturating_sub(checkpoints + sessions);
            batch.pruned.checkpoints += checkpoints;
            batch.pruned.sessions += sessions;
            batch.pruned.more |= more == 1;
        }
        Ok(())
    }
}
