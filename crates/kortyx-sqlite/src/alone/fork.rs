//! Starting a new session from a checkpoint of another.

use async_trait::async_trait;
use kortyx_store::{Fork, ForkOutcome, NewCheckpoint, StoreError};

use super::{
    Alone,
    reopen::{Reopening, check_ids, find, load_taken, reopen, reopening},
};
use crate::{
    batch::{Origin, Wants},
    client::values,
    work::Work,
};

#[async_trait]
impl Alone for Fork {
    const NAME: &'static str = "fork";
    type Outcome = ForkOutcome;

    async fn run(&self, work: &mut Work<'_>) -> Result<ForkOutcome, StoreError> {
        let Some(stored) = find(work, &self.checkpoint_id).await? else { return Ok(ForkOutcome::Unknown) };
        let exists = include_str!("../queries/alone/session_exists.sql");
        if !work.fetch(exists, values![self.new_session_id.as_str()]).await?.is_empty() {
            return Ok(ForkOutcome::SessionExists);
        }
        load_taken(work, &self.new_run_id, &self.reissue).await?;
        let mut wants = Wants::default();
        wants.session(&self.new_session_id, &self.new_checkpoint_id);
        work.load_wants(&wants).await?;
        let questions = match reopening(&work.batch, &stored, &self.reissue) {
            Reopening::Ready(questions) => questions,
            Reopening::Expired(request_id) => return Ok(ForkOutcome::Expired(request_id)),
            Reopening::Mismatched => return Ok(ForkOutcome::Mismatched),
        };
        check_ids(&work.batch, &self.new_run_id, &questions)?;
        work.batch.check_checkpoint(Some(&self.new_checkpoint_id))?;
        let (run_id, session_id) = (&self.new_run_id, &self.new_session_id);
        let interrupts = reopen(&mut work.batch, &stored, questions, run_id, session_id)?;
        let source = &stored.record;
        let copy = NewCheckpoint { id: self.new_checkpoint_id.clone(), ..source.checkpoint.clone() };
        let origin = stored.pin.as_ref().map(|pin| Origin { pin, answers: stored.answers });
        let checkpoint = work.batch.append(session_id, &copy, origin, |record| {
            record.parent_session = Some(source.session_id.clone());
            record.forked_from = Some(self.checkpoint_id.clone());
            record.run_id = Some(run_id.clone()).filter(|_| !interrupts.is_empty());
            record.snapshot = source.snapshot.clone().filter(|_| !interrupts.is_empty());
            record.interrupts.clone_from(&interrupts);
        })?;
        Ok(ForkOutcome::Done { checkpoint: Box::new(checkpoint), interrupts })
    }
}
