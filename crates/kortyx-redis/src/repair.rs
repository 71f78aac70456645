//! Repair: what indexes and locators should say is said again, session by session.

use std::{collections::BTreeMap, sync::PoisonError};

use bytes::Bytes;
use kortyx_store::StoreError;

use crate::{
    client::Node,
    reply::{Damage, Parts, Reading, Reply},
    script,
    store::RedisStore,
};

/// How many keys one step looks at.
const STEP: usize = 100;

/// What a repair went over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// Sessions.
    pub sessions: u64,
    /// Runs.
    pub runs: u64,
    /// Questions.
    pub questions: u64,
    /// Checkpoints.
    pub checkpoints: u64,
}

/// How far the steps of this process have come: servers still to visit, and where in the last of them.
#[derive(Default)]
pub(crate) struct Progress {
    nodes: Vec<Node>,
    cursor: Option<String>,
}

impl RedisStore {
    /// Goes over every session and says again what indexes and locators should say of it.
    ///
    /// Workers do this by themselves, a little with every
    /// [`claim_orphans`](kortyx_store::Store::claim_orphans); call it after keys were lost or a backup was restored, when
    /// waiting is no choice. It changes no run, question or checkpoint, and may run at any time.
    pub async fn repair(&self) -> Result<Repaired, StoreError> {
        const OPERATION: &str = "repair";
        let mut repaired = Repaired::default();
        for node in self.client(OPERATION)?.nodes() {
            let mut cursor = "0".to_owned();
            loop {
                cursor = self.repair_from(OPERATION, &node, cursor, &mut repaired).await?;
                if cursor == "0" {
                    break;
                }
            }
        }
        Ok(repaired)
    }

    /// Does a little of it; what fails is tried again in the next round.
    pub(crate) async fn repair_step(&self, operation: &'static str) {
        let Ok(client) = self.client(operation) else { return };
        let taken = std::mem::take(&mut *self.progress.lock().unwrap_or_else(PoisonError::into_inner));
        let Progress { mut nodes, cursor } = taken;
        if nodes.is_empty() {
            nodes = client.nodes();
        }
        let Some(node) = nodes.last().cloned() else { return };
        let from = cursor.unwrap_or_else(|| "0".to_owned());
        let next = match self.repair_from(operation, &node, from, &mut Repaired::default()).await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(operation, %error, "a step of repair failed; the next round tries again");
                "0".to_owned()
            }
        };
        let cursor = if next == "0" {
            nodes.pop();
            None
        } else {
            Some(next)
        };
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Progress { nodes, cursor };
    }

    /// The next keys of a server that have such a name, and where to go on, `0` at the end. A key may come twice.
    pub(crate) async fn scan(
        &self,
        operation: &'static str,
        node: &Node,
        (cursor, pattern, step): (String, &str, usize),
    ) -> Result<(String, Vec<String>), StoreError> {
        let step = step.to_string();
        let args = [cursor.as_str(), "MATCH", pattern, "COUNT", step.as_str()];
        let args = args.iter().map(|arg| Bytes::from((*arg).to_owned())).collect();
        let reply = self.client(operation)?.on_node(operation, node, "SCAN", args).await?;
        let read = || -> Reading<_> {
            let mut parts = Parts::of(reply)?;
            let next = parts.text()?;
            Ok((next, parts.list()?.into_iter().map(Reply::text).collect::<Reading<Vec<_>>>()?))
        };
        read().map_err(|damage| damage.during(operation))
    }

    /// Repairs the sessions among the next keys of a server; gives where to go on, `0` at the end.
    async fn repair_from(
        &self,
        operation: &'static str,
        node: &Node,
        cursor: String,
        repaired: &mut Repaired,
    ) -> Result<String, StoreError> {
        let (next, keys) = self.scan(operation, node, (cursor, &self.names.any_repairable(), STEP)).await?;
        let mut sessions: BTreeMap<&str, (Vec<&str>, bool)> = BTreeMap::new();
        for (digest, run) in keys.iter().filter_map(|key| self.names.repairable(key)) {
            let (runs, turns) = sessions.entry(digest).or_default();
            *turns |= run.is_none();
            runs.extend(run);
        }
        for (digest, (runs, turns)) in sessions {
            let mut request = self.request(operation);
            request.set("runs", runs.as_slice());
            request.set("turns", turns);
            let said = self.read(operation, &script::REPAIR, digest, request).await?;
            let counts = || {
                let mut parts = Parts::of(said)?;
                Ok((parts.next()?.count()?, parts.next()?.count()?))
            };
            let (questions, checkpoints) = counts().map_err(|damage: Damage| damage.during(operation))?;
            repaired.sessions += u64::from(turns);
            repaired.runs += u64::try_from(runs.len()).unwrap_or(u64::MAX);
            repaired.questions += questions;
            repaired.checkpoints += checkpoints;
        }
        Ok(next)
    }
}
