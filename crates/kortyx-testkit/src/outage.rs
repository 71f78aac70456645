//! Times at which a server was away, and what failed when.

use std::time::Duration;

use kortyx_protocol::Timestamp;
use kortyx_store::{Clock as _, SystemClock};

use crate::{
    Error, Event, Invariant, Line,
    error::{broken, holds},
};

/// How long after a server's return calls may fail.
const GRACE: Duration = Duration::from_secs(5);
/// How long after a server's return an answer must have been accepted.
const PATIENCE: Duration = Duration::from_secs(10);

/// A time at which a server was away, by the machine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    from: Timestamp,
    until: Timestamp,
}

/// How it went on after a server came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// How long the server was away.
    pub away: Duration,
    /// How many calls failed.
    pub failures: usize,
    /// How long after its return the last of them did.
    pub failed_for: Duration,
    /// How long after its return the first answer was accepted.
    pub accepted_after: Duration,
}

impl Outage {
    /// The time that this takes: it is to take the server away and bring it back, and be ready when the server is.
    pub async fn during<T, E>(away: impl Future<Output = Result<T, E>>) -> Result<Self, E> {
        let from = SystemClock.now();
        away.await?;
        Ok(Self { from, until: SystemClock.now() })
    }

    fn covers(&self, at: Timestamp) -> bool {
        self.from <= at && at <= self.until.saturating_add(GRACE)
    }
}

/// No call failed but while a server was away and shortly after, and afterwards answers were accepted again.
pub(crate) fn check_errors(lines: &[Line], outages: &[Outage]) -> Result<Vec<Recovery>, Error> {
    for line in lines {
        if let Event::Failed { call, reason } = &line.event
            && !outages.iter().any(|outage| outage.covers(line.at))
        {
            let nearest =
                outages.iter().filter(|outage| outage.until <= line.at).map(|it| line.at.since(it.until)).min();
            return broken(Invariant::ErrorsEnd, format!("{call}: {reason} ({nearest:?} after a server's return)"));
        }
    }
    outages.iter().map(|outage| recovery(lines, outage)).collect()
}

fn recovery(lines: &[Line], outage: &Outage) -> Result<Recovery, Error> {
    let failed = |line: &&Line| matches!(line.event, Event::Failed { .. }) && outage.covers(line.at);
    let is_accepted = |line: &&Line| matches!(line.event, Event::Accepted { .. }) && line.at >= outage.until;
    let accepted_after = lines.iter().filter(is_accepted).map(|line| line.at.since(outage.until)).min();
    let accepted_after = accepted_after.unwrap_or(Duration::MAX);
    holds(accepted_after <= PATIENCE, Invariant::ErrorsEnd, || {
        format!("no answer was accepted within {PATIENCE:?} of a server's return")
    })?;
    Ok(Recovery {
        away: outage.until.since(outage.from),
        failures: lines.iter().filter(failed).count(),
        failed_for: lines.iter().filter(failed).map(|line| line.at.since(outage.until)).max().unwrap_or_default(),
        accepted_after,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at: i64, event: Event) -> Line {
        Line { pid: 1, at: Timestamp::from_millis(at), event }
    }

    fn failed(at: i64) -> Line {
        line(at, Event::Failed { call: "answer".into(), reason: "gone".into() })
    }

    fn accepted(at: i64) -> Line {
        let request_id = kortyx_protocol::RequestId::new("human-1").unwrap();
        line(at, Event::Accepted { request_id, seq: 1, answer: kortyx_protocol::ResumeResponse::text("yes") })
    }

    fn away(from: i64, until: i64) -> Outage {
        Outage { from: Timestamp::from_millis(from), until: Timestamp::from_millis(until) }
    }

    #[test]
    fn calls_may_fail_while_a_server_is_away_and_for_five_seconds_more() {
        let recoveries = check_errors(&[failed(1_000), failed(7_000), accepted(8_000)], &[away(500, 2_000)]).unwrap();

        let [recovery] = recoveries.as_slice() else { panic!("{recoveries:?}") };
        assert_eq!((recovery.away, recovery.failures), (Duration::from_millis(1_500), 2));
        assert_eq!((recovery.failed_for, recovery.accepted_after), (Duration::from_secs(5), Duration::from_secs(6)));
    }

    #[test]
    fn a_call_that_fails_at_any_other_time_breaks_the_promise() {
        assert!(check_errors(&[failed(499), accepted(3_000)], &[away(500, 2_000)]).is_err());
        assert!(check_errors(&[failed(7_001), accepted(3_000)], &[away(500, 2_000)]).is_err());
        assert!(check_errors(&[failed(1)], &[]).is_err());
    }

    #[test]
    fn a_server_that_is_back_and_takes_no_answers_breaks_the_promise() {
        assert!(check_errors(&[accepted(1_999), accepted(12_001)], &[away(500, 2_000)]).is_err());
    }
}
