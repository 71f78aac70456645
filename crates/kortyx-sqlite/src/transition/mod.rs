//! The transitions that share commits: what each wants to see, and what it decides.

mod answer;
mod checkpoint;
mod lease;
mod open;
mod record;
mod turn;

use kortyx_store::StoreError;

pub(crate) use self::{
    checkpoint::Append,
    lease::{Release, Renew},
};
use crate::batch::{Batch, Wants};

/// A state transition over a [`Batch`].
pub(crate) trait Transition: Send + 'static {
    /// What it is called in errors.
    const NAME: &'static str;

    /// What it says when it is committed.
    type Outcome: Send + 'static;

    /// Asks for the rows that it decides by.
    fn wants(&self, wants: &mut Wants);

    /// Decides. May be called again over fresh rows, when the commit of the first batch failed; changes nothing when it
    /// fails.
    fn apply(&self, batch: &mut Batch) -> Result<Self::Outcome, StoreError>;
}
