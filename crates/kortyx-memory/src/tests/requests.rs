//! What stores are asked for.

use std::time::Duration;

use bytes::Bytes;
use kortyx_protocol::{CheckpointId, RequestId, ResumeToken};
use kortyx_store::{AskKey, Driver, NewAnswer, NewCheckpoint, NewInterrupt, Proof, WorkflowPin};

pub(super) const TTL: Duration = Duration::from_secs(30);

pub(super) fn pin(version: u64) -> WorkflowPin {
    WorkflowPin { id: "review".into(), version: version.to_string().into(), fingerprint: "0a".into() }
}

pub(super) fn driver() -> Driver {
    Driver { id: "driver".to_owned(), ttl: TTL }
}

pub(super) fn ask(name: &str, expires_in: Duration) -> NewInterrupt {
    NewInterrupt {
        request_id: RequestId::new(name).unwrap(),
        token: ResumeToken::parse(format!("token of {name}")).unwrap(),
        ask: AskKey(name.to_owned()),
        workflow: "review".to_owned(),
        node: "approve".to_owned(),
        question: Bytes::from_static(b"{}"),
        expires_in,
        default: None,
        optional_cancel: false,
        after_response_completed: false,
    }
}

pub(super) fn answer(request_id: RequestId, token: ResumeToken) -> NewAnswer {
    NewAnswer {
        request_id,
        proof: Proof::Token(token),
        session_id: None,
        run_id: None,
        answer: Bytes::from_static(b"answer"),
        cancel: false,
        actor: None,
    }
}

pub(super) fn checkpoint(name: &str) -> NewCheckpoint {
    NewCheckpoint {
        id: CheckpointId::new(name).unwrap(),
        label: None,
        nodes: Vec::new(),
        workflow: "review".to_owned(),
        workflow_version: None,
        state: Bytes::new(),
        structured_stream_ids: Vec::new(),
    }
}
