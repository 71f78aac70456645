//! What goes on beside a run that takes its time: its lease is renewed, answers and requests to stop reach it, what it says
//! is stored.

use std::time::Duration;

use kortyx_runtime::ExecutionHandle;
use kortyx_store::StoreErrorKind;
use tokio::time::{Instant, sleep_until};

use super::{Live, Stop, delivered, outcome};
use crate::{error::chain, host::jittered};

/// Keeps a run until it may no longer be driven here.
pub(super) async fn keep(live: &Live, handle: &ExecutionHandle) -> Stop {
    let (mut look_at, mut flush_at) = (Instant::now() + pause(live), None);
    loop {
        tokio::select! {
            () = live.attention.notified() => {}
            () = sleep_until(look_at) => {}
            () = live.log.begun.notified(), if flush_at.is_none() => {
                flush_at = Some(Instant::now() + live.agent.settings.output_delay);
                continue;
            }
            () = reached(flush_at) => {
                flush_at = None;
                if !live.log.is_empty() {
                    handle.flush();
                }
                continue;
            }
            () = live.agent.killed.cancelled() => return Stop::Killed,
        }
        look_at = Instant::now() + pause(live);
        if let Err(stop) = look(live, handle).await {
            return stop;
        }
    }
}

async fn reached(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn pause(live: &Live) -> Duration {
    let settings = &live.agent.settings;
    let renewal = settings.lease_ttl / 3;
    if live.has_published() { jittered(settings.attention).min(renewal) } else { renewal }
}

async fn look(live: &Live, handle: &ExecutionHandle) -> Result<(), Stop> {
    if let Some(lease) = live.lease() {
        let seen = handle.answers_seen();
        match live.agent.store.renew(&lease, live.agent.settings.lease_ttl, seen).await {
            Ok(renewed) => {
                if renewed.cancel_requested {
                    live.cancel();
                }
                live.note_answers(!renewed.answers.is_empty());
                let answers = delivered(&renewed.answers);
                handle.deliver(answers.map_err(|error| Stop::Parked(outcome::corrupt(&error.to_string())))?);
            }
            Err(error) if error.kind() == StoreErrorKind::LeaseLost => return Err(Stop::LeaseLost),
            // Nobody else takes the run over before the lease runs out, and writes are fenced.
            Err(error) => {
                tracing::warn!(run_id = %live.run.run_id, error = chain(&error), "a lease was not renewed");
                return Ok(());
            }
        }
    }
    if live.is_cancelled() || live.is_abandoned() {
        handle.cancel();
    }
    Ok(())
}
