//! Hints that wake drivers and workers before they would poll.

use kortyx_protocol::RunId;
use tokio::sync::broadcast;

/// Something changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signal {
    /// A run that is being driven has an answer or a request to stop.
    Attention(RunId),
    /// A run became claimable.
    Work,
}

/// A stream of hints. A receiver that lags misses some, which costs one polling interval.
pub type Signals = broadcast::Receiver<Signal>;
