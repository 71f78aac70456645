#![doc = include_str!("../README.md")]

mod clerk;
mod error;
mod evidence;
mod faulty;
mod kill;
mod log;
mod member;
mod message;
mod outage;
mod process;
mod proxy;
mod race;
mod racers;
mod remains;
mod storm;
mod subject;
mod sweep;
mod switched;
mod world;

pub use error::{BoxError, Error, Invariant};
pub use evidence::Evidence;
pub use faulty::{Faulty, Gate, Op, When};
pub use kill::Kill;
pub use log::{Event, Line, Log};
pub use member::member;
pub use message::{Answering, Outcome, Task};
pub use outage::{Outage, Recovery};
pub use process::{Ended, Process};
pub use proxy::Proxy;
pub use race::{Race, Raced};
pub use racers::Racers;
pub use storm::{Storm, Stormed};
pub use subject::{EndedRun, Subject};
pub use sweep::{Sweep, Swept};
pub use world::{Kit, Start, World};
