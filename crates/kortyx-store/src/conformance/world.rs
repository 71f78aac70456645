//! What a case works with: a fresh store, unique ids, and short ways to the usual situations.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use kortyx_protocol::{CheckpointId, RequestId, ResumeToken, RunId, SessionId};

use super::Backend;
pub(super) use super::requests::{
    LEASE, claiming as claim_request, driver, opening, pin, recording as record, saved, suspending as suspend,
};
use crate::{
    AnswerOutcome, AnswerRequest, AskKey, CancelOutcome, CancelRequest, CancelTarget, CheckpointRecord, Claimed,
    ExpireRequest, ExpiredBatch, Finish, InterruptQuery, InterruptRecord, InterruptStatus, Lease, NewAnswer,
    NewCheckpoint, NewInterrupt, NewRun, Proof, Record, Reissue, RunRecord, RunRef, RunStatus, Scope, Store,
    TerminalStatus,
};

/// How long a question stays open.
pub(super) const OPEN_FOR: Duration = Duration::from_mins(15);
/// More than any clock of a store under test drifts during a case.
pub(super) const MARGIN: Duration = Duration::from_secs(10);

/// A fresh store and the means to work with it.
pub(super) struct World<'a> {
    pub(super) backend: &'a dyn Backend,
    pub(super) store: Arc<dyn Store>,
    next: AtomicU64,
}

/// A run that waits for people.
pub(super) struct Paused {
    pub(super) run: NewRun,
    pub(super) open: Vec<InterruptRecord>,
}

impl<'a> World<'a> {
    pub(super) async fn new(backend: &'a dyn Backend) -> Result<Self, String> {
        let store = backend.store().await.map_err(|error| format!("no store: {error}"))?;
        Ok(Self { backend, store, next: AtomicU64::new(1) })
    }

    /// Moves the store's clock.
    pub(super) fn advance(&self, by: Duration) {
        self.backend.advance(by);
    }

    /// The store and, where there can be one, another instance over the same data.
    pub(super) async fn instances(&self) -> Vec<Arc<dyn Store>> {
        let mut stores = vec![Arc::clone(&self.store)];
        stores.extend(self.backend.reopen().await);
        stores
    }

    pub(super) fn unique(&self, kind: &str) -> String {
        format!("{kind}-{}", self.next.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn run_id(&self) -> RunId {
        RunId::new(self.unique("run")).unwrap()
    }

    pub(super) fn session_id(&self) -> SessionId {
        SessionId::new(self.unique("session")).unwrap()
    }

    pub(super) fn request_id(&self) -> RequestId {
        RequestId::new(self.unique("human")).unwrap()
    }

    pub(super) fn checkpoint_id(&self) -> CheckpointId {
        CheckpointId::new(self.unique("cp")).unwrap()
    }

    pub(super) fn token(&self) -> ResumeToken {
        ResumeToken::parse(self.unique("token")).unwrap()
    }

    /// A run of a session of its own.
    pub(super) fn new_run(&self) -> NewRun {
        self.new_run_in(&self.session_id())
    }

    pub(super) fn new_run_in(&self, session: &SessionId) -> NewRun {
        let run_id = self.placed(session).map_or_else(|| self.run_id(), RunId::from_random);
        NewRun { run_id, session_id: session.clone(), workflow: pin(), context: BTreeMap::new(), follows: None }
    }

    /// What a fresh id in this session is made of, every other time and where the store says where sessions live.
    fn placed(&self, session: &SessionId) -> Option<[u8; 16]> {
        let placement = self.store.placement(session)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number % 2 == 1).then(|| placement.mark((u128::from(number) << 64).to_be_bytes()))
    }

    /// A question that stays open for [`OPEN_FOR`] and has no default.
    pub(super) fn ask(&self, key: &str) -> NewInterrupt {
        NewInterrupt {
            request_id: self.request_id(),
            token: self.token(),
            ask: AskKey(key.to_owned()),
            workflow: "review".to_owned(),
            node: "approve".to_owned(),
            question: Bytes::from(format!(r#"{{"v":1,"question":"{key}?"}}"#)),
            expires_in: OPEN_FOR,
            default: None,
            optional_cancel: false,
            after_response_completed: false,
        }
    }

    pub(super) fn asks(&self, keys: &[&str]) -> Vec<NewInterrupt> {
        keys.iter().map(|key| self.ask(key)).collect()
    }

    pub(super) fn new_checkpoint(&self, label: &str) -> NewCheckpoint {
        NewCheckpoint {
            id: self.checkpoint_id(),
            label: Some(label.to_owned()),
            nodes: vec!["draft".to_owned(), "approve".to_owned()],
            workflow: "review".to_owned(),
            workflow_version: Some("1".to_owned()),
            state: Bytes::from(format!(r#"{{"turn":"{label}"}}"#)),
            structured_stream_ids: vec![self.unique("stream")],
        }
    }

    /// Questions for this session.
    fn asks_in(&self, session: &SessionId, keys: &[&str]) -> Vec<NewInterrupt> {
        let mut asks = self.asks(keys);
        for ask in &mut asks {
            if let Some(placed) = self.placed(session) {
                ask.request_id = RequestId::from_random(placed);
            }
        }
        asks
    }

    /// New ids for these questions.
    pub(super) fn reissue(&self, open: &[InterruptRecord]) -> Vec<Reissue> {
        open.iter()
            .map(|question| Reissue {
                from: question.request_id.clone(),
                request_id: self.request_id(),
                token: self.token(),
            })
            .collect()
    }

    /// A new run that is being driven.
    pub(super) async fn driven(&self) -> Lease {
        self.driven_run(self.new_run()).await
    }

    pub(super) async fn driven_run(&self, run: NewRun) -> Lease {
        self.store.open(opening(run)).await.unwrap()
    }

    /// A new run that waits for answers to these questions.
    pub(super) async fn paused(&self, keys: &[&str]) -> Paused {
        let run = self.new_run();
        let asks = self.asks_in(&run.session_id, keys);
        self.paused_run(run, asks).await
    }

    pub(super) async fn paused_run(&self, run: NewRun, publish: Vec<NewInterrupt>) -> Paused {
        let open = saved(self.store.suspend(suspend(RunRef::New(run.clone(), driver()), publish)).await.unwrap());
        Paused { run, open }
    }

    /// Publishes questions of a run that is being driven.
    pub(super) async fn published(&self, lease: &Lease, publish: Vec<NewInterrupt>) -> Vec<InterruptRecord> {
        self.store.record(Record { publish, ..record(lease) }).await.unwrap().published
    }

    /// A run that waits, set aside.
    pub(super) async fn parked(&self, keys: &[&str]) -> Paused {
        let run = self.new_run();
        let lease = self.driven_run(run.clone()).await;
        let open = self.published(&lease, self.asks_in(&run.session_id, keys)).await;
        self.store.park(crate::Park { lease, reason: "changed".to_owned() }).await.unwrap();
        Paused { run, open }
    }

    /// Answers with the token, ready to drive.
    pub(super) async fn answer(&self, question: &InterruptRecord, text: &str) -> AnswerOutcome {
        self.answer_all(vec![answer(question, text)]).await
    }

    pub(super) async fn answer_all(&self, answers: Vec<NewAnswer>) -> AnswerOutcome {
        self.store.answer(AnswerRequest { answers, driver: Some(driver()) }).await.unwrap()
    }

    /// Answers with the token and leaves the run to a worker.
    pub(super) async fn answer_and_leave(&self, question: &InterruptRecord, text: &str) -> AnswerOutcome {
        self.store.answer(AnswerRequest { answers: vec![answer(question, text)], driver: None }).await.unwrap()
    }

    /// Claims whatever a worker that knows [`pin`] may claim.
    pub(super) async fn claim(&self) -> Vec<Claimed> {
        self.store.claim_orphans(claim_request()).await.unwrap()
    }

    pub(super) async fn expire(&self) -> ExpiredBatch {
        self.store.expire_due(expire_request()).await.unwrap()
    }

    pub(super) async fn cancel(&self, run_id: &RunId) -> Vec<CancelOutcome> {
        self.store.cancel(cancel_request(CancelTarget::Run(run_id.clone()))).await.unwrap()
    }

    /// Ends a run that is being driven.
    pub(super) async fn complete(&self, lease: &Lease, answers_seen: u64) {
        let request = Finish { answers_seen, ..finish(RunRef::Held(lease.clone()), TerminalStatus::Completed) };
        assert_eq!(self.store.finish(request).await.unwrap(), crate::Finished::Done);
    }

    pub(super) async fn run(&self, run_id: &RunId) -> RunRecord {
        self.store.run(run_id).await.unwrap().expect("the run is stored")
    }

    pub(super) async fn status(&self, run_id: &RunId) -> RunStatus {
        self.run(run_id).await.status
    }

    pub(super) async fn question(&self, id: &RequestId) -> InterruptRecord {
        self.store.interrupt(id).await.unwrap().expect("the question is stored")
    }

    pub(super) async fn question_status(&self, question: &InterruptRecord) -> InterruptStatus {
        self.question(&question.request_id).await.status
    }

    /// Everything that a query lists, over all of its pages.
    pub(super) async fn list(&self, mut query: InterruptQuery) -> Vec<InterruptRecord> {
        let mut all = Vec::new();
        for _ in 0..1_000 {
            let page = self.store.list_interrupts(query.clone()).await.unwrap();
            all.extend(page.interrupts);
            match page.next {
                Some(next) => query.cursor = Some(next),
                None => return all,
            }
        }
        panic!("a listing has no end");
    }

    /// The open questions of a run, as listed.
    pub(super) async fn open(&self, run_id: &RunId) -> Vec<RequestId> {
        ids(&self.list(of_run(run_id)).await)
    }

    pub(super) async fn append(&self, session: &SessionId, label: &str) -> CheckpointRecord {
        let mut checkpoint = self.new_checkpoint(label);
        if let Some(placed) = self.placed(session) {
            checkpoint.id = CheckpointId::from_random(placed);
        }
        self.store.append_checkpoint(session, checkpoint).await.unwrap()
    }
}

pub(super) fn bytes(text: &str) -> Bytes {
    Bytes::from(text.to_owned())
}

/// A text answer as canonical JSON.
pub(super) fn text(answer: &str) -> Bytes {
    Bytes::from(format!(r#"{{"text":"{answer}","type":"text"}}"#))
}

pub(super) fn finish(run: RunRef, status: TerminalStatus) -> Finish {
    Finish {
        run,
        workflow: pin(),
        status,
        outcome: bytes("outcome"),
        reason: None,
        chunks: Vec::new(),
        answers_seen: 0,
        checkpoint: None,
    }
}

/// An answer with the question's token.
pub(super) fn answer(question: &InterruptRecord, answer: &str) -> NewAnswer {
    NewAnswer {
        request_id: question.request_id.clone(),
        proof: Proof::Token(question.token.clone()),
        session_id: None,
        run_id: None,
        answer: text(answer),
        cancel: false,
        actor: Some("ann".to_owned()),
    }
}

/// A cancellation with the question's token.
pub(super) fn cancellation(question: &InterruptRecord) -> NewAnswer {
    NewAnswer { answer: bytes(r#"{"type":"cancel"}"#), cancel: true, ..answer(question, "") }
}

pub(super) fn expire_request() -> ExpireRequest {
    ExpireRequest { driver: driver(), workflows: vec![pin()], limit: 100 }
}

pub(super) fn cancel_request(target: CancelTarget) -> CancelRequest {
    CancelRequest { target, scope: None, reason: Some("not needed".to_owned()) }
}

pub(super) fn of_run(run_id: &RunId) -> InterruptQuery {
    InterruptQuery { run_id: Some(run_id.clone()), limit: 100, ..InterruptQuery::default() }
}

pub(super) fn in_scope(scope: Scope) -> InterruptQuery {
    InterruptQuery { scope, limit: 100, ..InterruptQuery::default() }
}

pub(super) fn ids(questions: &[InterruptRecord]) -> Vec<RequestId> {
    questions.iter().map(|question| question.request_id.clone()).collect()
}

pub(super) fn keys(questions: &[InterruptRecord]) -> Vec<&str> {
    questions.iter().map(|question| question.ask.0.as_str()).collect()
}

/// Runs all at once, each in a task of its own, and gives their results in order.
pub(super) async fn at_once<T, F>(futures: impl IntoIterator<Item = F>) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let tasks: Vec<_> = futures.into_iter().map(tokio::spawn).collect();
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}
