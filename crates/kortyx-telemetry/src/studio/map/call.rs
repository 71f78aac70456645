//! Nodes, steps, children, models and tools.

use std::sync::Arc;

use kortyx_orchestrator::{Correlation, End, Fact, ModelName, Visit};

use super::{
    Mapper, Told, above,
    span::{Key, Placed, Sort},
};
use crate::{
    event::{
        GenerationCompleted, Payload, SpanEnded, SpanFailed, SpanKind, SpanStarted, ToolCompleted, ToolFailed,
        ToolStarted, TransitionKind, WorkflowTransitioned,
    },
    studio::{counts::Counts, queue::Noted, revision::Revisions},
};

impl Mapper {
    pub(super) fn of_node(&mut self, noted: &Noted, revisions: &Revisions, counts: &Counts) -> Option<Told> {
        match &noted.fact {
            Fact::NodeEntered { about, visit } => {
                let mut started = SpanStarted::new(SpanKind::Node, &*visit.node);
                (started.resumed, started.activation) = (visit.again, Some(visit.activation));
                started.attempt = Some(visit.attempt);
                let placed = self.spans.begin(Key::node(about, visit), Some(&above(about, visit)), noted);
                Some(Told { payload: Payload::SpanStarted(started), placed })
            }
            Fact::NodeLeft { about, visit, end, retries, output } => {
                let (placed, duration_ms) = self.spans.end(&Key::node(about, visit), noted);
                let (activation, attempt) = (Some(visit.activation), Some(visit.attempt));
                let payload = if let End::Failed(code) = end {
                    let failed = SpanFailed::new(SpanKind::Node, &*visit.node, code.as_str());
                    Payload::SpanFailed(SpanFailed { retries: *retries, duration_ms, activation, attempt, ..failed })
                } else {
                    let ended = SpanEnded::new(SpanKind::Node, &*visit.node, end.as_str());
                    let output = self.content.output(output.as_ref(), counts);
                    Payload::SpanEnded(SpanEnded { duration_ms, activation, attempt, output, ..ended })
                };
                Some(Told { payload, placed })
            }
            Fact::WorkflowTransitioned { about, visit, to, condition } => {
                let declared =
                    |condition: &&String| revisions.declares(&visit.workflow, &visit.version, &visit.node, condition);
                let mut transitioned = transition(TransitionKind::Edge, visit);
                transitioned.to_node_id = to.as_deref().map(str::to_owned);
                transitioned.condition = condition.as_ref().filter(declared).cloned();
                Some(self.transitioned(about, visit, transitioned))
            }
            Fact::WorkflowHandedOff { about, visit, workflow, version } => {
                let mut transitioned = transition(TransitionKind::Handoff, visit);
                transitioned.to_workflow_id = Some(workflow.to_string());
                transitioned.to_workflow_version = Some(version.to_string());
                Some(self.transitioned(about, visit, transitioned))
            }
            _ => None,
        }
    }

    fn transitioned(&self, about: &Correlation, visit: &Visit, transitioned: WorkflowTransitioned) -> Told {
        let placed = self.spans.within(&above(about, visit));
        Told { payload: Payload::WorkflowTransitioned(transitioned), placed }
    }

    pub(super) fn of_call(&mut self, noted: &Noted, counts: &Counts) -> Option<Told> {
        match &noted.fact {
            Fact::StepStarted { about, visit, call } => {
                let started = SpanStarted::new(SpanKind::Step, &*call.id);
                let started = SpanStarted { occurrence: Some(call.occurrence), ..started };
                Some(self.started(noted, about, visit, Sort::Step, (&call.id, call.occurrence), started))
            }
            Fact::StepEnded { about, visit, call, end, output } => {
                let output = self.content.output(output.as_ref(), counts);
                let mut ended = SpanEnded::new(SpanKind::Step, &*call.id, end.as_str());
                (ended.occurrence, ended.output) = (Some(call.occurrence), output);
                Some(self.ended(noted, about, visit, Sort::Step, (&call.id, call.occurrence), *end, ended))
            }
            Fact::ChildStarted { about, visit, call, workflow, again, input, .. } => {
                let mut started = SpanStarted::new(SpanKind::Child, &**workflow);
                (started.resumed, started.call_id) = (*again, Some(call.id.to_string()));
                started.occurrence = Some(call.occurrence);
                started.input = self.content.input(input.as_ref(), counts);
                Some(self.started(noted, about, visit, Sort::Child, (&call.id, call.occurrence), started))
            }
            Fact::ChildEnded { about, visit, call, workflow, end, output, .. } => {
                let mut ended = SpanEnded::new(SpanKind::Child, &**workflow, end.as_str());
                (ended.call_id, ended.occurrence) = (Some(call.id.to_string()), Some(call.occurrence));
                ended.output = self.content.output(output.as_ref(), counts);
                Some(self.ended(noted, about, visit, Sort::Child, (&call.id, call.occurrence), *end, ended))
            }
            _ => self.of_model(noted, counts).or_else(|| self.of_tool(noted, counts)),
        }
    }

    fn of_model(&mut self, noted: &Noted, counts: &Counts) -> Option<Told> {
        match &noted.fact {
            Fact::ModelStarted { about, visit, step, model, input } => {
                let mut started = SpanStarted::new(SpanKind::Generation, &*model.model);
                (started.call_id, started.provider) = (Some(step.clone()), provider(model));
                started.input = self.content.input(input.as_ref(), counts);
                Some(self.started(noted, about, visit, Sort::Generation, (step, 0), started))
            }
            Fact::ModelEnded { about, visit, step, model, end: End::Completed, usage, finish, tool_calls, output } => {
                let key = Key::call(about, visit.activation, Sort::Generation, step, 0);
                let (placed, duration_ms) = self.spans.end(&key, noted);
                let completed = GenerationCompleted {
                    model: model.model.to_string(),
                    provider: provider(model),
                    call_id: step.clone(),
                    activation: visit.activation,
                    duration_ms,
                    usage: usage.map(Into::into),
                    finish_reason: finish.clone(),
                    tool_calls: *tool_calls,
                    output: self.content.output(output.as_ref(), counts),
                };
                Some(Told { payload: Payload::GenerationCompleted(completed), placed })
            }
            Fact::ModelEnded { about, visit, step, model, end, .. } => {
                let mut ended = SpanEnded::new(SpanKind::Generation, &*model.model, end.as_str());
                ended.call_id = Some(step.clone());
                Some(self.ended(noted, about, visit, Sort::Generation, (step, 0), *end, ended))
            }
            _ => None,
        }
    }

    fn of_tool(&mut self, noted: &Noted, counts: &Counts) -> Option<Told> {
        match &noted.fact {
            Fact::ToolStarted { about, visit, step, tool, call_id, approved, input } => {
                let key = Key::call(about, visit.activation, Sort::Tool, step, 0);
                let placed = self.spans.begin(key, Some(&Key::node(about, visit)), noted);
                let started = ToolStarted {
                    tool: tool.clone(),
                    tool_call_id: call_id.clone(),
                    approved: *approved,
                    activation: visit.activation,
                    input: self.content.input(input.as_ref(), counts),
                };
                Some(Told { payload: Payload::ToolStarted(started), placed })
            }
            Fact::ToolEnded { about, visit, step, tool, call_id, end, output } => {
                let key = Key::call(about, visit.activation, Sort::Tool, step, 0);
                let (placed, duration_ms) = self.spans.end(&key, noted);
                let (tool, tool_call_id, activation) = (tool.clone(), call_id.clone(), visit.activation);
                let payload = if let End::Failed(code) = end {
                    let code = code.as_str();
                    Payload::ToolFailed(ToolFailed { tool, tool_call_id, code, activation, duration_ms })
                } else {
                    let (outcome, output) = (end.as_str(), self.content.output(output.as_ref(), counts));
                    let completed = ToolCompleted { tool, tool_call_id, outcome, activation, duration_ms, output };
                    Payload::ToolCompleted(completed)
                };
                Some(Told { payload, placed })
            }
            _ => None,
        }
    }

    fn started(
        &mut self,
        noted: &Noted,
        about: &Correlation,
        visit: &Arc<Visit>,
        sort: Sort,
        (id, occurrence): (&str, u32),
        started: SpanStarted,
    ) -> Told {
        let key = Key::call(about, visit.activation, sort, id, occurrence);
        let placed = self.spans.begin(key, Some(&Key::node(about, visit)), noted);
        let started = SpanStarted { activation: Some(visit.activation), ..started };
        Told { payload: Payload::SpanStarted(started), placed }
    }

    #[expect(clippy::too_many_arguments, reason = "a span's place, its end, and what is said of it")]
    fn ended(
        &mut self,
        noted: &Noted,
        about: &Correlation,
        visit: &Arc<Visit>,
        sort: Sort,
        (id, occurrence): (&str, u32),
        end: End,
        ended: SpanEnded,
    ) -> Told {
        let key = Key::call(about, visit.activation, sort, id, occurrence);
        let (placed, duration_ms): (Placed, _) = self.spans.end(&key, noted);
        let activation = Some(visit.activation);
        let End::Failed(code) = end else {
            return Told { payload: Payload::SpanEnded(SpanEnded { duration_ms, activation, ..ended }), placed };
        };
        let SpanEnded { kind, name, occurrence, call_id, .. } = ended;
        let failed = SpanFailed::new(kind, name, code.as_str());
        let failed = SpanFailed { duration_ms, activation, occurrence, call_id, ..failed };
        Told { payload: Payload::SpanFailed(failed), placed }
    }
}

fn transition(kind: TransitionKind, visit: &Visit) -> WorkflowTransitioned {
    WorkflowTransitioned {
        kind,
        from_node_id: visit.node.to_string(),
        to_node_id: None,
        to_workflow_id: None,
        to_workflow_version: None,
        condition: None,
    }
}

fn provider(model: &ModelName) -> Option<String> {
    model.provider.as_deref().map(str::to_owned)
}
