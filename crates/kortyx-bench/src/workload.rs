//! The cycle: start a run of one node that asks, answer it, finish; with 1 kB of state over the pause, or 16 kB.

use std::sync::Arc;

use kortyx_contracts::Choice;
use kortyx_orchestrator::{Agent, ExecuteOptions, TelemetrySink};
use kortyx_protocol::{ExecutionResult, ResumeHandle, ResumeResponse};
use kortyx_runtime::{NodeContext, NodeOutput, NodeResult, Workflow};
use kortyx_store::Store;
use serde_json::{Value, json};

use crate::error::Error;

/// How much state is carried over the pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// 1 kB.
    Small,
    /// 16 kB.
    Large,
}

impl Size {
    pub(crate) const ALL: [Self; 2] = [Self::Small, Self::Large];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Small => "1 kB",
            Self::Large => "16 kB",
        }
    }

    /// The bytes of the state's long text.
    fn text(self) -> usize {
        match self {
            Self::Small => 840,
            Self::Large => 15_840,
        }
    }
}

/// An agent with the workflow of the cycle.
#[derive(Clone)]
pub(crate) struct Workload {
    agent: Agent,
    workflow: Workflow,
    state: Value,
}

impl Workload {
    /// Over this store, without a worker: the state is carried over the pause.
    pub(crate) async fn over(store: Arc<dyn Store>) -> Result<Self, Error> {
        Self::sized(Size::Small, store).await
    }

    /// The same with so much state.
    pub(crate) async fn sized(size: Size, store: Arc<dyn Store>) -> Result<Self, Error> {
        Self::of(workflow()?, store, size).await
    }

    /// The same, and the node puts the state into the run's data, which is stored at its end and returned.
    pub(crate) async fn returning_over(store: Arc<dyn Store>) -> Result<Self, Error> {
        Self::of(Workflow::builder("review").node("approve", approve_and_return).build()?, store, Size::Small).await
    }

    /// The same, and this sink is told what happens.
    pub(crate) async fn telling(store: Arc<dyn Store>, sink: impl TelemetrySink) -> Result<Self, Error> {
        let workflow = workflow()?;
        let agent = Agent::builder().workflow(&workflow).shared_store(store).telemetry(sink).without_worker();
        Ok(Self { agent: agent.build().await?, workflow, state: state() })
    }

    async fn of(workflow: Workflow, store: Arc<dyn Store>, size: Size) -> Result<Self, Error> {
        let agent = Agent::builder().workflow(&workflow).shared_store(store).without_worker().build().await?;
        Ok(Self { agent, workflow, state: state_of(size) })
    }

    /// A whole run, from its start over its question and the answer to its end.
    pub(crate) async fn cycle(&self) -> Result<(), Error> {
        let handle = self.pause().await?;
        self.answer(&handle).await
    }

    /// Starts a run, which asks.
    pub(crate) async fn pause(&self) -> Result<ResumeHandle, Error> {
        let result = self.agent.execute(&self.workflow, self.state.clone(), ExecuteOptions::new()).await?;
        match result {
            ExecutionResult::Suspended { mut interrupts, .. } if interrupts.len() == 1 => {
                let asked = interrupts.pop().ok_or_else(|| Error::unexpected("a run asks nothing"))?;
                Ok(asked.resume)
            }
            other => Err(Error::unexpected(format!("a run must wait with one question, not: {other:?}"))),
        }
    }

    /// Answers, which ends the run.
    pub(crate) async fn answer(&self, handle: &ResumeHandle) -> Result<(), Error> {
        match self.agent.resume(handle, answer()).await? {
            ExecutionResult::Completed { .. } => Ok(()),
            other => Err(Error::unexpected(format!("a run must complete, not: {other:?}"))),
        }
    }
}

/// A workflow of one node, which asks.
pub(crate) fn workflow() -> Result<Workflow, Error> {
    Ok(Workflow::builder("review").node("approve", approve).build()?)
}

async fn approve(ctx: NodeContext) -> NodeResult {
    let decision = ctx.interrupt("approval", ask()).await?;
    Ok(NodeOutput::new().data("decision", &decision))
}

async fn approve_and_return(ctx: NodeContext) -> NodeResult {
    let decision = ctx.interrupt("approval", ask()).await?;
    let draft: Value = ctx.input()?;
    Ok(NodeOutput::new().data("draft", &draft).data("decision", &decision))
}

fn ask() -> Choice {
    Choice::new("Approve this draft?").option("approve", "Approve").option("revise", "Revise")
}

/// What the person answers.
pub(crate) fn answer() -> ResumeResponse {
    ResumeResponse::select(["approve"])
}

/// 1 kB of state, as JSON.
pub(crate) fn state() -> Value {
    state_of(Size::Small)
}

fn state_of(size: Size) -> Value {
    json!({
        "title": "Announcement of the spring release",
        "author": { "id": 4711, "name": "Ann Example" },
        "tags": ["release", "spring", "draft"],
        "urgent": false,
        "body": text(size.text()),
        "footer": "Sent to all subscribers."
    })
}

/// Words and numbers in no order, always the same: a text that repeats itself would flatter a store that compresses.
fn text(length: usize) -> String {
    let words: Vec<&str> = WORDS.split_ascii_whitespace().collect();
    let mut text = String::with_capacity(length + WORDS.len());
    let mut state = 1_u32;
    while text.len() < length {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let number = usize::try_from(state >> 12).unwrap_or_default();
        match words.get(number % (words.len() + words.len() / 5)) {
            Some(word) => text.push_str(word),
            None => text.push_str(&number.to_string()),
        }
        text.push(' ');
    }
    text.truncate(length);
    text
}

const WORDS: &str = "the of and to a in is it you that he was for on are with as his they be at one have this from or had by \
    hot but some what there we can out other were all your when up use word how said an each she which do their time if will \
    way about many then them would write like so these her long make thing see him two has look more day could go come did my \
    sound no most number who over know water than call first people may down side been now find any new work part take get \
    place made live where after back little only round man year came show every good me give our under name very through just \
    form much great think say help low line before turn cause same mean differ move right boy old too does tell sentence set";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_1_kb_or_16_kb() {
        let sizes = Size::ALL.map(|size| state_of(size).to_string().len());

        assert!((1000..=1050).contains(&sizes[0]) && (16_000..=16_050).contains(&sizes[1]), "{sizes:?}");
    }

    /// The size of what is stored at the end of a cycle.
    async fn outcome(store: Arc<dyn Store>, workload: Workload) -> usize {
        let handle = workload.pause().await.unwrap();
        let waiting = store.run(&handle.run_id).await.unwrap().unwrap();
        workload.answer(&handle).await.unwrap();
        let ended = store.run(&handle.run_id).await.unwrap().unwrap();
        assert_eq!((waiting.status.as_str(), ended.status.as_str()), ("suspended", "completed"));
        ended.outcome.unwrap().len()
    }

    #[tokio::test]
    async fn a_cycle_pauses_and_completes_with_the_state_in_its_data_or_without() {
        let store: Arc<dyn Store> = Arc::new(kortyx_memory::MemoryStore::new());

        let carried = outcome(store.clone(), Workload::over(store.clone()).await.unwrap()).await;
        let returned = outcome(store.clone(), Workload::returning_over(store.clone()).await.unwrap()).await;

        assert!(carried < 200 && returned > 1000, "{carried} {returned}");
    }
}
