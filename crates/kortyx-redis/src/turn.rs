//! Checkpoints as scripts give them, read into records.

use std::collections::BTreeMap;

use bytes::Bytes;
use kortyx_protocol::{CheckpointId, SessionId, Timestamp};
use kortyx_store::{CheckpointRecord, NewCheckpoint};

use crate::{
    pack::Unpacker,
    reply::{Damage, Parts, Reading, Reply},
    row::{parsed, questions, run_id, versioned},
    snapshot,
};

/// What is known of a checkpoint beside what it was given with.
fn known(replies: Vec<Reply>) -> Reading<BTreeMap<String, Bytes>> {
    let (mut known, mut parts) = (BTreeMap::new(), replies.into_iter());
    while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
        known.insert(name.text()?, value.bytes()?);
    }
    Ok(known)
}

fn given_with(id: CheckpointId, given: Reply) -> Reading<NewCheckpoint> {
    let mut record = versioned(given.bytes()?)?;
    let (workflow, workflow_version, label) = (record.text()?, record.option()?, record.option()?);
    let (nodes, structured_stream_ids) = (texts(&mut record)?, texts(&mut record)?);
    Ok(NewCheckpoint { id, label, nodes, workflow, workflow_version, state: record.bytes()?, structured_stream_ids })
}

fn texts(record: &mut Unpacker) -> Reading<Vec<String>> {
    let count = record.count()?;
    (0..count).map(|_| record.text()).collect()
}

pub(crate) fn checkpoint(reply: Reply) -> Reading<CheckpointRecord> {
    let mut parts = Parts::of(reply)?;
    let mut known = known(parts.list()?)?;
    let mut find = |name: &str| known.remove(name).map(|value| Reply::Bytes(value).text()).transpose();
    let lacks = |name: &str| Damage::new(format!("a checkpoint lacks its {name}"));
    let checkpoint_id = |text: String| parsed("a checkpoint's id", CheckpointId::new(text));
    let session_id = |text: String| parsed("a session's id", SessionId::new(text));
    let number = |text: String| parsed("a number of a checkpoint", text.parse::<u64>());
    let new = given_with(checkpoint_id(find("id")?.ok_or_else(|| lacks("id"))?)?, parts.next()?)?;
    let session = session_id(find("session")?.ok_or_else(|| lacks("session"))?)?;
    let turn = number(find("turn")?.ok_or_else(|| lacks("turn"))?)?;
    let created = number(find("created")?.ok_or_else(|| lacks("time"))?)?;
    let created = Timestamp::from_millis(i64::try_from(created).unwrap_or(i64::MAX));
    let mut record = CheckpointRecord::new(new, session, turn, created);
    record.parent = find("parent")?.map(checkpoint_id).transpose()?;
    record.parent_session = find("psession")?.map(session_id).transpose()?;
    record.forked_from = find("forked")?.map(checkpoint_id).transpose()?;
    record.run_id = find("run")?.map(run_id).transpose()?;
    record.snapshot = known.remove("snapshot").map(snapshot::given).transpose()?;
    record.interrupts = questions(parts.list()?)?;
    Ok(record)
}

pub(crate) fn checkpoints(replies: Vec<Reply>) -> Reading<Vec<CheckpointRecord>> {
    replies.into_iter().map(checkpoint).collect()
}
