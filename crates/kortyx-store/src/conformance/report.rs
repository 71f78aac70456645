//! Runs cases and reports what became of each.

use std::{
    any::Any,
    fmt,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
    time::Duration,
};

use super::{Backend, Case, cases};

/// Longer than any case takes on a slow machine; a case that needs more hangs.
const PATIENCE: Duration = Duration::from_mins(5);

/// A case that did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The case.
    pub name: &'static str,
    /// What was wrong.
    pub message: String,
}

/// What became of the cases. Its `Display` names every one that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "a report that nobody reads proves nothing"]
pub struct Report {
    total: usize,
    passed: Vec<&'static str>,
    failures: Vec<Failure>,
}

impl Report {
    /// How many cases there are.
    pub fn total(&self) -> usize {
        self.total
    }

    /// The cases that passed.
    pub fn passed(&self) -> &[&'static str] {
        &self.passed
    }

    /// The cases that failed or did not run.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// Whether there were cases and every one of them ran and passed.
    pub fn is_success(&self) -> bool {
        self.total > 0 && self.failures.is_empty() && self.passed.len() == self.total
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "conformance: {} cases, {} passed", self.total, self.passed.len())?;
        for failure in &self.failures {
            write!(f, "\n  {}: {}", failure.name, failure.message)?;
        }
        Ok(())
    }
}

/// Runs every case against fresh stores of the backend and prints the report.
pub async fn run_all(backend: &dyn Backend) -> Report {
    run_cases(backend, cases()).await
}

/// Runs these cases only, for work on an adapter; its test calls [`run_all`].
pub async fn run_cases(backend: &dyn Backend, cases: Vec<Case>) -> Report {
    let mut report = Report { total: cases.len(), ..Report::default() };
    for case in cases {
        match run(backend, case).await {
            Ok(()) => report.passed.push(case.name()),
            Err(message) => report.failures.push(Failure { name: case.name(), message }),
        }
    }
    println!("{report}");
    report
}

async fn run(backend: &dyn Backend, case: Case) -> Result<(), String> {
    match tokio::time::timeout(PATIENCE, caught(case.run(backend))).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("did not end within {} s", PATIENCE.as_secs())),
    }
}

/// Turns a panic of the future into an error.
async fn caught(future: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(poll) => poll,
        Err(panic) => Poll::Ready(Err(message(panic.as_ref()))),
    })
    .await
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_else(|| "panicked".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{caught, message};
    use crate::conformance::{Failure, Report};

    #[tokio::test]
    async fn a_panic_is_a_failure_with_its_message() {
        assert_eq!(caught(async { panic!("left {} right", 1) }).await, Err("left 1 right".to_owned()));
        assert_eq!(caught(async { Err("refused".to_owned()) }).await, Err("refused".to_owned()));
        assert_eq!(caught(async { Ok(()) }).await, Ok(()));
        assert_eq!(message(&7_u8), "panicked");
    }

    #[test]
    fn a_report_names_what_failed_and_succeeds_only_when_every_case_passed() {
        let failed = Failure { name: "b", message: "no".to_owned() };
        let report = Report { total: 2, passed: vec!["a"], failures: vec![failed] };
        assert_eq!(report.to_string(), "conformance: 2 cases, 1 passed\n  b: no");
        assert!(!report.is_success());
        assert!(Report { total: 1, passed: vec!["a"], failures: Vec::new() }.is_success());
        assert!(!Report { total: 2, passed: vec!["a"], failures: Vec::new() }.is_success(), "one did not run");
        assert!(!Report::default().is_success(), "nothing ran");
    }
}
