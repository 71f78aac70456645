//! Creating and upgrading the schema.

use std::fmt::Write;

use async_trait::async_trait;
use kortyx_store::{StoreError, StoreErrorKind};
use sha2::{Digest, Sha256};

use super::Alone;
use crate::{
    client::values,
    row::{get, text},
    work::Work,
};

/// Every version of the schema, oldest first: append only.
const MIGRATIONS: [(i64, &str); 2] =
    [(1, include_str!("../queries/schema_1.sql")), (2, include_str!("../queries/schema_2.sql"))];

/// See [`Store::setup`](kortyx_store::Store::setup).
pub(crate) struct Setup;

#[async_trait]
impl Alone for Setup {
    const NAME: &'static str = "setup";
    const IS_BARE: bool = true;
    type Outcome = ();

    async fn run(&self, work: &mut Work<'_>) -> Result<(), StoreError> {
        let rows = work.fetch(include_str!("../queries/alone/versions.sql"), Vec::new()).await?;
        let mut applied = Vec::with_capacity(rows.len());
        for row in &rows {
            let version = || Ok((get::<i64>(row, "version")?, text(row, "checksum")?));
            applied.push(version().map_err(|malformed: crate::row::Malformed| malformed.told(Self::NAME))?);
        }
        check(&applied)?;
        for (version, sql) in
            MIGRATIONS.iter().filter(|(version, _)| !applied.iter().any(|(known, _)| known == version))
        {
            work.fetch(sql, Vec::new()).await?;
            let values = values![*version, checksum(sql), work.batch.now];
            work.fetch(include_str!("../queries/alone/add_version.sql"), values).await?;
            tracing::info!(version, "the schema was upgraded");
        }
        Ok(())
    }
}

/// Refuses a schema that this code did not make.
fn check(applied: &[(i64, String)]) -> Result<(), StoreError> {
    let refuse = |message| Err(StoreError::new(StoreErrorKind::Schema, Setup::NAME, message));
    for (version, stored) in applied {
        match MIGRATIONS.iter().find(|(known, _)| known == version) {
            None => {
                return refuse(format!(
                    "the schema has version {version}, which this program does not know: upgrade it"
                ));
            }
            Some((_, sql)) if checksum(sql) != *stored => {
                return refuse(format!("version {version} of the schema is not the one that this program made"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn checksum(sql: &str) -> String {
    Sha256::digest(sql.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
