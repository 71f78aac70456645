//! What a store still holds when everything in it was removed, seen without the store.

use std::time::Duration;

use kortyx::store::{ClaimRequest, Driver, ExpireRequest};
use kortyx_testkit::BoxError;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _, postgres::PgConnectOptions,
    sqlite::SqliteConnectOptions,
};

use crate::{
    place::{Place, Time},
    redis_cli,
};

/// Longer than questions live.
const LATER: Duration = Duration::from_hours(72);
/// More than enough to go through all that is due.
const ROUNDS: usize = 20;

/// The rows and keys at a place.
pub(super) async fn of(place: &Place) -> Result<Vec<String>, BoxError> {
    match place {
        Place::Sqlite { path, .. } => {
            let mut connection = SqliteConnectOptions::new().filename(path).connect().await?;
            let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
            let mut left = Vec::new();
            for row in sqlx::query(tables).fetch_all(&mut connection).await? {
                let table: String = row.get(0);
                let count = format!("SELECT count(*) FROM \"{table}\"");
                let count: i64 = sqlx::query_scalar(AssertSqlSafe(count)).fetch_one(&mut connection).await?;
                left.extend(remark(&table, count));
            }
            Ok(left)
        }
        Place::Postgres { url, schema, .. } => {
            let options: PgConnectOptions = url.parse()?;
            // A pooler hands a server's connection on, with what was prepared on it.
            let mut connection = options.statement_cache_capacity(0).connect().await?;
            let tables = format!("SELECT tablename::text FROM pg_tables WHERE schemaname = '{schema}'");
            let mut left = Vec::new();
            for row in sqlx::raw_sql(AssertSqlSafe(tables)).fetch_all(&mut connection).await? {
                let table: String = row.get(0);
                let count = format!("SELECT count(*) FROM {schema}.\"{table}\"");
                let row = sqlx::raw_sql(AssertSqlSafe(count)).fetch_one(&mut connection).await?;
                left.extend(remark(&table, row.get(0)));
            }
            connection.close().await?;
            Ok(left)
        }
        Place::Redis { url, prefix } => {
            look_in_later(place).await?;
            Ok(redis_cli::keys_without_end(url, prefix)?)
        }
    }
}

/// Looks for what is due, as workers do, when every question would be past its time. What a process that died did not take out
/// of an index of times is taken out then.
async fn look_in_later(place: &Place) -> Result<(), BoxError> {
    let store = place.open(&Time::ahead(LATER)).await?;
    for _ in 0..ROUNDS {
        let driver = Driver { id: "later".to_owned(), ttl: Duration::from_secs(1) };
        store.expire_due(ExpireRequest { driver: driver.clone(), workflows: Vec::new(), limit: 500 }).await?;
        store.claim_orphans(ClaimRequest { driver, workflows: Vec::new(), parked_before: None, limit: 500 }).await?;
    }
    store.close().await;
    Ok(())
}

/// Versions of the schema stay; what transitions replied is kept for a minute or so, for those whose connection broke.
fn remark(table: &str, count: i64) -> Option<String> {
    let stays = ["versions", "migrations", "meta", "schema", "transitions"].iter().any(|name| table.contains(name));
    (count > 0 && !stays).then(|| format!("{count} rows in {table}"))
}
