//! One line of the result: what was measured, against what, and whether that is enough.

use serde::{Deserialize, Serialize};

use crate::number::{Unit, plain};

/// A measured number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    /// What was measured, for people.
    pub(crate) measure: String,
    /// The number.
    pub(crate) value: f64,
    /// What it counts.
    pub(crate) unit: Unit,
    /// What it is held against, measured in the same run.
    pub(crate) reference: Option<f64>,
    /// The number over its reference.
    pub(crate) ratio: Option<f64>,
    /// What the ratio must be, or the number itself when there is no ratio.
    pub(crate) target: Option<Target>,
}

/// A bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "bound", content = "value", rename_all = "camelCase")]
pub(crate) enum Target {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

impl Row {
    /// A number that stands for itself.
    pub(crate) fn new(measure: impl Into<String>, value: f64, unit: Unit) -> Self {
        Self { measure: measure.into(), value, unit, reference: None, ratio: None, target: None }
    }

    /// Holds it against another number of the same unit.
    pub(crate) fn against(mut self, reference: f64, ratio: f64) -> Self {
        self.reference = Some(reference);
        self.ratio = Some(ratio);
        self
    }

    /// Says what is enough.
    pub(crate) fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    /// Whether it is enough; `None` when nothing is asked for. A number that is none is never enough.
    pub(crate) fn is_ok(&self) -> Option<bool> {
        let judged = self.ratio.unwrap_or(self.value);
        self.target.map(|target| match target {
            Target::AtLeast(bound) => judged >= bound,
            Target::AtMost(bound) => judged <= bound,
        })
    }

    /// The texts of its cells.
    pub(crate) fn cells(&self) -> [String; 6] {
        let verdict = match self.is_ok() {
            Some(true) => "ok",
            Some(false) => "MISSED",
            None => "",
        };
        [
            self.measure.clone(),
            self.unit.format(self.value),
            self.reference.map(|reference| self.unit.format(reference)).unwrap_or_default(),
            self.ratio.map(plain).unwrap_or_default(),
            self.target.map(|target| self.bound(target)).unwrap_or_default(),
            verdict.to_owned(),
        ]
    }

    fn bound(&self, target: Target) -> String {
        let number = |bound| if self.ratio.is_some() { plain(bound) } else { self.unit.format(bound) };
        match target {
            Target::AtLeast(bound) => format!("≥ {}", number(bound)),
            Target::AtMost(bound) => format!("≤ {}", number(bound)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_reference_is_judged_by_itself() {
        let row = |value| Row::new("cycles", value, Unit::PerSecond).target(Target::AtLeast(50_000.0));

        assert_eq!(row(50_000.0).is_ok(), Some(true));
        assert_eq!(row(49_999.9).is_ok(), Some(false));
    }

    #[test]
    fn a_number_with_a_reference_is_judged_by_the_ratio() {
        let row = |ratio| Row::new("page", 90.0, Unit::Micros).against(50.0, ratio).target(Target::AtMost(2.0));

        assert_eq!(row(1.8).is_ok(), Some(true));
        assert_eq!(row(2.1).is_ok(), Some(false));
    }

    #[test]
    fn what_has_no_target_has_no_verdict() {
        assert_eq!(Row::new("engine", 4.0, Unit::Micros).is_ok(), None);
    }

    #[test]
    fn a_number_that_is_none_misses_every_target() {
        for target in [Target::AtLeast(0.0), Target::AtMost(0.0)] {
            assert_eq!(Row::new("nothing", f64::NAN, Unit::None).target(target).is_ok(), Some(false));
        }
    }

    #[test]
    fn a_row_reads_as_it_was_written() {
        let row = Row::new("page", 90.0, Unit::Micros).against(50.0, 1.8).target(Target::AtMost(2.0));

        let text = serde_json::to_string(&row).unwrap();

        assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row);
    }

    #[test]
    fn the_target_has_the_unit_of_what_it_judges() {
        let [.., target, verdict] =
            Row::new("cycles", 60_000.0, Unit::PerSecond).target(Target::AtLeast(50_000.0)).cells();
        assert_eq!((target.as_str(), verdict.as_str()), ("≥ 50,000/s", "ok"));

        let [.., ratio, target, verdict] =
            Row::new("many", 900.0, Unit::PerSecond).against(4_000.0, 0.225).target(Target::AtLeast(0.3)).cells();
        assert_eq!((ratio.as_str(), target.as_str(), verdict.as_str()), ("0.23", "≥ 0.30", "MISSED"));
    }
}
