//! What the driver program and the tests that kill it have in common: the workflows, the log of what happened, and what they
//! say to each other.

mod flow;
mod log;
mod message;

pub use flow::{EFFECTS, Flows, QUESTIONS, SESSION, answer_to, number};
pub use log::{Event, Line, Log};
pub use message::{Outcome, Race};
