//! Opening a checkpoint's questions again, in a new run.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use kortyx_protocol::{CheckpointId, RequestId, RunId, SessionId};
use kortyx_store::{InterruptRecord, InterruptStatus, NewRun, Reissue, RunStatus, Scalar, StoreError};

use crate::{
    batch::{Batch, Seed, Wants},
    client::values,
    read::{BY_ID, Stored, stored_checkpoints},
    work::Work,
};

/// Whether a checkpoint's open questions can be opened again.
pub(super) enum Reopening {
    /// As these, of which there may be none.
    Ready(Vec<InterruptRecord>),
    Expired(RequestId),
    Mismatched,
}

/// A checkpoint with all that belongs to it.
pub(super) async fn find(work: &mut Work<'_>, id: &CheckpointId) -> Result<Option<Stored>, StoreError> {
    let rows = work.fetch(BY_ID, values![id.as_str()]).await?;
    Ok(stored_checkpoints(&rows).map_err(|malformed| malformed.told(work.batch.operation))?.into_iter().next())
}

/// Loads whether the ids of the new run and its questions are taken.
pub(super) async fn load_taken(work: &mut Work<'_>, run_id: &RunId, reissue: &[Reissue]) -> Result<(), StoreError> {
    let mut wants = Wants::default();
    wants.new_run(run_id);
    wants.new_questions(reissue.iter().map(|reissue| &reissue.request_id));
    work.load_wants(&wants).await
}

/// Gives a checkpoint's questions their new ids.
pub(super) fn reopening(batch: &Batch, stored: &Stored, reissue: &[Reissue]) -> Reopening {
    let open = &stored.record.interrupts;
    if let Some(expired) = open.iter().find(|question| question.expires_at <= batch.now) {
        return Reopening::Expired(expired.request_id.clone());
    }
    let mut fresh: HashMap<_, _> = reissue.iter().map(|reissue| (&reissue.from, reissue)).collect();
    if fresh.len() != open.len() || reissue.len() != open.len() {
        return Reopening::Mismatched;
    }
    let mut questions = Vec::with_capacity(open.len());
    for question in open {
        let Some(reissue) = fresh.remove(&question.request_id) else { return Reopening::Mismatched };
        let mut question = question.clone();
        question.request_id = reissue.request_id.clone();
        question.token = reissue.token.clone();
        question.created_at = batch.now;
        question.status = InterruptStatus::Pending;
        questions.push(question);
    }
    Reopening::Ready(questions)
}

/// Refuses ids that are taken, also by each other.
pub(super) fn check_ids(batch: &Batch, run_id: &RunId, questions: &[InterruptRecord]) -> Result<(), StoreError> {
    if questions.is_empty() {
        return Ok(());
    }
    batch.check_run_id(run_id)?;
    batch.check_free(questions.iter().map(|question| &question.request_id))
}

/// Opens the questions in a new run that waits for them; gives them as they are stored.
pub(super) fn reopen(
    batch: &mut Batch,
    stored: &Stored,
    questions: Vec<InterruptRecord>,
    run_id: &RunId,
    session_id: &SessionId,
) -> Result<Vec<InterruptRecord>, StoreError> {
    if questions.is_empty() {
        return Ok(questions);
    }
    let (Some(snapshot), Some(workflow)) = (&stored.record.snapshot, &stored.pin) else {
        return Err(batch.corrupt("a checkpoint with open questions has no snapshot"));
    };
    let context: Arc<BTreeMap<String, Scalar>> = Arc::clone(&stored.context);
    let run = NewRun {
        run_id: run_id.clone(),
        session_id: session_id.clone(),
        workflow: workflow.clone(),
        context: (*context).clone(),
        follows: None,
    };
    let seed =
        Seed { run: &run, workflow, status: RunStatus::Suspended, snapshot: Some(snapshot), answers: stored.answers };
    let key = batch.add_run(&seed)?;
    let mut opened = Vec::with_capacity(questions.len());
    for mut question in questions {
        question.run_id = run_id.clone();
        question.session_id = session_id.clone();
        question.context = Arc::clone(&context);
        batch.open(key, question.clone())?;
        opened.push(question);
    }
    Ok(opened)
}
