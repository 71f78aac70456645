//! The transitions, by topic. Each checks everything before it changes anything.

mod answer;
mod cancel;
mod checkpoints;
mod claim;
mod drive;
mod expire;
mod inspect;
mod list;
mod output;
mod prune;
mod questions;
mod rollback;
mod runs;
mod suspend;
