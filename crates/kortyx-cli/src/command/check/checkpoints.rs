//! What must hold of a session's checkpoints.

use kortyx_protocol::SessionId;
use kortyx_store::CheckpointRecord;

use super::Findings;
use crate::{error::CliError, open::Inspected};

/// Checks the chain of a session, and says how many checkpoints it has.
pub(super) async fn check(
    session: &SessionId,
    store: &Inspected,
    opaque: bool,
    findings: &mut Findings,
) -> Result<u64, CliError> {
    let records = store.store().list_checkpoints(session).await?;
    chain(session, &records, findings);
    for record in records.iter().filter(|_| !opaque) {
        if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(&record.checkpoint.state) {
            findings.broken(&record.checkpoint.id, "states-read", error.to_string());
        }
    }
    Ok(u64::try_from(records.len()).unwrap_or(u64::MAX))
}

/// Each follows the one before; of the first, what was before may be gone.
fn chain(session: &SessionId, records: &[CheckpointRecord], findings: &mut Findings) {
    for record in records {
        let id = &record.checkpoint.id;
        if record.abandoned || record.session_id != *session {
            findings.broken(id, "checkpoints-are-of-their-session", "it is listed where it does not belong");
        }
    }
    for (before, after) in records.iter().zip(records.iter().skip(1)) {
        let id = &after.checkpoint.id;
        if after.turn_index <= before.turn_index {
            findings.broken(id, "turns-go-on", format!("turn {} follows {}", after.turn_index, before.turn_index));
        }
        if after.parent.as_ref() != Some(&before.checkpoint.id) {
            findings.broken(id, "checkpoints-are-a-chain", format!("it does not follow {}", before.checkpoint.id));
        }
    }
}
