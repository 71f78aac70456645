//! The rows of a cycle, as the store writes them; a test holds them against what it does write.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::statement::{Statement, Value, statement};
use crate::template::{Ids, Template};

/// One of the three transitions of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Suspend,
    Answer,
    Finish,
}

impl Step {
    /// All, in order.
    pub(super) const ALL: [Self; 3] = [Self::Suspend, Self::Answer, Self::Finish];
}

/// What changes about a run.
struct Change {
    status: &'static str,
    lease_until: i64,
    driver: Value,
    outcome: Value,
}

/// The statements of a step of the cycle with this key.
pub(super) fn statements(template: &Template, step: Step, key: i64, ids: &Ids) -> Vec<Statement> {
    let now = now();
    match step {
        Step::Suspend => vec![
            add_run(template, key, ids, now),
            statement!("add_snapshot", key, template.snapshot()),
            add_question(template, key, ids, now),
        ],
        Step::Answer => {
            let driver = template.driver();
            let lease_until = now + millis(driver.ttl);
            let (driver, outcome) = ((&driver.id).into(), Value::Null);
            let change = Change { status: "running", lease_until, driver, outcome };
            vec![
                change_run(template, key, now, change),
                statement!("close_question", "answered", template.given(), 1, now, Value::Null, key),
            ]
        }
        Step::Finish => {
            let outcome = template.outcome().into();
            let change = Change { status: "completed", lease_until: 0, driver: Value::Null, outcome };
            vec![
                change_run(template, key, now, change),
                statement!("drop_snapshot", key),
                statement!("drop_entries", key),
            ]
        }
    }
}

fn add_run(template: &Template, key: i64, ids: &Ids, now: i64) -> Statement {
    let pin = template.pin();
    statement!(
        "add_run",
        key,
        ids.run_id.as_str(),
        ids.session_id.as_str(),
        &pin.id,
        &pin.version,
        &pin.fingerprint,
        "{}",
        "suspended",
        now,
        now,
        0,
        0,
        Value::Null,
        0,
        0,
        false,
        Value::Null,
        Value::Null,
    )
}

fn add_question(template: &Template, key: i64, ids: &Ids, now: i64) -> Statement {
    let question = template.question();
    statement!(
        "add_question",
        key,
        ids.request_id.as_str(),
        key,
        ids.session_id.as_str(),
        ids.token.expose(),
        &question.ask.0,
        &question.workflow,
        &question.node,
        &question.question,
        now,
        now + millis(question.expires_in),
        "pending",
        question.default.as_ref(),
        question.optional_cancel,
        question.after_response_completed,
    )
}

fn change_run(template: &Template, key: i64, now: i64, change: Change) -> Statement {
    let pin = template.pin();
    statement!(
        "change_run",
        &pin.id,
        &pin.version,
        &pin.fingerprint,
        change.status,
        now,
        1,
        change.lease_until,
        change.driver,
        1,
        0,
        false,
        change.outcome,
        Value::Null,
        key,
    )
}

/// Now, as the store writes it.
pub(crate) fn now() -> i64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use kortyx_store::Store as _;
    use sqlx::{AssertSqlSafe, Connection as _, Row as _, SqliteConnection, sqlite::SqliteSynchronous};

    use super::*;
    use crate::{
        options::Options,
        sqlite::{
            File,
            group::{Travel, commit},
        },
        watched::Watched,
        workload::Workload,
    };

    /// Rows and bytes of every table.
    async fn contents(connection: &mut SqliteConnection) -> Vec<(String, i64, i64)> {
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%schema%' ORDER BY name";
        let tables = sqlx::query_scalar::<_, String>(tables).fetch_all(&mut *connection).await.unwrap();
        let mut contents = Vec::new();
        for table in tables {
            let columns = sqlx::query_scalar::<_, String>("SELECT name FROM pragma_table_info(?)").bind(&table);
            let columns = columns.fetch_all(&mut *connection).await.unwrap();
            let lengths: Vec<_> =
                columns.iter().map(|column| format!("coalesce(length(CAST({column} AS BLOB)), 0)")).collect();
            let sizes = format!("SELECT count(*), coalesce(sum({}), 0) FROM {table}", lengths.join(" + "));
            let row = sqlx::query(AssertSqlSafe(sizes)).fetch_one(&mut *connection).await.unwrap();
            contents.push((table, row.get(0), row.get(1)));
        }
        contents
    }

    /// What the store leaves in a file, paused and ended; with the requests that it got.
    async fn stored(options: &Options) -> (Vec<Vec<(String, i64, i64)>>, Template) {
        let file = File::new(options).await.unwrap();
        let store = Watched::new(file.store().await.unwrap());
        let workload = Workload::over(store.clone()).await.unwrap();
        let mut connection = file.connect(SqliteSynchronous::Full).await.unwrap();
        let handle = workload.pause().await.unwrap();
        let paused = contents(&mut connection).await;
        workload.answer(&handle).await.unwrap();
        let ended = contents(&mut connection).await;
        connection.close().await.unwrap();
        store.close().await;
        (vec![paused, ended], store.template().unwrap())
    }

    async fn raw(options: &Options, template: &Template, travel: Travel) -> Vec<Vec<(String, i64, i64)>> {
        let file = File::new(options).await.unwrap();
        let mut connection = file.connect(SqliteSynchronous::Full).await.unwrap();
        let mut all = Vec::new();
        for step in Step::ALL {
            let unit = (step, statements(template, step, 1, &Ids::of(1)));
            commit(&mut connection, vec![unit], travel).await.unwrap();
            if step != Step::Answer {
                all.push(contents(&mut connection).await);
            }
        }
        connection.close().await.unwrap();
        all
    }

    #[tokio::test]
    async fn the_raw_loops_write_as_many_rows_and_bytes_as_the_store() {
        let options = Options::parse_from(["bench"]);

        let (by_store, template) = stored(&options).await;

        assert_eq!(by_store, raw(&options, &template, Travel::Together).await);
        assert_eq!(by_store, raw(&options, &template, Travel::Alone).await);
    }
}
