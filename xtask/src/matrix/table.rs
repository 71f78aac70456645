//! The table at the end of a run.

use std::fmt::Write as _;
use std::time::Duration;

use super::Tally;

/// What became of one lane.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// The lane.
    pub(super) name: &'static str,
    /// Its counts.
    pub(super) tally: Tally,
    /// How long it took.
    pub(super) elapsed: Duration,
}

/// Lays the rows out, with a heading.
pub(super) fn render(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or_default().max(10);
    let mut text = format!("\n{:<width$} {:>8} {:>8} {:>8} {:>9}\n", "lane", "passed", "failed", "skipped", "seconds");
    for Row { name, tally, elapsed } in rows {
        let Tally { passed, failed, skipped } = tally;
        let seconds = elapsed.as_secs_f64();
        let _ = writeln!(text, "{name:<width$} {passed:>8} {failed:>8} {skipped:>8} {seconds:>9.1}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_stand_in_columns_under_a_heading() {
        let tally = Tally { passed: 120, failed: 0, skipped: 2 };
        let rows = [Row { name: "unit", tally, elapsed: Duration::from_millis(61_250) }];

        assert_eq!(
            render(&rows),
            "\nlane         passed   failed  skipped   seconds\nunit            120        0        2      61.2\n"
        );
    }
}
