//! Passing on what other processes notify.

use std::{sync::Arc, time::Duration};

use kortyx_protocol::RunId;
use kortyx_store::Signal;
use tokio::{sync::broadcast, task::JoinHandle};

use crate::{PostgresConfig, client::Notifications};

/// The pause after a connection that listens was lost.
const PAUSE: Duration = Duration::from_secs(1);

/// Starts the task that listens at this address, until it is aborted.
pub(crate) fn start(url: String, config: Arc<PostgresConfig>, signals: broadcast::Sender<Signal>) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            match Notifications::listen(&url, &config).await {
                Ok(mut notifications) => pass_on(&mut notifications, &config, &signals).await,
                Err(failure) => tracing::warn!(reason = failure.message, "nothing listens for other processes"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    })
}

async fn pass_on(notifications: &mut Notifications, config: &PostgresConfig, signals: &broadcast::Sender<Signal>) {
    loop {
        match notifications.next(config).await {
            Ok(Some(text)) => {
                if let Some(signal) = signal(&text) {
                    // Nobody listens: whoever needs it polls.
                    let _ = signals.send(signal);
                }
            }
            // The connection was lost: work may have been missed.
            Ok(None) => {
                let _ = signals.send(Signal::Work);
                return;
            }
            Err(failure) => {
                tracing::debug!(?failure, "the connection that listens was lost");
                let _ = signals.send(Signal::Work);
                return;
            }
        }
    }
}

fn signal(text: &str) -> Option<Signal> {
    match text.strip_prefix("run ") {
        Some(id) => RunId::new(id).ok().map(Signal::Attention),
        None => (text == "work").then_some(Signal::Work),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_transitions_notify_is_passed_on() {
        assert_eq!(signal("work"), Some(Signal::Work));
        assert_eq!(signal("run run-1"), RunId::new("run-1").ok().map(Signal::Attention));
        assert_eq!((signal("run "), signal("other")), (None, None));
    }
}
