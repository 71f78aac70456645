//! The moments of a run as facts.

use kortyx_runtime::{Content, Moment, Visit, Work};

use super::{Correlation, Fact};

/// A moment of a run as a fact; `None` of one that this release has no fact for.
pub(crate) fn fact(about: Correlation, moment: &Moment<'_>) -> Option<Fact> {
    let about = match visit(moment) {
        Some(visit) => about.at(visit.workflow.clone(), visit.node.clone()),
        None => about,
    };
    of_node(about.clone(), moment).or_else(|| of_call(about, moment))
}

fn visit<'a>(moment: &'a Moment<'_>) -> Option<&'a Visit> {
    match moment {
        Moment::NodeEntered { visit }
        | Moment::NodeLeft { visit, .. }
        | Moment::StepStarted { visit, .. }
        | Moment::StepEnded { visit, .. }
        | Moment::ChildStarted { visit, .. }
        | Moment::ChildEnded { visit, .. }
        | Moment::Transitioned { visit, .. }
        | Moment::HandedOff { visit, .. }
        | Moment::Work { visit, .. } => Some(visit),
        _ => None,
    }
}

fn of_node(about: Correlation, moment: &Moment<'_>) -> Option<Fact> {
    Some(match *moment {
        Moment::NodeEntered { visit } => Fact::NodeEntered { about, visit: visit.clone() },
        Moment::NodeLeft { visit, end, retries, output } => {
            Fact::NodeLeft { about, visit: visit.clone(), end, retries, output: output.cloned() }
        }
        Moment::Transitioned { visit, to, condition } => {
            let (to, condition) = (to.cloned(), condition.map(str::to_owned));
            Fact::WorkflowTransitioned { about, visit: visit.clone(), to, condition }
        }
        Moment::HandedOff { visit, workflow, version } => {
            let (workflow, version) = (workflow.clone(), version.clone());
            Fact::WorkflowHandedOff { about, visit: visit.clone(), workflow, version }
        }
        Moment::Diverged { failure } => Fact::RunDiverged { about, code: failure.code },
        _ => return None,
    })
}

fn of_call(about: Correlation, moment: &Moment<'_>) -> Option<Fact> {
    Some(match *moment {
        Moment::StepStarted { visit, call } => Fact::StepStarted { about, visit: visit.clone(), call: call.clone() },
        Moment::StepEnded { visit, call, end, output } => {
            Fact::StepEnded { about, visit: visit.clone(), call: call.clone(), end, output: output.cloned() }
        }
        Moment::ChildStarted { visit, call, workflow, version, again, input } => Fact::ChildStarted {
            about,
            visit: visit.clone(),
            call: call.clone(),
            workflow: workflow.clone(),
            version: version.clone(),
            again,
            input: input.cloned(),
        },
        Moment::ChildEnded { visit, call, workflow, version, end, output } => Fact::ChildEnded {
            about,
            visit: visit.clone(),
            call: call.clone(),
            workflow: workflow.clone(),
            version: version.clone(),
            end,
            output: output.cloned(),
        },
        Moment::Work { visit, work } => return of_work(about, visit.clone(), &work),
        _ => return None,
    })
}

fn of_work(about: Correlation, visit: std::sync::Arc<Visit>, work: &Work<'_>) -> Option<Fact> {
    let content = |content: Option<&Content>| content.cloned();
    Some(match *work {
        Work::ModelStarted { step, model, input } => {
            Fact::ModelStarted { about, visit, step: step.to_owned(), model: model.clone(), input: content(input) }
        }
        Work::ModelEnded { step, model, end, usage, finish, tool_calls, output } => Fact::ModelEnded {
            about,
            visit,
            step: step.to_owned(),
            model: model.clone(),
            end,
            usage,
            finish: finish.map(str::to_owned),
            tool_calls,
            output: content(output),
        },
        Work::ToolStarted { step, tool, call_id, approved, input } => Fact::ToolStarted {
            about,
            visit,
            step: step.to_owned(),
            tool: tool.to_owned(),
            call_id: call_id.to_owned(),
            approved,
            input: content(input),
        },
        Work::ToolEnded { step, tool, call_id, end, output } => Fact::ToolEnded {
            about,
            visit,
            step: step.to_owned(),
            tool: tool.to_owned(),
            call_id: call_id.to_owned(),
            end,
            output: content(output),
        },
        _ => return None,
    })
}
