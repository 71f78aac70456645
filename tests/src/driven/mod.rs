//! What the processes drive that tests kill, stop and race: a subject for the harnesses of `kortyx-testkit`.

mod flow;
mod leftovers;
mod reasoning;
mod subject;
mod verdict;

pub use flow::Flows;
pub use subject::{Driven, Flow};
