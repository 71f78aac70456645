//! What the scripts tell the processes that listen.

use kortyx_protocol::RunId;
use kortyx_store::Signal;

/// Reads a message; nothing from a newer release that says something else.
pub(crate) fn read(text: &str) -> Option<Signal> {
    match text.strip_prefix("run ") {
        Some(run_id) => RunId::new(run_id).ok().map(Signal::Attention),
        None => (text == "work").then_some(Signal::Work),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_read_back() {
        assert_eq!(read("work"), Some(Signal::Work));
        assert_eq!(read("run run-1"), Some(Signal::Attention(RunId::new("run-1").unwrap())));
        assert_eq!(read("else"), None);
    }
}
