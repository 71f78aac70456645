//! Statements of the raw loops, with their values.

use std::sync::Arc;

use bytes::Bytes;
use sqlx::{AssertSqlSafe, Sqlite, SqliteConnection, query::Query, sqlite::SqliteArguments};

use crate::error::Error;

/// A value to bind.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(Arc<str>),
    Blob(Bytes),
}

/// A statement with its values.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    pub(super) sql: &'static str,
    pub(super) values: Vec<Value>,
}

/// Several statements that go to the driver together, in one round trip.
#[derive(Debug, Default)]
pub(super) struct Trip {
    sql: String,
    values: Vec<Value>,
}

impl Trip {
    /// Adds a statement without values.
    pub(super) fn say(&mut self, sql: &'static str) {
        self.sql.push_str(sql);
    }

    pub(super) fn add(&mut self, statement: Statement) {
        self.sql.push_str(statement.sql);
        self.values.extend(statement.values);
    }

    pub(super) async fn run(self, connection: &mut SqliteConnection) -> Result<(), Error> {
        let query = sqlx::query(AssertSqlSafe(self.sql));
        bind(query, self.values).execute(connection).await?;
        Ok(())
    }
}

fn bind(query: Query<'_, Sqlite, SqliteArguments>, values: Vec<Value>) -> Query<'_, Sqlite, SqliteArguments> {
    values.into_iter().fold(query, |query, value| match value {
        Value::Null => query.bind(None::<i64>),
        Value::Int(value) => query.bind(value),
        Value::Text(value) => query.bind(value),
        Value::Blob(value) => query.bind(Vec::from(value)),
    })
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Int(value.into())
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

impl From<&String> for Value {
    fn from(value: &String) -> Self {
        Self::Text(value.as_str().into())
    }
}

impl From<&Bytes> for Value {
    fn from(value: &Bytes) -> Self {
        Self::Blob(value.clone())
    }
}

impl From<&Arc<str>> for Value {
    fn from(value: &Arc<str>) -> Self {
        Self::Text(value.clone())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A statement's text and its values, in order.
macro_rules! statement {
    ($name:literal $(, $value:expr)* $(,)?) => {
        $crate::sqlite::statement::Statement {
            sql: include_str!(concat!("queries/", $name, ".sql")),
            values: vec![$($crate::sqlite::statement::Value::from($value)),*],
        }
    };
}
pub(super) use statement;
