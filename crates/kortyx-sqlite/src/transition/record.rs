//! Recording entries while a driver works.

use kortyx_store::{Record, Recorded, RunRef, StoreError};

use super::Transition;
use crate::batch::{Batch, Wants};

impl Transition for Record {
    const NAME: &'static str = "record";
    type Outcome = Recorded;

    fn wants(&self, wants: &mut Wants) {
        wants.run(&self.lease.run_id);
        wants.answers(&self.lease.run_id, self.answers_seen);
        wants.new_questions(self.publish.iter().map(|new| &new.request_id));
        if !self.publish.is_empty() || !self.withdraw.is_empty() {
            wants.pending(&self.lease.run_id);
        }
        let checkpoint = self.response.as_ref().and_then(|response| response.checkpoint.as_ref());
        wants.turn(&RunRef::Held(self.lease.clone()), checkpoint);
    }

    fn apply(&self, batch: &mut Batch) -> Result<Recorded, StoreError> {
        let key = batch.held(&self.lease)?;
        batch.check_publish(Some(key), &self.publish, &self.withdraw)?;
        batch.check_response(key, self.response.as_ref())?;
        batch.withdraw(key, &self.withdraw)?;
        let published = batch.publish(key, &self.publish)?;
        batch.respond(key, self.response.as_ref())?;
        let now = batch.now;
        let run = batch.run_mut(key)?;
        for entry in &self.entries {
            run.add_entry(key, entry);
        }
        run.say(key, &self.chunks);
        if !self.entries.is_empty() || !self.publish.is_empty() || !self.withdraw.is_empty() || self.response.is_some()
        {
            run.changed(now);
        }
        let answers = run.answers_above(self.answers_seen);
        Ok(Recorded { answers, published, cancel_requested: run.record.cancel_requested })
    }
}
