//! The raw loop: as many commits of one row with the same payloads, and nothing decided.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Postgres, Row as _, postgres::PgArguments, query::Query};
use tokio::sync::Semaphore;

use super::place::{CONNECTIONS, Place};
use crate::{error::Error, served::Raw, template::Template};

/// Writes rows over as many connections as the store has. They wait for nothing between two statements, unlike those of the
/// driver's own pool, which asks each for a sign of life when it comes back.
#[derive(Clone)]
pub(super) struct Loop(Arc<Inner>);

struct Inner {
    permits: Semaphore,
    idle: Mutex<Vec<PgConnection>>,
    payloads: Payloads,
    statements: Statements,
}

struct Payloads {
    snapshot: Bytes,
    question: Bytes,
    answer: Bytes,
    outcome: Bytes,
}

struct Statements {
    pause: Arc<str>,
    read: Arc<str>,
    answer: Arc<str>,
    finish: Arc<str>,
}

impl Loop {
    pub(super) async fn new(place: &Place, template: &Template) -> Result<Self, Error> {
        place.execute("DROP TABLE IF EXISTS bench.raw").await?;
        place.execute(include_str!("queries/raw.sql")).await?;
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS {
            idle.push(place.connect().await?);
        }
        let statement = |sql| Arc::from(place.render(sql).0);
        let statements = Statements {
            pause: statement(include_str!("queries/pause.sql")),
            read: statement(include_str!("queries/read.sql")),
            answer: statement(include_str!("queries/answer.sql")),
            finish: statement(include_str!("queries/finish.sql")),
        };
        let payloads = Payloads {
            snapshot: template.snapshot().clone(),
            question: template.question().question.clone(),
            answer: template.given().clone(),
            outcome: template.outcome().clone(),
        };
        let permits = Semaphore::new(idle.len());
        Ok(Self(Arc::new(Inner { permits, idle: Mutex::new(idle), payloads, statements })))
    }

    pub(super) async fn close(self) -> Result<(), Error> {
        let idle = std::mem::take(&mut *self.0.idle.lock().unwrap_or_else(PoisonError::into_inner));
        for connection in idle {
            connection.close().await?;
        }
        Ok(())
    }
}

impl Inner {
    /// Lends a connection to one statement.
    async fn with<T>(&self, work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>) -> Result<T, Error> {
        let closed = || Error::unexpected("the raw loop was closed");
        let permit = self.permits.acquire().await.map_err(|_| closed())?;
        let taken = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = taken.ok_or_else(closed)?;
        let done = work(&mut connection).await?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        drop(permit);
        Ok(done)
    }
}

fn query(statement: &Arc<str>) -> Query<'_, Postgres, PgArguments> {
    sqlx::query(AssertSqlSafe(Arc::clone(statement)))
}

impl Raw for Loop {
    async fn cycle(&self, number: u64) -> Result<(), Error> {
        let Inner { payloads, statements, .. } = &*self.0;
        let id = format!("run-{number:032x}");
        let statement = query(&statements.pause).bind(&id);
        let statement = statement.bind(payloads.snapshot.as_ref()).bind(payloads.question.as_ref());
        self.0.with(async |connection| statement.execute(connection).await).await?;
        let statement = query(&statements.read).bind(&id);
        self.0.with(async |connection| statement.fetch_one(connection).await).await?;
        let statement = query(&statements.answer).bind(&id).bind(payloads.answer.as_ref());
        let row = self.0.with(async |connection| statement.fetch_one(connection).await).await?;
        if row.try_get::<&[u8], _>(0)?.len() != payloads.snapshot.len() {
            return Err(Error::unexpected("a row does not hold what was written"));
        }
        let statement = query(&statements.finish).bind(&id).bind(payloads.outcome.as_ref());
        self.0.with(async |connection| statement.execute(connection).await).await?;
        Ok(())
    }
}
