//! The store in memory, filled through the port.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use kortyx_memory::MemoryStore;
use kortyx_protocol::SessionId;
use kortyx_store::{AskKey, Driver, NewInterrupt, NewRun, RunRef, Store, Suspend, Suspended, WorkflowPin};

use super::{FEW, Filled, many_of, population, rows};
use crate::{error::Error, options::Options, row::Row, template::Ids};

pub(crate) async fn memory(options: &Options) -> Result<Vec<Row>, Error> {
    let (few, many) = (filled(FEW).await?, filled(many_of(options)).await?);
    rows("memory", &few, &many, options).await
}

pub(super) async fn filled(count: u64) -> Result<Filled, Error> {
    let store = MemoryStore::new();
    for number in 0..count {
        match store.suspend(request(number)?).await? {
            Suspended::Saved(_) => {}
            other => return Err(Error::unexpected(format!("a run must wait, not: {other:?}"))),
        }
    }
    Ok(Filled { store: Arc::new(store), count })
}

pub(super) fn request(number: u64) -> Result<Suspend, Error> {
    let Ids { run_id, request_id, token, .. } = Ids::of(number);
    let workflow = WorkflowPin { id: "review".into(), version: "1".into(), fingerprint: "5e".repeat(32).into() };
    let session_id = SessionId::new(population::session(number))?;
    let run =
        NewRun { run_id, session_id, workflow: workflow.clone(), context: population::context(number), follows: None };
    let asked = NewInterrupt {
        request_id,
        token,
        ask: AskKey("1/approval".into()),
        workflow: "review".into(),
        node: "approve".into(),
        question: Bytes::from_static(population::QUESTION.as_bytes()),
        expires_in: Duration::from_hours(24),
        default: None,
        optional_cancel: false,
        after_response_completed: false,
    };
    Ok(Suspend {
        run: RunRef::New(run, Driver { id: "bench".into(), ttl: Duration::from_secs(30) }),
        workflow,
        snapshot: Bytes::from_static(b"{}"),
        publish: vec![asked],
        withdraw: Vec::new(),
        chunks: Vec::new(),
        answers_seen: 0,
        checkpoint: None,
    })
}
