//! What the tests of this crate share: a file, stores over it, and short ways to a run.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails in a test panics")]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use kortyx_protocol::{RequestId, ResumeToken, RunId, SessionId};
use kortyx_sqlite::{SqliteConfig, SqliteStore};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, AskKey, Claimed, Drive, Driver, Finish, InterruptRecord, Lease, NewAnswer,
    NewInterrupt, NewRun, OpenRun, Proof, Record, RunRef, Store, StoreError, Suspend, Suspended, TerminalStatus,
    WorkflowPin,
};
use sqlx::{AssertSqlSafe, ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};

/// A place for a database that goes with the test.
pub(crate) struct Place {
    pub(crate) directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("kortyx.db")
    }

    pub(crate) fn config(&self) -> SqliteConfig {
        SqliteConfig::new(self.path())
    }

    /// A store over the file, set up.
    pub(crate) async fn store(&self) -> SqliteStore {
        let store = SqliteStore::open(self.config()).await.unwrap();
        store.setup().await.unwrap();
        store
    }

    /// Runs a statement beside the store.
    pub(crate) async fn execute(&self, sql: &str) {
        let mut connection = connect(&self.path()).await;
        sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    }
}

/// A connection beside the store's, to see and to spoil what it keeps.
pub(crate) async fn connect(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).connect().await.unwrap()
}

fn unique(kind: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{kind}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn pin() -> WorkflowPin {
    WorkflowPin { id: "review".into(), version: "1".into(), fingerprint: "5e".repeat(32).into() }
}

pub(crate) fn driver() -> Driver {
    Driver { id: "driver".to_owned(), ttl: Duration::from_secs(30) }
}

pub(crate) fn new_run() -> NewRun {
    NewRun {
        run_id: RunId::new(unique("run")).unwrap(),
        session_id: SessionId::new(unique("session")).unwrap(),
        workflow: pin(),
        context: BTreeMap::new(),
    }
}

pub(crate) fn opening(run: NewRun) -> OpenRun {
    OpenRun { run, driver: driver(), snapshot: Bytes::from_static(b"opened") }
}

pub(crate) fn ask(key: &str) -> NewInterrupt {
    NewInterrupt {
        request_id: RequestId::new(unique("human")).unwrap(),
        token: ResumeToken::parse(unique("token")).unwrap(),
        ask: AskKey(key.to_owned()),
        workflow: "review".to_owned(),
        node: "approve".to_owned(),
        question: Bytes::from_static(b"{}"),
        expires_in: Duration::from_mins(15),
        default: None,
        optional_cancel: false,
        after_response_completed: false,
    }
}

pub(crate) fn suspending(run: RunRef, publish: Vec<NewInterrupt>) -> Suspend {
    Suspend {
        run,
        workflow: pin(),
        snapshot: Bytes::from_static(b"suspended"),
        publish,
        withdraw: Vec::new(),
        answers_seen: 0,
        checkpoint: None,
    }
}

/// A run that waits for an answer.
pub(crate) async fn paused(store: &SqliteStore) -> Result<InterruptRecord, StoreError> {
    match store.suspend(suspending(RunRef::New(new_run(), driver()), vec![ask("a")])).await? {
        Suspended::Saved(mut open) => Ok(open.remove(0)),
        other => panic!("expected a saved suspension, got {other:?}"),
    }
}

pub(crate) fn answering(question: &InterruptRecord) -> AnswerRequest {
    let answer = NewAnswer {
        request_id: question.request_id.clone(),
        proof: Proof::Token(question.token.clone()),
        session_id: None,
        run_id: None,
        answer: Bytes::from_static(b"\"yes\""),
        cancel: false,
        actor: None,
    };
    AnswerRequest { answers: vec![answer], driver: Some(driver()) }
}

/// Answers a question and is handed its run.
pub(crate) async fn granted(store: &SqliteStore, question: &InterruptRecord) -> Claimed {
    match store.answer(answering(question)).await.unwrap() {
        AnswerOutcome::Accepted(_, Drive::Granted(claimed)) => *claimed,
        other => panic!("expected a granted lease, got {other:?}"),
    }
}

pub(crate) fn recording(lease: &Lease) -> Record {
    Record { lease: lease.clone(), entries: Vec::new(), publish: Vec::new(), withdraw: Vec::new(), answers_seen: 0 }
}

pub(crate) fn finishing(claimed: Claimed) -> Finish {
    Finish {
        run: RunRef::Held(claimed.lease),
        workflow: pin(),
        status: TerminalStatus::Completed,
        outcome: Bytes::from_static(b"done"),
        reason: None,
        answers_seen: claimed.run.answers,
        checkpoint: None,
    }
}
