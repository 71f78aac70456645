//! Tests that every statement goes through an index.

use std::{
    fs,
    path::{Path, PathBuf},
};

use kortyx_protocol::{RunId, SessionId, Timestamp};
use kortyx_store::{InterruptQuery, Scalar, Scope};
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};

use crate::read::{self, Listing};

/// A database with the tables and nothing in them.
async fn database() -> SqliteConnection {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
    for schema in [include_str!("queries/schema_1.sql"), include_str!("queries/schema_2.sql")] {
        sqlx::raw_sql(schema).execute(&mut connection).await.unwrap();
    }
    connection
}

/// The steps of a statement's plan.
async fn plan(connection: &mut SqliteConnection, sql: &str) -> Vec<String> {
    let sql = format!("EXPLAIN QUERY PLAN {sql}");
    let rows = sqlx::query(AssertSqlSafe(sql.clone())).fetch_all(connection).await;
    rows.unwrap_or_else(|error| panic!("{error} in {sql}")).iter().map(|row| row.get("detail")).collect()
}

/// Steps that look at every row of a table. Lists that the caller gave, and rows that the statement made, are short.
fn scans(plan: &[String]) -> Vec<&String> {
    let short = ["CONSTANT ROW", "VIRTUAL TABLE", "SCAN chosen", "SCAN page", "SCAN (subquery"];
    let scans = plan.iter().filter(|step| step.starts_with("SCAN") || step.contains("AUTOMATIC"));
    scans.filter(|step| !short.iter().any(|short| step.contains(short))).collect()
}

fn statements(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("schema_1.sql") || path.ends_with("schema_2.sql") {
            continue;
        }
        if path.is_dir() {
            found.extend(statements(&path));
            continue;
        }
        let text: String = fs::read_to_string(&path).unwrap().lines().filter(|line| !line.starts_with("--")).fold(
            String::new(),
            |mut text, line| {
                text.push_str(line);
                text.push('\n');
                text
            },
        );
        found.extend(text.split(";\n").map(|statement| (path.clone(), statement.trim().to_owned())));
    }
    found
}

#[tokio::test]
async fn no_statement_looks_at_every_row_of_a_table() {
    let mut connection = database().await;
    let all = statements(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/queries"));
    let mut seen = 0;
    for (path, sql) in all {
        let is_choice = path.ends_with("read/checkpoints.sql") || path.ends_with("alone/versions.sql");
        let is_plain = ["SELECT", "UPDATE", "DELETE", "INSERT"].iter().any(|verb| sql.starts_with(verb));
        // Counting everything looks at everything, once, for an operator.
        let counts = path.ends_with("read/stats.sql");
        if !is_plain || is_choice || counts || sql.contains("kortyx_schema") {
            continue;
        }
        let plan = plan(&mut connection, &sql).await;
        assert!(scans(&plan).is_empty(), "{}: {plan:#?}", path.display());
        seen += 1;
    }
    assert!(seen > 42, "only {seen} statements were looked at");
    for sql in [read::BY_ID, read::HEAD, read::ALL, read::AFTER] {
        let plan = plan(&mut connection, sql).await;
        assert!(scans(&plan).is_empty(), "{plan:#?}");
    }
}

#[tokio::test]
async fn pages_deadlines_and_orphans_come_from_their_index_in_order() {
    let mut connection = database().await;
    let ordered = [
        ("interrupts_due", include_str!("queries/alone/due.sql")),
        ("runs_ended", include_str!("queries/alone/prune_runs.sql")),
        ("checkpoints_age", include_str!("queries/alone/prune_aged.sql")),
        ("runs_stopping", include_str!("queries/alone/stopped.sql")),
    ];
    for (index, sql) in ordered {
        let plan = plan(&mut connection, sql).await;
        assert!(plan.len() == 1 && plan[0].contains(index), "{plan:#?}");
    }
    for (index, sql) in [
        ("runs_running", include_str!("queries/alone/orphans.sql")),
        ("runs_parked", include_str!("queries/alone/parked.sql")),
    ] {
        let plan = plan(&mut connection, sql.trim_start_matches(|c| c != '\n')).await;
        let place = plan.iter().position(|step| step.contains(index)).unwrap_or_else(|| panic!("{plan:#?}"));
        let sorted = plan.get(place + 1).is_some_and(|step| step.contains("TEMP B-TREE"));
        assert!(!sorted || plan[place + 1..].len() == 1, "only the last step sorts, what is left: {plan:#?}");
    }
}

#[tokio::test]
async fn a_page_is_merged_from_an_index_whatever_it_is_read_by() {
    let mut connection = database().await;
    let session = Scope::session(SessionId::new("s").unwrap());
    let context = Scope::default().with("tenant", Scalar::Text("acme".into()));
    let both = session.clone().with("tenant", Scalar::Int(1)).with("team", Scalar::Bool(true));
    let run_id = Some(RunId::new("r").unwrap());
    let query =
        |scope: &Scope, run_id| InterruptQuery { scope: scope.clone(), run_id, limit: 10, ..Default::default() };
    let indexes = [
        (
            "WHERE p.session_id = $1",
            "p USING COVERING INDEX interrupts_session (session_id=? AND created_at=? AND id>?)",
        ),
        ("WHERE p.run = ", "p USING INDEX interrupts_run (run=? AND status=? AND seq=? AND created_at=? AND id>?)"),
        ("WHERE p.key = $1", "p USING PRIMARY KEY (key=? AND value=? AND created_at=? AND interrupt>?)"),
    ];
    for query in [
        query(&session, None),
        query(&context, None),
        query(&Scope::default(), run_id.clone()),
        query(&both, None),
        query(&both, run_id),
    ] {
        let listing = Listing::new(query, Timestamp::MIN).unwrap();
        for sql in listing.statements() {
            let plan = plan(&mut connection, &sql).await;
            let (_, index) = indexes.iter().find(|(condition, _)| sql.contains(condition)).unwrap();
            let merge = plan.iter().position(|step| step.contains("MERGE")).unwrap_or_else(|| panic!("{plan:#?}"));
            assert!(scans(&plan).is_empty() && plan[merge + 2].contains(index), "{plan:#?}");
            let sorts: Vec<_> = plan.iter().filter(|step| step.contains("TEMP B-TREE")).collect();
            assert!(sorts.is_empty() || (sorts.len() == 1 && plan.last() == Some(sorts[0])), "{plan:#?}");
        }
    }
}
