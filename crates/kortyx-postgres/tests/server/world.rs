//! Short ways to a store and a run.

use std::{collections::BTreeMap, env, sync::OnceLock, time::Duration};

use bytes::Bytes;
use kortyx_postgres::{ClockShift, PostgresConfig, PostgresStore};
use kortyx_protocol::{CheckpointId, SessionId};
pub(crate) use kortyx_store::conformance::requests::{ask, granted, pin, saved};
use kortyx_store::{
    AnswerRequest, Driver, Finish, InterruptRecord, Lease, NewAnswer, NewCheckpoint, NewInterrupt, NewRun, OpenRun,
    Record, RunRef, Scalar, Store, Suspend, TerminalStatus, conformance::requests,
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

/// The server's address for this user.
pub(crate) fn url_of(user: &str, password: &str) -> String {
    let url = url();
    let (_, place) = url.split_once("://").unwrap();
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    format!("postgres://{user}:{password}@{place}")
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

pub(crate) fn driver() -> Driver {
    Driver { ttl: Duration::from_mins(5), ..requests::driver() }
}

pub(crate) fn new_run() -> NewRun {
    NewRun { context: BTreeMap::from([("tenant".to_owned(), Scalar::Text("acme".into()))]), ..requests::new_run() }
}

pub(crate) fn new_run_in(session: &str) -> NewRun {
    NewRun { session_id: SessionId::new(session).unwrap(), ..new_run() }
}

pub(crate) fn checkpoint() -> NewCheckpoint {
    NewCheckpoint {
        id: CheckpointId::new(requests::unique("cp")).unwrap(),
        label: None,
        nodes: vec!["approve".to_owned()],
        workflow: "review".to_owned(),
        workflow_version: None,
        state: Bytes::from_static(b"{}"),
        structured_stream_ids: Vec::new(),
    }
}

pub(crate) fn open_run(run: NewRun) -> OpenRun {
    OpenRun { driver: driver(), ..requests::opening(run) }
}

pub(crate) fn record(lease: &Lease) -> Record {
    Record { entries: vec![Bytes::from_static(b"entry")], ..requests::recording(lease) }
}

pub(crate) fn suspend(run: RunRef, publish: Vec<NewInterrupt>, answers_seen: u64) -> Suspend {
    Suspend { answers_seen, checkpoint: Some(checkpoint()), ..requests::suspending(run, publish) }
}

pub(crate) fn finish(lease: &Lease, answers_seen: u64) -> Finish {
    Finish {
        run: RunRef::Held(lease.clone()),
        workflow: pin(),
        status: TerminalStatus::Completed,
        outcome: Bytes::from_static(b"done"),
        reason: None,
        chunks: Vec::new(),
        answers_seen,
        checkpoint: Some(checkpoint()),
    }
}

pub(crate) fn answer(question: &InterruptRecord, text: &str) -> AnswerRequest {
    let given = requests::answering(question).answers.into_iter();
    let answers = given.map(|answer| NewAnswer { answer: Bytes::from(text.to_owned()), ..answer }).collect();
    AnswerRequest { answers, driver: Some(driver()) }
}

/// A new run that waits for the answer to one question.
pub(crate) async fn paused(store: &dyn Store) -> InterruptRecord {
    let request = suspend(RunRef::New(new_run(), driver()), vec![ask("a")], 0);
    saved(store.suspend(request).await.unwrap()).remove(0)
}
