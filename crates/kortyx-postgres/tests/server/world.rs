//! Short ways to a store and a run.

use std::{
    collections::BTreeMap,
    env,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use kortyx_postgres::{ClockShift, PostgresConfig, PostgresStore};
use kortyx_protocol::{CheckpointId, RequestId, ResumeToken, RunId, SessionId};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, AskKey, Claimed, Drive, Driver, Finish, InterruptRecord, Lease, NewAnswer,
    NewCheckpoint, NewInterrupt, NewRun, OpenRun, Proof, Record, RunRef, Scalar, Store, Suspend, Suspended,
    TerminalStatus, WorkflowPin,
};
use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection, postgres::PgConnectOptions};

use crate::{
    proxy::Proxy,
    support::{Pooler, config_at, fresh_schema, url},
};

/// The address of a pooler in transaction mode, in front of the server.
pub(crate) fn pgbouncer_url() -> String {
    static POOLER: OnceLock<Pooler> = OnceLock::new();
    let own = || POOLER.get_or_init(|| Pooler::start(&url(), "default_pool_size = 8")).url.clone();
    env::var("KORTYX_TEST_PGBOUNCER_URL").unwrap_or_else(|_| own())
}

/// The port of a server's address.
pub(crate) fn port_of(url: &str) -> u16 {
    let place = url.rsplit('@').next().unwrap();
    place.split('/').next().unwrap().rsplit(':').next().unwrap().parse().unwrap()
}

/// The same address at another port.
pub(crate) fn at_port(url: &str, port: u16) -> String {
    url.replace(&format!(":{}/", port_of(url)), &format!(":{port}/"))
}

pub(crate) struct World {
    pub(crate) schema: String,
    pub(crate) shift: ClockShift,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { schema: fresh_schema(), shift: ClockShift::default() }
    }

    pub(crate) fn config(&self) -> PostgresConfig {
        self.config_at(&url())
    }

    pub(crate) fn config_at(&self, url: &str) -> PostgresConfig {
        config_at(url, &self.schema, &self.shift)
    }

    /// A store over the schema, set up.
    pub(crate) async fn store(&self) -> PostgresStore {
        set_up(self.config()).await
    }

    /// A store that reaches the server through a proxy.
    pub(crate) async fn behind(&self, proxy: &Proxy) -> PostgresStore {
        set_up(self.config_at(&at_port(&url(), proxy.port))).await
    }

    /// Runs statements beside the store; `kortyx.` stands for its schema.
    pub(crate) async fn execute(&self, sql: &str) {
        let sql = sql.replace("kortyx.", &format!("{}.", self.schema));
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connect().await).await.unwrap();
    }

    /// A number that a statement gives.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        let sql = sql.replace("kortyx.", &format!("{}.", self.schema));
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut connect().await).await.unwrap()
    }
}

pub(crate) async fn set_up(config: PostgresConfig) -> PostgresStore {
    let store = PostgresStore::open(config).await.unwrap();
    store.setup().await.unwrap();
    store
}

/// A connection beside the store's.
pub(crate) async fn connect() -> PgConnection {
    let options: PgConnectOptions = url().parse().unwrap();
    options.connect().await.unwrap()
}

fn unique(kind: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{kind}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn pin() -> WorkflowPin {
    WorkflowPin { id: "review".into(), version: "1".into(), fingerprint: "0a1b".into() }
}

pub(crate) fn driver() -> Driver {
    Driver { id: "driver".to_owned(), ttl: Duration::from_mins(5) }
}

pub(crate) fn new_run() -> NewRun {
    new_run_in(&unique("session"))
}

pub(crate) fn new_run_in(session: &str) -> NewRun {
    NewRun {
        run_id: RunId::new(unique("run")).unwrap(),
        session_id: SessionId::new(session).unwrap(),
        workflow: pin(),
        context: BTreeMap::from([("tenant".to_owned(), Scalar::Text("acme".into()))]),
    }
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

pub(crate) fn checkpoint() -> NewCheckpoint {
    NewCheckpoint {
        id: CheckpointId::new(unique("cp")).unwrap(),
        label: None,
        nodes: vec!["approve".to_owned()],
        workflow: "review".to_owned(),
        workflow_version: None,
        state: Bytes::from_static(b"{}"),
        structured_stream_ids: Vec::new(),
    }
}

pub(crate) fn open_run(run: NewRun) -> OpenRun {
    OpenRun { run, driver: driver(), snapshot: Bytes::from_static(b"opened") }
}

pub(crate) fn record(lease: &Lease) -> Record {
    let entries = vec![Bytes::from_static(b"entry")];
    Record { lease: lease.clone(), entries, publish: Vec::new(), withdraw: Vec::new(), answers_seen: 0 }
}

pub(crate) fn suspend(run: RunRef, publish: Vec<NewInterrupt>, answers_seen: u64) -> Suspend {
    Suspend {
        run,
        workflow: pin(),
        snapshot: Bytes::from_static(b"suspended"),
        publish,
        withdraw: Vec::new(),
        answers_seen,
        checkpoint: Some(checkpoint()),
    }
}

pub(crate) fn finish(lease: &Lease, answers_seen: u64) -> Finish {
    Finish {
        run: RunRef::Held(lease.clone()),
        workflow: pin(),
        status: TerminalStatus::Completed,
        outcome: Bytes::from_static(b"done"),
        reason: None,
        answers_seen,
        checkpoint: Some(checkpoint()),
    }
}

pub(crate) fn answer(question: &InterruptRecord, text: &str) -> AnswerRequest {
    let answer = NewAnswer {
        request_id: question.request_id.clone(),
        proof: Proof::Token(question.token.clone()),
        session_id: None,
        run_id: None,
        answer: Bytes::from(text.to_owned()),
        cancel: false,
        actor: None,
    };
    AnswerRequest { answers: vec![answer], driver: Some(driver()) }
}

pub(crate) fn saved(outcome: Suspended) -> Vec<InterruptRecord> {
    match outcome {
        Suspended::Saved(open) => open,
        other => panic!("expected a saved suspension, got {other:?}"),
    }
}

pub(crate) fn granted(outcome: AnswerOutcome) -> Claimed {
    match outcome {
        AnswerOutcome::Accepted(_, Drive::Granted(claimed)) => *claimed,
        other => panic!("expected a granted lease, got {other:?}"),
    }
}

/// A new run that waits for the answer to one question.
pub(crate) async fn paused(store: &dyn Store) -> InterruptRecord {
    let request = suspend(RunRef::New(new_run(), driver()), vec![ask("a")], 0);
    saved(store.suspend(request).await.unwrap()).remove(0)
}
