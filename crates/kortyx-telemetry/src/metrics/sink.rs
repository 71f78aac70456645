//! Facts, counted.

use kortyx_orchestrator::{Correlation, Fact, TelemetrySink};
use metrics::SharedString;

use super::{names, quietly, times::Times};

/// A telemetry sink that counts and times what this process is told, for the recorder that is installed.
///
/// Each fact is counted in the process where it happens, so sums over processes are true. What is open *now* is not: a question may be
/// answered elsewhere. For that there is [`Watch`](super::Watch).
///
/// The label `workflow` is the run's workflow; of questions and answers where only the question was read, the one that asks, which may be
/// a child; `unknown` of answers to questions that are not known.
///
/// ```
/// use kortyx_telemetry::metrics::Metrics;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = kortyx_orchestrator::Agent::builder().telemetry(Metrics::new()).build().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Metrics {
    times: Times,
}

impl Metrics {
    /// Describes every metric to the recorder that is installed, and counts from now on.
    pub fn new() -> Self {
        quietly(names::describe);
        Self::default()
    }
}

impl TelemetrySink for Metrics {
    fn record(&self, fact: &Fact) {
        quietly(|| {
            of_question(fact);
            of_answer(fact);
            of_run(fact);
            of_trouble(fact);
            of_work(fact);
        });
        quietly(|| self.times.note(fact));
    }

    fn watches_nodes(&self) -> bool {
        true
    }
}

/// The run's workflow, as the value of a label.
pub(super) fn workflow(about: &Correlation) -> SharedString {
    match about.workflow() {
        Some(pin) => pin.id.clone().into(),
        None => about.workflow_id().unwrap_or("unknown").to_owned().into(),
    }
}

fn of_question(fact: &Fact) {
    let closed = |about: &Correlation, outcome: &'static str| {
        names::QUESTIONS_CLOSED.add([workflow(about), outcome.into()], 1);
    };
    match fact {
        Fact::InterruptCreated { about, .. } => names::QUESTIONS_OPENED.add([workflow(about)], 1),
        Fact::InterruptResolved { about, wait, .. } => {
            closed(about, "answered");
            names::QUESTION_WAIT.observe([workflow(about)], wait.as_secs_f64());
        }
        Fact::InterruptCancelled { about, .. } => closed(about, "cancelled"),
        Fact::InterruptSuperseded { about, .. } => closed(about, "superseded"),
        // One that was only read is told again when it is closed.
        Fact::InterruptExpired { about, by_default, is_derived: false, .. } => {
            closed(about, if *by_default { "defaulted" } else { "expired" });
        }
        _ => {}
    }
}

fn of_answer(fact: &Fact) {
    let (about, outcome) = match fact {
        Fact::InterruptResolved { about, .. } => (Some(about), "accepted"),
        Fact::AnswerInvalid { about, .. } => (about.as_ref(), "invalid"),
        Fact::AnswerLate { about, .. } => (about.as_ref(), "late"),
        Fact::AnswerRepeated { about, .. } => (about.as_ref(), "duplicate"),
        Fact::AnswerConflicted { about, .. } => (about.as_ref(), "conflict"),
        _ => return,
    };
    let workflow = about.map_or_else(|| "unknown".into(), workflow);
    names::ANSWERS.add([workflow, outcome.into()], 1);
}

fn of_run(fact: &Fact) {
    match fact {
        Fact::RunStarted { about, .. } => names::RUNS_STARTED.add([workflow(about)], 1),
        Fact::RunResumed { about, reason, .. } => {
            names::RUNS_RESUMED.add([workflow(about), reason.as_str().into()], 1);
        }
        Fact::RunSuspended { about, .. } => names::RUNS_SUSPENDED.add([workflow(about)], 1),
        Fact::RunFinished { about, status, .. } => {
            names::RUNS_FINISHED.add([workflow(about), status.as_str().into()], 1);
        }
        _ => {}
    }
}

fn of_trouble(fact: &Fact) {
    match fact {
        Fact::RunRecovered { about } => names::RUNS_RECOVERED.add([workflow(about)], 1),
        Fact::RunParked { about, code } => names::RUNS_PARKED.add([workflow(about), code.as_str().into()], 1),
        Fact::RunDiverged { about, code } => names::RUNS_DIVERGED.add([workflow(about), code.as_str().into()], 1),
        Fact::LeaseLost { about, .. } => names::LEASES_LOST.add([workflow(about)], 1),
        _ => {}
    }
}

fn of_work(fact: &Fact) {
    match fact {
        Fact::ModelEnded { about, model, end, usage, .. } => {
            let of_model = |last: &'static str| [workflow(about), model.model.clone().into(), last.into()];
            names::MODEL_PASSES.add(of_model(end.as_str()), 1);
            if let Some(usage) = usage {
                names::MODEL_TOKENS.add(of_model("input"), usage.input);
                names::MODEL_TOKENS.add(of_model("output"), usage.output);
            }
        }
        Fact::ToolEnded { about, tool, end, .. } => {
            names::TOOL_CALLS.add([workflow(about), tool.clone().into(), end.as_str().into()], 1);
        }
        _ => {}
    }
}
