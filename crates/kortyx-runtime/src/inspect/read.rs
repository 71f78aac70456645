//! Reading what is stored, as far as it reads.

use super::{RunView, Unread, sight};
use crate::{
    engine,
    event::{Event, EventBatch},
    state::{ROOT, RunState, parse_ask_key},
    turn::RestoreError,
};

/// Looks at a stored run: its last snapshot, and the entries recorded after it, oldest first.
///
/// Nothing is run and no workflow has to be registered. Entries are taken as far as they read: [`RunView::unread`] says where that ended.
///
/// ```
/// use kortyx_runtime::inspect;
///
/// fn print(snapshot: &[u8], entries: &[&[u8]]) -> Result<(), kortyx_runtime::RestoreError> {
///     for activation in inspect::view(snapshot, entries)?.activations {
///         println!("{}#{}: {} calls", activation.node, activation.visit, activation.calls.len());
///     }
///     Ok(())
/// }
/// ```
///
/// # Errors
/// The snapshot does not read, or a newer release stored it.
pub fn view(snapshot: &[u8], entries: &[&[u8]]) -> Result<RunView, RestoreError> {
    let mut state: RunState = engine::read(snapshot)?;
    engine::check_version(state.v)?;
    check(&state).map_err(RestoreError::Corrupt)?;
    let (mut ended, mut unread) = (Vec::new(), None);
    for (entry, bytes) in entries.iter().enumerate() {
        let applied = batch(bytes).and_then(|batch| {
            batch.events.into_iter().try_for_each(|event| {
                ended.extend(sight::ending(&state, &event));
                let calls = matches!(event, Event::Called { .. });
                state.apply(event);
                if calls { check(&state) } else { Ok(()) }
            })
        });
        if let Err(reason) = applied {
            unread = Some(Unread { entry, reason });
            break;
        }
    }
    Ok(sight::of(&state, ended, unread))
}

fn batch(bytes: &[u8]) -> Result<EventBatch, String> {
    let told = |error: RestoreError| match error {
        RestoreError::Corrupt(reason) => reason,
        RestoreError::Parked(failure) => failure.message,
    };
    let batch: EventBatch = engine::read(bytes).map_err(told)?;
    engine::check_version(batch.v).map_err(told)?;
    Ok(batch)
}

/// Frames must be a tree that grows downwards: applying events follows it upwards.
fn check(state: &RunState) -> Result<(), String> {
    for (id, frame) in &state.frames {
        let Some(parent) = &frame.parent else { continue };
        let caller = state.activations.get(&parent.activation);
        if *id == ROOT || caller.is_some_and(|caller| caller.frame >= *id) {
            return Err(format!("frame {id} is called from within itself"));
        }
    }
    Ok(())
}

/// The visit in which a question was asked, by the key that storage keeps with it: [`ActivationView::id`](super::ActivationView::id).
/// `None` for a text that is no such key.
pub fn visit_of(ask: &str) -> Option<u32> {
    parse_ask_key(ask).map(|(activation, _)| activation)
}
