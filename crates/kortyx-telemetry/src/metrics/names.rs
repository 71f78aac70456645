//! Every metric: its name, unit, labels and what it says. Nothing is measured that is not in the table.

use metrics::{Key, Label, Level, Metadata, SharedString, Unit, with_recorder};

const METADATA: Metadata<'static> = Metadata::new("kortyx", Level::INFO, Some(module_path!()));

/// How a metric behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// It only grows while the process lives.
    Counter,
    /// It goes up and down.
    Gauge,
    /// It collects values.
    Histogram,
}

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name, which is also its name in Prometheus.
    pub name: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// What its values are.
    pub unit: Unit,
    /// Its labels. Their values are names out of the code and the configuration, never of runs, sessions or people.
    pub labels: &'static [&'static str],
    /// What it says.
    pub description: &'static str,
}

macro_rules! table {
    ($($constant:ident $kind:ident $name:literal [$($label:literal),*] $description:literal)*) => {
        $(#[doc = concat!("`", $name, "`: ", $description)]
        pub const $constant: Metric = Metric {
            name: $name,
            kind: Kind::$kind,
            unit: Kind::$kind.unit(),
            labels: &[$($label),*],
            description: $description,
        };)*

        /// All of them.
        pub const ALL: &[Metric] = &[$($constant),*];
    };
}

table! {
    QUESTIONS_OPENED Counter "kortyx_questions_opened_total" ["workflow"]
        "Questions that were published."
    QUESTIONS_CLOSED Counter "kortyx_questions_closed_total" ["workflow", "outcome"]
        "Questions that are open no longer: answered, defaulted, expired, cancelled or superseded."
    QUESTION_WAIT Histogram "kortyx_question_wait_seconds" ["workflow"]
        "How long answered questions were open, on the store's clock."
    ANSWERS Counter "kortyx_answers_total" ["workflow", "outcome"]
        "Answers that people gave: accepted, invalid, late, duplicate or conflict."
    PAUSE Histogram "kortyx_pause_seconds" ["workflow"]
        "From the last node that waits for people until the pause is stored."
    RESUME Histogram "kortyx_resume_seconds" ["workflow"]
        "From an accepted answer until its run goes on, where both happen in this process."
    DRIVE Histogram "kortyx_drive_seconds" ["workflow", "end"]
        "How long a run was driven at once until it was suspended, parked or lost, or ended: completed, failed, cancelled or expired."
    RUNS_STARTED Counter "kortyx_runs_started_total" ["workflow"]
        "Runs that began."
    RUNS_RESUMED Counter "kortyx_runs_resumed_total" ["workflow", "reason"]
        "How often stored runs went on: answered, defaulted or recovered."
    RUNS_SUSPENDED Counter "kortyx_runs_suspended_total" ["workflow"]
        "How often runs paused for people."
    RUNS_FINISHED Counter "kortyx_runs_finished_total" ["workflow", "status"]
        "Runs that ended: completed, failed, cancelled or expired."
    RUNS_RECOVERED Counter "kortyx_runs_recovered_total" ["workflow"]
        "Runs that were taken over because their driver was gone, or that were set aside and fit again."
    RUNS_PARKED Counter "kortyx_runs_parked_total" ["workflow", "code"]
        "How often runs were set aside until code that fits is deployed."
    RUNS_DIVERGED Counter "kortyx_runs_diverged_total" ["workflow", "code"]
        "How often what is recorded of a run did not fit the code."
    LEASES_LOST Counter "kortyx_leases_lost_total" ["workflow"]
        "Drivers that lost their run to another one."
    MODEL_PASSES Counter "kortyx_model_passes_total" ["workflow", "model", "outcome"]
        "Answers of models: completed, failed or dropped."
    MODEL_TOKENS Counter "kortyx_model_tokens_total" ["workflow", "model", "direction"]
        "Tokens that models told to have used: input or output."
    TOOL_CALLS Counter "kortyx_tool_calls_total" ["workflow", "tool", "outcome"]
        "Calls of tools: completed, failed, dropped, or paused for a person."
    STORE_CALLS Histogram "kortyx_store_seconds" ["store", "operation"]
        "How long the calls of a store took, failed ones too."
    STORE_ERRORS Counter "kortyx_store_errors_total" ["store", "operation", "kind"]
        "Calls of a store that failed."
    QUESTIONS_OPEN Gauge "kortyx_questions_open" ["store"]
        "Questions that are pending and in time, as the store counts them."
    RUNS Gauge "kortyx_runs" ["store", "status"]
        "Runs of each status, as the store counts them."
    STATS_FAILURES Counter "kortyx_store_stats_failures_total" ["store"]
        "How often a store could not be counted: its gauges are then out of date."
    RUNS_DRIVEN Gauge "kortyx_runs_driven" []
        "Runs that this process drives."
    STREAMS_OPEN Gauge "kortyx_streams_open" []
        "Clients that this process is answering with streams."
    REPORTER_WAITING Gauge "kortyx_reporter_waiting" []
        "Facts that wait to be sent to Kortyx Studio."
    REPORTER_EVENTS Counter "kortyx_reporter_events_total" ["outcome"]
        "What became of events for Kortyx Studio: sent, dropped, refused, abandoned or unbuildable."
}

impl Kind {
    const fn unit(self) -> Unit {
        match self {
            Self::Histogram => Unit::Seconds,
            Self::Counter | Self::Gauge => Unit::Count,
        }
    }
}

/// Tells the recorder the unit and the description of every metric.
pub(super) fn describe() {
    with_recorder(|recorder| {
        for metric in ALL {
            let (name, unit) = (metric.name.into(), Some(metric.unit));
            match metric.kind {
                Kind::Counter => recorder.describe_counter(name, unit, metric.description.into()),
                Kind::Gauge => recorder.describe_gauge(name, unit, metric.description.into()),
                Kind::Histogram => recorder.describe_histogram(name, unit, metric.description.into()),
            }
        }
    });
}

/// The values of labels, in the order of the table.
impl Metric {
    pub(super) fn add<const N: usize>(&self, values: [SharedString; N], more: u64) {
        with_recorder(|recorder| recorder.register_counter(&self.key(values), &METADATA).increment(more));
    }

    /// The counter's value as somebody else counted it.
    #[cfg(feature = "studio")]
    pub(super) fn counted<const N: usize>(&self, values: [SharedString; N], count: u64) {
        with_recorder(|recorder| recorder.register_counter(&self.key(values), &METADATA).absolute(count));
    }

    pub(super) fn set<const N: usize>(&self, values: [SharedString; N], value: f64) {
        with_recorder(|recorder| recorder.register_gauge(&self.key(values), &METADATA).set(value));
    }

    pub(super) fn observe<const N: usize>(&self, values: [SharedString; N], seconds: f64) {
        with_recorder(|recorder| recorder.register_histogram(&self.key(values), &METADATA).record(seconds));
    }

    fn key<const N: usize>(&self, values: [SharedString; N]) -> Key {
        debug_assert_eq!(N, self.labels.len(), "{} has other labels", self.name);
        let labels: Vec<_> = self.labels.iter().zip(values).map(|(name, value)| Label::new(*name, value)).collect();
        Key::from_parts(self.name, labels)
    }
}
