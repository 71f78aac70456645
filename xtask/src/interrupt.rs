//! Ctrl-C and requests to end: noted, so that what was started is stopped in order.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

static HAPPENED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From here on the first signal is noted; the second ends this program at once.
pub(crate) fn watch() -> io::Result<()> {
    let happened = HAPPENED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal finds the flag down.
        flag::register_conditional_shutdown(signal, 1, Arc::clone(happened))?;
        flag::register(signal, Arc::clone(happened))?;
    }
    Ok(())
}

/// A signal came.
pub(crate) fn happened() -> bool {
    HAPPENED.get().is_some_and(|happened| happened.load(Ordering::Relaxed))
}
