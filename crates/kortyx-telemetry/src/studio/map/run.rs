//! Runs and their sessions.

use kortyx_orchestrator::{Correlation, Fact};
use kortyx_protocol::FailureCode;
use kortyx_store::RunStatus;

use super::{Mapper, Told, span::Key};
use crate::{
    event::{Payload, RunCancelled, SessionCheckpointed, SpanEnded, SpanFailed, SpanKind, SpanStarted},
    studio::{counts::Counts, queue::Noted},
};

impl Mapper {
    pub(super) fn of_run(&mut self, noted: &Noted, counts: &Counts) -> Option<Told> {
        match &noted.fact {
            Fact::RunStarted { about, input } => {
                let mut started = SpanStarted::new(SpanKind::Run, name(about));
                started.input = self.content.input(input.as_ref(), counts);
                Some(self.run_started(noted, about, started))
            }
            Fact::RunResumed { about, reason, .. } => {
                let mut started = SpanStarted::new(SpanKind::Run, name(about));
                (started.resumed, started.resume_reason) = (true, Some(reason.as_str()));
                Some(self.run_started(noted, about, started))
            }
            Fact::SessionCheckpointed { about, checkpoint_id } => {
                let payload = SessionCheckpointed { checkpoint_id: checkpoint_id.as_str().to_owned() };
                let placed = self.spans.within(&Key::run(about));
                Some(Told { payload: Payload::SessionCheckpointed(payload), placed })
            }
            _ => self.run_ended(noted, counts),
        }
    }

    fn run_started(&mut self, noted: &Noted, about: &Correlation, started: SpanStarted) -> Told {
        let placed = self.spans.begin(Key::run(about), None, noted);
        Told { payload: Payload::SpanStarted(started), placed }
    }

    fn run_ended(&mut self, noted: &Noted, counts: &Counts) -> Option<Told> {
        let (Fact::RunSuspended { about, .. }
        | Fact::RunFinished { about, .. }
        | Fact::RunParked { about, .. }
        | Fact::LeaseLost { about, .. }) = &noted.fact
        else {
            return None;
        };
        let (placed, duration_ms) = self.spans.end(&Key::run(about), noted);
        let ended = |outcome| {
            let ended = SpanEnded::new(SpanKind::Run, name(about), outcome);
            SpanEnded { duration_ms, ..ended }
        };
        let payload = match &noted.fact {
            Fact::RunSuspended { open, usage, .. } => {
                let usage = usage.map(Into::into);
                Payload::SpanEnded(SpanEnded { open_interrupts: Some(*open), usage, ..ended("suspended") })
            }
            Fact::RunFinished { status: RunStatus::Cancelled, usage, .. } => {
                Payload::RunCancelled(RunCancelled { duration_ms, usage: usage.map(Into::into) })
            }
            Fact::RunFinished { status: RunStatus::Failed, code, usage, .. } => {
                let code = code.map_or("UNKNOWN", FailureCode::as_str);
                let failed = SpanFailed::new(SpanKind::Run, name(about), code);
                Payload::SpanFailed(SpanFailed { duration_ms, usage: usage.map(Into::into), ..failed })
            }
            Fact::RunFinished { status, usage, output, .. } => {
                let output = self.content.output(output.as_ref(), counts);
                Payload::SpanEnded(SpanEnded { usage: usage.map(Into::into), output, ..ended(status.as_str()) })
            }
            Fact::RunParked { code, .. } => {
                let failed = SpanFailed::new(SpanKind::Run, name(about), code.as_str());
                Payload::SpanFailed(SpanFailed { outcome: "parked", duration_ms, ..failed })
            }
            _ => Payload::SpanEnded(ended("lease-lost")),
        };
        Some(Told { payload, placed })
    }
}

fn name(about: &Correlation) -> &str {
    about.workflow_id().unwrap_or_default()
}
