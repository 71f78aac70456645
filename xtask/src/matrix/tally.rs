//! Counts, and how they are read from the output of test programs.

use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;

/// How many checks and tests passed, failed and were skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// They hold.
    pub(crate) passed: u64,
    /// They do not, or could not be tried.
    pub(crate) failed: u64,
    /// They were ignored.
    pub(crate) skipped: u64,
}

impl Tally {
    /// A single failure.
    pub(crate) fn one_failed() -> Self {
        Self { failed: 1, ..Self::default() }
    }

    /// A single check.
    pub(super) fn of(passed: bool) -> Self {
        if passed { Self { passed: 1, ..Self::default() } } else { Self::one_failed() }
    }

    /// Something was tried.
    pub(super) fn ran(self) -> bool {
        self.passed + self.failed > 0
    }

    /// The counts of one test program: its last summary, since a test may print the summary of another program.
    pub(super) fn of_program(output: &str) -> Option<Self> {
        output.lines().filter_map(Self::of_line).next_back()
    }

    /// The counts of all test programs that one cargo command ran.
    pub(super) fn of_programs(output: &str) -> Self {
        output.lines().filter_map(Self::of_line).sum()
    }

    /// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
    fn of_line(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let count = |what: &str| counts.split(';').find_map(|part| part.trim().strip_suffix(what)?.trim().parse().ok());
        Some(Self { passed: count("passed")?, failed: count("failed")?, skipped: count("ignored")? })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, skipped } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), |mut sum, tally| {
            sum += tally;
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSED: &str =
        "test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; 7 filtered out; finished in 0.01s";
    const FAILED: &str = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";

    #[test]
    fn a_summary_is_read_whether_it_passed_or_failed() {
        assert_eq!(Tally::of_program(PASSED), Some(Tally { passed: 12, failed: 0, skipped: 3 }));
        assert_eq!(Tally::of_program(FAILED), Some(Tally { passed: 1, failed: 2, skipped: 0 }));
    }

    #[test]
    fn the_last_summary_of_a_program_counts() {
        let output = format!("running 3 tests\n{PASSED}\ntest a ... ok\n\n{FAILED}\n\n");

        assert_eq!(Tally::of_program(&output), Tally::of_program(FAILED));
    }

    #[test]
    fn every_summary_of_a_cargo_command_counts() {
        let output = format!("   Doc-tests a\n{PASSED}\n   Doc-tests b\n{FAILED}\n");

        assert_eq!(Tally::of_programs(&output), Tally { passed: 13, failed: 2, skipped: 3 });
    }

    #[test]
    fn other_lines_are_no_summary() {
        for line in ["", "test result: ok", "test result: ok. many passed; 0 failed; 0 ignored", "12 passed; 0 failed"]
        {
            assert_eq!(Tally::of_program(line), None, "{line}");
        }
    }

    #[test]
    fn the_counts_are_printed_in_the_agreed_form() {
        assert_eq!(Tally { passed: 1, failed: 2, skipped: 3 }.to_string(), "1 passed, 2 failed, 3 skipped");
    }
}
