//! What each transition hands to its function.

use kortyx_protocol::{RunId, SessionId, Timestamp};
use kortyx_store::{
    AnswerRequest, CancelRequest, CancelTarget, ClaimRequest, ExpireRequest, Finish, Fork, NewAnswer, OpenRun, Proof,
    Record, Retention, Rollback, RunStatus, Suspend,
};
use serde_json::{Value, json};

use crate::{
    encoding::{encode, secret_digest},
    request::{self, Draft, bounded, millis},
};

pub(crate) fn open(request: &OpenRun) -> Draft {
    Draft::new()
        .with_new_run(&request.run)
        .with("pin", request::pin(&request.run.workflow))
        .with("driver", request::driver(Some(&request.driver)))
        .with_payload("snapshot", &request.snapshot)
        .with_chunks(&request.chunks)
}

pub(crate) fn record(request: &Record) -> Draft {
    let mut draft = Draft::new();
    let entries: Vec<Value> = request.entries.iter().map(|entry| draft.place(entry)).collect();
    draft
        .with_lease(&request.lease)
        .with("entries", entries)
        .with_questions(&request.publish, &request.withdraw)
        .with_response(request.response.as_ref())
        .with_chunks(&request.chunks)
        .with("answers_seen", bounded(request.answers_seen))
}

pub(crate) fn suspend(request: &Suspend) -> Draft {
    Draft::new()
        .with_run(&request.run, &request.workflow)
        .with_payload("snapshot", &request.snapshot)
        .with_questions(&request.publish, &request.withdraw)
        .with_chunks(&request.chunks)
        .with("answers_seen", bounded(request.answers_seen))
        .with_checkpoint(request.checkpoint.as_ref())
}

pub(crate) fn answer(request: &AnswerRequest) -> Draft {
    let mut draft = Draft::new();
    let answers: Vec<Value> = request.answers.iter().map(|given| one_answer(&mut draft, given)).collect();
    draft.with("answers", answers).with("driver", request::driver(request.driver.as_ref()))
}

pub(crate) fn finish(request: &Finish) -> Draft {
    Draft::new()
        .with_run(&request.run, &request.workflow)
        .with("status", RunStatus::from(request.status).as_str())
        .with_payload("outcome", &request.outcome)
        .with("reason", request.reason.as_deref().map(encode))
        .with_chunks(&request.chunks)
        .with("answers_seen", bounded(request.answers_seen))
        .with_checkpoint(request.checkpoint.as_ref())
}

pub(crate) fn claim(request: &ClaimRequest) -> Draft {
    Draft::new()
        .with("driver", request::driver(Some(&request.driver)))
        .with("pins", request::pins(&request.workflows))
        .with("parked_before", request.parked_before.map(Timestamp::as_millis))
        .with("limit", request.limit)
}

pub(crate) fn expire(request: &ExpireRequest) -> Draft {
    Draft::new()
        .with("driver", request::driver(Some(&request.driver)))
        .with("pins", request::pins(&request.workflows))
        .with("limit", request.limit)
}

pub(crate) fn cancel(request: &CancelRequest) -> Draft {
    let (run_id, session_id) = match &request.target {
        CancelTarget::Run(id) => (Some(id.as_str()), None),
        CancelTarget::Session(id) => (None, Some(id.as_str())),
    };
    Draft::new()
        .with("run_id", run_id)
        .with("session_id", session_id)
        .with("scope", request::scope(request.scope.as_ref()))
        .with("reason", request.reason.as_deref().map(encode))
}

pub(crate) fn rollback(request: &Rollback) -> Draft {
    Draft::new()
        .with("checkpoint_id", request.checkpoint_id.as_str())
        .with("new_run_id", request.new_run_id.as_str())
        .with("reissue", request::reissue(&request.reissue))
}

pub(crate) fn fork(request: &Fork) -> Draft {
    Draft::new()
        .with("checkpoint_id", request.checkpoint_id.as_str())
        .with("new_session_id", request.new_session_id.as_str())
        .with("new_checkpoint_id", request.new_checkpoint_id.as_str())
        .with("new_run_id", request.new_run_id.as_str())
        .with("reissue", request::reissue(&request.reissue))
}

pub(crate) fn prune(retention: &Retention, limit: u32) -> Draft {
    Draft::new()
        .with("finished_runs", millis(retention.finished_runs))
        .with("checkpoint_age", millis(retention.checkpoint_age))
        .with("idle_sessions", millis(retention.idle_sessions))
        .with("keep", retention.checkpoints_per_session.max(1))
        .with("limit", limit)
}

fn one_answer(draft: &mut Draft, answer: &NewAnswer) -> Value {
    let (token, scope) = match &answer.proof {
        Proof::Token(token) => (Some(secret_digest(token.expose())), None),
        Proof::Scope(scope) => (None, Some(scope)),
    };
    json!({
        "request_id": answer.request_id.as_str(),
        "token": token,
        "scope": request::scope(scope),
        "session_id": answer.session_id.as_ref().map(SessionId::as_str),
        "run_id": answer.run_id.as_ref().map(RunId::as_str),
        "answer": draft.place(&answer.answer),
        "cancel": answer.cancel,
        "actor": answer.actor.as_deref().map(encode),
    })
}
