//! The calls of one turn, in order, and what becomes of them while one waits for a person.

use futures_util::future::{try_join, try_join_all};
use serde_json::Value;

use super::{
    Reasoning,
    deliver::{AFTER_RETURN, RETURNED_REGARDLESS},
    gate::Waits,
    record::{Plan, Planned},
    settle::Settled,
};
use crate::{ReasonError, WhileWaiting};

impl<T> Reasoning<'_, T> {
    /// Makes the calls of a turn; returns what became of them, in their order.
    pub(super) async fn batch(&self, calls: &[Planned]) -> Result<Vec<Settled>, ReasonError> {
        let waits = self.waits(calls).await?;
        for (planned, waits) in calls.iter().zip(&waits) {
            if matches!((&planned.plan, waits), (Plan::Return(_), Waits::Refused(_))) {
                self.take_back(planned).await?;
            }
        }
        let mut both = calls.iter().zip(&waits);
        let returns = both.position(|(planned, waits)| matches!((&planned.plan, waits), (Plan::Return(_), Waits::No)));
        match returns {
            Some(at) => self.returning(calls, &waits, at).await,
            None => self.by_policy(calls, &waits).await,
        }
    }

    async fn by_policy(&self, calls: &[Planned], waits: &[Waits]) -> Result<Vec<Settled>, ReasonError> {
        match self.reason.while_waiting {
            WhileWaiting::Hold => self.hold(calls, waits).await,
            WhileWaiting::Proceed => self.proceed(calls, waits).await,
        }
    }

    /// Makes the calls before the one that returns, of which none waits. Then that one ends the turn, unless one before it went
    /// wrong: the model is to know of it first.
    async fn returning(&self, calls: &[Planned], waits: &[Waits], at: usize) -> Result<Vec<Settled>, ReasonError> {
        let mut settled = Vec::with_capacity(calls.len());
        for (planned, waits) in calls.iter().zip(waits).take(at) {
            settled.push(self.settle(planned, waits, None).await?);
        }
        let Some((returning, rest)) = calls.get(at..).and_then(<[_]>::split_first) else { return Ok(settled) };
        if settled.iter().all(Settled::is_well) {
            settled.push(self.settle(returning, &Waits::No, None).await?);
            for planned in rest {
                self.take_back(planned).await?;
                settled.push(self.settle(planned, &Waits::Refused(AFTER_RETURN), None).await?);
            }
            return Ok(settled);
        }
        self.take_back(returning).await?;
        settled.push(self.settle(returning, &Waits::Refused(RETURNED_REGARDLESS), None).await?);
        let waits = waits.get(at.saturating_add(1)..).unwrap_or_default();
        settled.extend(self.by_policy(rest, waits).await?);
        Ok(settled)
    }

    /// The calls before the first that waits are made. Then all questions are open at once, and the rest is made in order when all
    /// are answered.
    async fn hold(&self, calls: &[Planned], waits: &[Waits]) -> Result<Vec<Settled>, ReasonError> {
        let first = waits.iter().position(Waits::is_person).unwrap_or(calls.len());
        let mut settled = Vec::with_capacity(calls.len());
        for (planned, waits) in calls.iter().zip(waits).take(first) {
            settled.push(self.settle(planned, waits, None).await?);
        }
        let mut asks = Vec::new();
        for (planned, _) in calls.iter().zip(waits).filter(|(_, waits)| waits.is_person()) {
            asks.push(self.question(planned).await?);
        }
        if asks.is_empty() {
            return Ok(settled);
        }
        let mut answers = self.ctx.interrupt_all(asks).await?.into_iter();
        for (planned, waits) in calls.iter().zip(waits).skip(first) {
            let answer = if waits.is_person() { answers.next() } else { None };
            settled.push(self.settle(planned, waits, answer).await?);
        }
        Ok(settled)
    }

    /// All questions are open at once; meanwhile the calls that wait for nobody are made in order, and each other when its answer
    /// is there. A tool that asks lets the next one go first.
    async fn proceed(&self, calls: &[Planned], waits: &[Waits]) -> Result<Vec<Settled>, ReasonError> {
        let all = || calls.iter().zip(waits).enumerate();
        let free = all().filter(|(_, (_, waits))| !waits.is_person());
        let free = free.map(|(place, (planned, waits))| async move {
            Ok::<_, ReasonError>((place, self.settle(planned, waits, None).await?))
        });
        let waiting = all().filter(|(_, (_, waits))| waits.is_person());
        let waiting = waiting.map(|(place, (planned, waits))| async move {
            let answer = self.answer(planned).await?;
            Ok::<_, ReasonError>((place, self.settle(planned, waits, Some(answer)).await?))
        });
        // A failure withdraws the questions: nobody is asked for the sake of a run that ends.
        let (mut settled, waiting) = try_join(try_join_all(free), try_join_all(waiting)).await?;
        settled.extend(waiting);
        settled.sort_by_key(|(place, _)| *place);
        Ok(settled.into_iter().map(|(_, settled)| settled).collect())
    }

    /// Asks what a call waits for.
    pub(super) async fn answer(&self, planned: &Planned) -> Result<Value, ReasonError> {
        let (id, ask) = self.question(planned).await?;
        Ok(self.ctx.interrupt(&id, ask).await?)
    }
}
