//! The workflows whose topology is reported, and what the receiver calls their revisions.

use std::{collections::HashSet, sync::Arc, time::Duration};

use bytes::Bytes;
use kortyx_protocol::json;
use kortyx_runtime::workflow::{Definition, When};
use kortyx_store::WorkflowPin;
use tokio::time::Instant;

use super::{
    StudioConfig, StudioError,
    topology::{self, Ensured},
    transport::{Deliver, Reply, Route},
};

/// The longest name of a revision that is kept, in bytes.
const LONGEST_NAME: usize = 256;

/// The workflows.
pub(super) struct Revisions {
    known: Vec<Revision>,
    /// Not before this time is the receiver asked again.
    due: Option<Instant>,
    failures: u32,
    first_wait: Duration,
    longest_wait: Duration,
}

/// One of them.
pub(super) struct Revision {
    id: Arc<str>,
    version: Arc<str>,
    pub(super) hash: Arc<str>,
    /// What the receiver calls it.
    pub(super) name: Option<Arc<str>>,
    conditions: HashSet<(Arc<str>, Arc<str>)>,
    /// The request; gone once it was answered for good.
    body: Option<Bytes>,
}

impl Revisions {
    pub(super) fn new(config: &StudioConfig) -> Result<Self, StudioError> {
        let known = config.workflows.iter().map(|definition| Revision::new(definition, config));
        let (first_wait, longest_wait) = (config.patience.first_wait, config.patience.longest_wait);
        Ok(Self { known: known.collect::<Result<_, _>>()?, due: None, failures: 0, first_wait, longest_wait })
    }

    /// The revision that a run is bound to, when its workflow is reported.
    pub(super) fn of(&self, pin: &WorkflowPin) -> Option<&Revision> {
        self.known.iter().find(|known| known.id == pin.id && known.version == pin.version)
    }

    /// Whether the workflow declares this condition on an edge of this node.
    pub(super) fn declares(&self, workflow: &str, version: &str, node: &str, condition: &str) -> bool {
        let known = self.known.iter().find(|known| &*known.id == workflow && &*known.version == version);
        known.is_some_and(|known| known.conditions.contains(&(node.into(), condition.into())))
    }

    /// Reports what is not reported yet. Events do not wait for it: after a failure it is tried again with a later batch.
    pub(super) async fn ensure(&mut self, to: &impl Deliver) {
        if self.due.is_some_and(|due| due > Instant::now()) {
            return;
        }
        for revision in &mut self.known {
            let Some(body) = revision.body.clone() else { continue };
            match to.post(Route::Revisions, body).await {
                Reply::Taken(answer) => revision.ensured(&answer),
                Reply::Refused(status) => {
                    revision.body = None;
                    let workflow = &*revision.id;
                    tracing::warn!(status, workflow, "the topology of a workflow was refused; it is not sent again");
                }
                Reply::Later { after, .. } => {
                    let wait = self.first_wait.saturating_mul(2_u32.saturating_pow(self.failures.min(16))).max(after);
                    self.failures = self.failures.saturating_add(1);
                    let now = Instant::now();
                    self.due = Some(now.checked_add(wait.min(self.longest_wait)).unwrap_or(now));
                    return;
                }
            }
        }
        (self.due, self.failures) = (None, 0);
    }
}

impl Revision {
    fn new(definition: &Definition, config: &StudioConfig) -> Result<Self, StudioError> {
        let unwritable = |_| StudioError::Topology(definition.id().to_string());
        let hash = topology::hash(definition).map_err(unwritable)?;
        let body = topology::ensure(definition, &hash, &config.environment, &config.service).map_err(unwritable)?;
        let conditions = definition.edges().filter_map(|edge| match &edge.when {
            When::Condition(condition) => Some((edge.from.clone(), condition.clone())),
            When::Always | When::Otherwise => None,
        });
        Ok(Self {
            id: definition.id().clone(),
            version: definition.version().clone(),
            hash: hash.into(),
            name: None,
            conditions: conditions.collect(),
            body: Some(body.into()),
        })
    }

    fn ensured(&mut self, answer: &[u8]) {
        self.body = None;
        let named = json::from_slice::<Ensured>(answer).ok().map(|ensured| ensured.workflow_revision_id);
        // It goes along with every event.
        self.name = named.filter(|name| name.len() <= LONGEST_NAME);
        if self.name.is_none() {
            tracing::warn!("the receiver of a topology did not say, in a few words, what it calls the revision");
        }
    }
}

#[cfg(test)]
mod tests {
    use kortyx_runtime::{NodeContext, NodeOutput, NodeResult, Workflow};

    use super::*;

    /// Answers with this.
    struct Receiver(Reply);

    impl Deliver for Receiver {
        async fn post(&self, _: Route, _: Bytes) -> Reply {
            self.0.clone()
        }
    }

    async fn nothing(_: NodeContext) -> NodeResult {
        Ok(NodeOutput::new())
    }

    async fn ensured(answer: Reply) -> Revisions {
        let workflow = Workflow::builder("w").node("n", nothing).build().unwrap();
        let config = StudioConfig::new("http://localhost", "key", "test", "desk").unwrap().workflow(&workflow);
        let config = config.retries(3, Duration::from_secs(1), Duration::MAX);
        let mut revisions = Revisions::new(&config).unwrap();
        revisions.ensure(&Receiver(answer)).await;
        revisions
    }

    #[tokio::test]
    async fn a_name_that_is_no_name_is_not_kept() {
        let answer = |length| Reply::Taken(format!(r#"{{"workflowRevisionId":"{}"}}"#, "x".repeat(length)).into());
        assert!(ensured(answer(256)).await.known[0].name.is_some());
        assert!(ensured(answer(257)).await.known[0].name.is_none());
    }

    #[tokio::test]
    async fn no_wait_that_a_receiver_asks_for_is_too_long_to_be_counted() {
        let revisions = ensured(Reply::Later { after: Duration::MAX, why: String::new() }).await;
        assert!(revisions.due.is_some() && revisions.known[0].body.is_some());
    }
}
