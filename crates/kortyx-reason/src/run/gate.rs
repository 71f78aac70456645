//! Whether a call waits for a person, and the question.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use kortyx_contracts::{AskExt as _, BoxAsk};
use serde_json::Value;

use super::{
    ASK_FIRST, Reasoning,
    deliver::RETURNED_TOO_EARLY,
    record::{Gate, Plan, Planned},
};
use crate::{ReasonError, tool::approval_question};

/// What a call waits for.
pub(super) enum Waits {
    /// Nobody.
    No,
    /// Nobody: it is refused.
    Refused(&'static str),
    /// A person's approval.
    Approval,
    /// A person's answer to a contract.
    Answer,
}

impl Waits {
    pub(super) fn is_person(&self) -> bool {
        matches!(self, Self::Approval | Self::Answer)
    }
}

impl<T> Reasoning<'_, T> {
    /// What each call of a turn waits for.
    pub(super) async fn waits(&self, calls: &[Planned]) -> Result<Vec<Waits>, ReasonError> {
        let mut waits = Vec::with_capacity(calls.len());
        let mut questions = self.max_requests().saturating_sub(self.asked);
        for planned in calls {
            waits.push(match &planned.plan {
                Plan::Return(_) if waits.iter().any(Waits::is_person) => Waits::Refused(RETURNED_TOO_EARLY),
                Plan::Return(_) if self.has_yet_to_ask() => Waits::Refused(ASK_FIRST),
                Plan::Refuse { .. } | Plan::Emit(_) | Plan::Return(_) => Waits::No,
                Plan::Rejected { .. } => {
                    Waits::Refused("A person has rejected this very call. Do not repeat it; go on without it.")
                }
                Plan::Ask { .. } if questions == 0 => Waits::Refused("No more questions may be asked."),
                Plan::Ask { .. } => {
                    questions = questions.saturating_sub(1);
                    Waits::Answer
                }
                Plan::Run { arguments, gate, .. } => self.gate(planned, arguments, *gate).await?,
            });
        }
        Ok(waits)
    }

    async fn gate(&self, planned: &Planned, arguments: &Value, gate: Gate) -> Result<Waits, ReasonError> {
        let needed = match gate {
            Gate::Open => false,
            Gate::Ask => true,
            Gate::Decide => self.decided(planned, arguments).await?,
        };
        Ok(if needed { Waits::Approval } else { Waits::No })
    }

    /// The tool's own judgement, once for each call. Whoever cannot judge asks.
    async fn decided(&self, planned: &Planned, arguments: &Value) -> Result<bool, ReasonError> {
        let Some(tool) = self.reason.find_tool(&planned.call.tool) else {
            return self.park(&format!("the tool `{}`", planned.call.tool)).await;
        };
        let id = format!("{}/gate/{}", self.scope, planned.call.id);
        let judged = self.ctx.step(&id, move || async move {
            let needs = AssertUnwindSafe(async move { tool.needs_approval(arguments).await }).catch_unwind();
            Ok::<_, ReasonError>(needs.await.unwrap_or(true))
        });
        Ok(judged.await?)
    }

    /// The question that a call waits for, with its id.
    pub(super) async fn question(&self, planned: &Planned) -> Result<(String, BoxAsk<Value>), ReasonError> {
        let call = &planned.call;
        match &planned.plan {
            Plan::Ask { contract, request } => {
                let asked = self.reason.interrupts.as_ref().and_then(|asking| asking.ask(contract, request));
                let Some(ask) = asked else { return self.park(&format!("the contract `{contract}`")).await };
                Ok((format!("{}/ask/{}", self.scope, call.id), ask))
            }
            Plan::Run { arguments, digest, .. } => {
                let Some(tool) = self.reason.find_tool(&call.tool) else {
                    return self.park(&format!("the tool `{}`", call.tool)).await;
                };
                let schema = tool.parameters().map_err(ReasonError::Definition)?;
                let ask = approval_question(&**tool, &schema, &call.id, arguments, digest);
                let ask = match tool.policy().approval_expires_in {
                    Some(time) => ask.expires_in(time).boxed(),
                    None => ask.boxed(),
                };
                Ok((format!("{}/approve/{}", self.scope, call.id), ask))
            }
            Plan::Emit(_) | Plan::Return(_) | Plan::Refuse { .. } | Plan::Rejected { .. } => {
                Err(ReasonError::Definition("a call that waits for nobody asks nothing".into()))
            }
        }
    }
}
