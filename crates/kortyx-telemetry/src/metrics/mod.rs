//! What happens in runs and stores as numbers, for any recorder of the [`metrics`](https://docs.rs/metrics) facade.
//!
//! Install the recorder first, of an exporter of your choice: what is measured before is lost. Then there are three sources.
//!
//! | source | counts |
//! | --- | --- |
//! | [`Metrics`], a sink of the agent | what this process does: questions, answers, runs, models, tools |
//! | [`MeteredStore`] around the store | how long its calls take and how they fail |
//! | [`Watch`], a task | what there is now: open questions and runs in the store, driven runs, streams, the reporter's queue |
//!
//! [`names`] has every metric. A recorder that panics costs what it was told, and no run.

pub mod names;
mod sink;
mod store;
mod times;
mod watch;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering},
};

pub use self::{sink::Metrics, store::MeteredStore, watch::Watch};

static HAS_PANICKED: AtomicBool = AtomicBool::new(false);

/// Tells the recorder something; a panic of it ends here, with a line in the log for the first.
fn quietly(tell: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(tell)).is_err() && !HAS_PANICKED.swap(true, Ordering::Relaxed) {
        tracing::error!("the recorder of metrics panicked; what it was told is lost, and this is not logged again");
    }
}
