//! What a fresh turn takes over from the conversation that it belongs to.

use std::sync::Arc;

use kortyx_protocol::SessionId;
use kortyx_runtime::workflow::{Definition, DefinitionPin};
use kortyx_store::{CancelTarget, InterruptQuery, Scope, TurnRef};
use serde_json::{Map, Value};

use super::turn::Turn;
use crate::{
    OrchestratorError, WaitingPolicy,
    driver::pin,
    execute::scalars,
    session::{Head, SessionState, value},
};

impl Turn {
    /// What the application attaches to a fresh turn's run. What a scope is compared with is part of it, and wins.
    pub(super) fn context(&self) -> Map<String, Value> {
        let mut context = self.options.context.clone();
        context.extend(self.options.scope.context.iter().map(|(key, scalar)| (key.clone(), value(scalar))));
        context
    }

    /// What a fresh turn begins from: its workflow, and the state of its session, which is started when it is new, with the turn
    /// that it follows.
    pub(super) async fn begin_from(
        &self,
        session_id: &SessionId,
        context: &Map<String, Value>,
    ) -> Result<(Arc<Definition>, SessionState, Option<TurnRef>), OrchestratorError> {
        let scope = &self.options.scope;
        let head = self.agent.session_head(session_id, scope).await?;
        let definition = self.workflow(head.as_ref())?;
        self.heed_waiting(session_id).await?;
        if let Some(head) = head {
            return Ok((definition, head.state, Some(head.turn)));
        }
        let workflow = pin(&DefinitionPin::of(&definition));
        if self.agent.start_session(session_id, &workflow, &scalars(context)).await? {
            // Nobody takes back the first checkpoint.
            return Ok((definition, SessionState::default(), None));
        }
        // Another first turn was faster, and may have ended already.
        let head = self.agent.session_head(session_id, scope).await?;
        let definition = self.workflow(head.as_ref())?;
        let (state, turn) = head.map(|head| (head.state, head.turn)).unzip();
        Ok((definition, state.unwrap_or_default(), turn))
    }

    /// The workflow that the request names, or the one in force in the session, or the agent's default one.
    fn workflow(&self, head: Option<&Head>) -> Result<Arc<Definition>, OrchestratorError> {
        let in_force = head.map(|head| &head.workflow);
        let named = self.options.workflow_id.as_ref().or(in_force);
        if let Some(id) = named.or(self.agent.settings.default_workflow.as_ref()) {
            return self.agent.find(id, None);
        }
        match self.agent.engine.registry().ids().as_slice() {
            [id] => self.agent.find(id, None),
            _ => Err(OrchestratorError::UnknownWorkflow("of a turn that names none".to_owned())),
        }
    }

    /// Does what the agent does with runs of the session that wait.
    async fn heed_waiting(&self, session_id: &SessionId) -> Result<(), OrchestratorError> {
        let policy = self.agent.settings.waiting;
        if policy == WaitingPolicy::StartNew {
            return Ok(());
        }
        let mut scope = Scope::session(session_id.clone());
        scope.context.clone_from(&self.options.scope.context);
        // The conversation does not wait for what a run asks after its response.
        let query = InterruptQuery { scope, after_response_completed: Some(false), ..InterruptQuery::default() };
        let open = self.agent.all_interrupts(query).await?;
        if policy == WaitingPolicy::Refuse && !open.is_empty() {
            return Err(OrchestratorError::Waiting);
        }
        let mut runs: Vec<_> = open.into_iter().map(|record| record.run_id).collect();
        runs.dedup();
        for run_id in runs {
            let reason = Some("superseded by a new message".to_owned());
            self.agent.cancel(CancelTarget::Run(run_id), None, reason).await?;
        }
        Ok(())
    }
}
