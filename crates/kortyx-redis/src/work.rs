//! What workers look for: runs whose driver is gone, and questions past their time.
//!
//! Indexes name candidates; the session of each decides.

use std::collections::HashMap;

use futures_util::future::try_join_all;
use kortyx_protocol::{RunId, Timestamp};
use kortyx_store::{ClaimRequest, Claimed, Driver, ExpireRequest, ExpiredBatch, StoreError, WorkflowPin};
use serde_json::{Map, Value, json};

use crate::{
    call::Entry,
    names::{Kind, pin_digest},
    reply::{Damage, Parts, Reading, Reply},
    row, script,
    store::RedisStore,
};

const CLAIM: &str = "claim orphans";
const EXPIRE: &str = "expire due";
/// How many candidates of a definition are put in the order of their age.
const CANDIDATES: usize = 1_000;
/// How many runs are claimed at a time.
const AT_ONCE: usize = 32;
/// When a run whose lease was extended is looked at again, at the latest, in milliseconds.
const RECHECK: u64 = 30_000;

impl RedisStore {
    pub(crate) async fn claim(&self, claim: ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
        let limit = usize::try_from(claim.limit).unwrap_or(usize::MAX);
        let mut claimed = Vec::new();
        if limit == 0 || claim.workflows.is_empty() {
            return Ok(claimed);
        }
        self.repair_step(CLAIM).await;
        self.claim_from("lease", &claim, None, limit, &mut claimed).await?;
        if claim.parked_before.is_some() {
            self.claim_from("parked", &claim, claim.parked_before, limit, &mut claimed).await?;
        }
        Ok(claimed)
    }

    /// Claims from one kind of index, over all definitions, until there are enough.
    async fn claim_from(
        &self,
        kind: &str,
        claim: &ClaimRequest,
        before: Option<Timestamp>,
        limit: usize,
        claimed: &mut Vec<Claimed>,
    ) -> Result<(), StoreError> {
        let indexes = claim.workflows.iter().map(|pin| self.names.index(&format!("{kind}:{}", pin_digest(pin))));
        let found = indexes.map(|index| async move {
            let members = self.due(CLAIM, &index, 0, CANDIDATES).await?;
            let entries = members.into_iter().filter_map(Entry::of_stamped);
            Ok::<_, StoreError>(entries.map(|entry| (index.clone(), entry)).collect::<Vec<_>>())
        });
        let mut candidates: Vec<_> = try_join_all(found).await?.into_iter().flatten().collect();
        candidates.sort_by(|(_, a), (_, b)| a.member.cmp(&b.member));
        candidates.dedup_by(|(_, a), (_, b)| a.member == b.member);
        let mut candidates = candidates.into_iter();
        while claimed.len() < limit {
            let room = (limit - claimed.len()).min(AT_ONCE);
            let some: Vec<_> = candidates.by_ref().take(room).collect();
            if some.is_empty() {
                break;
            }
            let claims = some.iter().map(|(index, entry)| self.claim_one(index, entry, &claim.driver, before));
            claimed.extend(try_join_all(claims).await?.into_iter().flatten());
        }
        Ok(())
    }

    async fn claim_one(
        &self,
        index: &str,
        entry: &Entry,
        driver: &Driver,
        before: Option<Timestamp>,
    ) -> Result<Option<Claimed>, StoreError> {
        let Some(run_id) = entry.run_id() else { return Ok(None) };
        let mut request = self.request(CLAIM);
        request.set("run", run_id);
        request.set("index", index);
        request.set("member", entry.member.as_str());
        request.set("parked_before", before.unwrap_or(Timestamp::MIN).as_millis());
        request.set("recheck", RECHECK);
        request.driver(driver);
        let said = self.transition(CLAIM, &script::CLAIM, &entry.digest, request).await?;
        let read = || {
            let mut parts = Parts::of(said)?;
            if parts.text()? != "claimed" {
                return Ok(None);
            }
            row::claimed(parts.next()?).map(Some)
        };
        let claimed = read().map_err(|damage: Damage| damage.during(CLAIM))?;
        if claimed.is_some() {
            self.memory.put(Kind::Run, run_id, &entry.digest);
        }
        Ok(claimed)
    }

    pub(crate) async fn expire(&self, expire: ExpireRequest) -> Result<ExpiredBatch, StoreError> {
        let limit = usize::try_from(expire.limit).unwrap_or(usize::MAX);
        let index = self.names.index("due");
        let mut members = self.due(EXPIRE, &index, 0, limit.saturating_add(1)).await?;
        let more = members.len() > limit;
        members.truncate(limit);
        let order: HashMap<_, _> = members.iter().enumerate().map(|(place, member)| (member.clone(), place)).collect();
        let mut sessions: Vec<(String, Vec<Entry>)> = Vec::new();
        for entry in members.into_iter().filter_map(Entry::of_stamped) {
            match sessions.iter_mut().find(|(digest, _)| *digest == entry.digest) {
                Some((_, entries)) => entries.push(entry),
                None => sessions.push((entry.digest.clone(), vec![entry])),
            }
        }
        let expired = sessions.iter().map(|(digest, due)| self.expire_in(&index, digest, due, &expire));
        let mut batch = ExpiredBatch { more, ..ExpiredBatch::default() };
        for part in try_join_all(expired).await? {
            batch.interrupts.extend(part.interrupts);
            batch.ended.extend(part.ended);
            batch.claimed.extend(part.claimed);
        }
        let places: HashMap<_, _> = sessions
            .iter()
            .flat_map(|(_, due)| due)
            .filter_map(|entry| Some((entry.question()?.0, order.get(&entry.member)?)))
            .collect();
        batch.interrupts.sort_by_key(|question| places.get(question.request_id.as_str()).copied());
        Ok(batch)
    }

    /// Closes the questions of one session that are due.
    async fn expire_in(
        &self,
        index: &str,
        digest: &str,
        due: &[Entry],
        expire: &ExpireRequest,
    ) -> Result<ExpiredBatch, StoreError> {
        let mut request = self.request(EXPIRE);
        let due = due.iter().filter_map(|entry| {
            let (id, run) = entry.question()?;
            Some(json!({ "id": id, "run": run, "member": entry.member }))
        });
        let due: Vec<_> = due.collect();
        request.set("due", due);
        request.set("index", index);
        request.set("pins", pins(&expire.workflows));
        request.driver(&expire.driver);
        let said = self.transition(EXPIRE, &script::EXPIRE, digest, request).await?;
        let batch = expired(said).map_err(|damage| damage.during(EXPIRE))?;
        for claimed in &batch.claimed {
            self.memory.put(Kind::Run, claimed.run.run_id.as_str(), digest);
        }
        Ok(batch)
    }
}

/// Definitions as a script looks them up.
fn pins(workflows: &[WorkflowPin]) -> Value {
    Value::Object(workflows.iter().map(|pin| (pin_digest(pin), Value::from(1))).collect::<Map<_, _>>())
}

fn expired(said: Reply) -> Reading<ExpiredBatch> {
    let mut parts = Parts::of(said)?;
    let interrupts = row::questions(parts.list()?)?;
    let ended = parts.list()?.into_iter().map(|id| {
        let id = Parts::of(id)?.text()?;
        RunId::new(id).map_err(|_| Damage::new("a run's id does not read back"))
    });
    let ended = ended.collect::<Reading<_>>()?;
    let claimed = parts.list()?.into_iter().map(row::claimed).collect::<Reading<_>>()?;
    Ok(ExpiredBatch { interrupts, ended, claimed, more: false })
}
