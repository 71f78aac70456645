//! Creating and upgrading the schema.

use std::time::{Duration, Instant};

use kortyx_store::StoreErrorKind;
use sha2::{Digest, Sha256};

use crate::{
    PostgresConfig,
    client::{Client, Session},
    encoding::hex,
    error::{Effect, Failure},
};

/// Every version of the schema, oldest first: append only. A version brings tables and functions; a function that changes gets
/// a new name, and columns that statements of a program name stay, so that programs of the version before go on with theirs.
const MIGRATIONS: [Migration; 2] = [
    Migration {
        version: 1,
        works_with: 1,
        sql: concat!(
            include_str!("queries/schema_1.sql"),
            include_str!("functions/shared.sql"),
            include_str!("functions/driving.sql"),
            include_str!("functions/answering.sql"),
            include_str!("functions/sweeping.sql"),
            include_str!("functions/sessions.sql"),
            include_str!("functions/pruning.sql"),
            include_str!("functions/calls.sql"),
            include_str!("functions/reading.sql"),
        ),
    },
    Migration {
        version: 2,
        works_with: 1,
        sql: concat!(include_str!("queries/schema_2.sql"), include_str!("functions/output.sql")),
    },
];

struct Migration {
    version: i64,
    /// The oldest version of the schema that a program may know and still work on this one.
    works_with: i64,
    sql: &'static str,
}

impl Migration {
    fn checksum(&self) -> String {
        hex(&Sha256::digest(self.sql.as_bytes()))
    }
}

/// A version as the database holds it.
struct Applied {
    version: i64,
    works_with: i64,
    checksum: String,
}

/// See [`Store::setup`](kortyx_store::Store::setup).
pub(crate) async fn setup(client: &Client) -> Result<(), Failure> {
    let mut session = client.session().await?;
    check_server(&mut session).await?;
    let applied = read_versions(&mut session, &client.config).await?;
    if check(&applied)? {
        session.end();
        return Ok(());
    }
    // An error drops the connection, and with it the transaction.
    session.run("BEGIN; SET LOCAL statement_timeout = 0").await?;
    lock(&mut session, &client.config).await?;
    create_schema(&mut session, &client.config).await?;
    session.run(&client.config.render(include_str!("queries/versions.sql"))).await?;
    let applied = read_versions(&mut session, &client.config).await?;
    check(&applied)?;
    for migration in &MIGRATIONS {
        if !applied.iter().any(|applied| applied.version == migration.version) {
            session.run(&client.config.render(migration.sql)).await?;
            let Migration { version, works_with, .. } = migration;
            let added = format!(
                "INSERT INTO kortyx.versions (version, works_with, checksum) VALUES ({version}, {works_with}, '{}')",
                migration.checksum()
            );
            session.run(&client.config.render(&added)).await?;
            tracing::info!(version, "the schema was upgraded");
        }
    }
    session.run("COMMIT").await?;
    session.end();
    Ok(())
}

async fn check_server(session: &mut Session<'_>) -> Result<(), Failure> {
    let asked = "SELECT current_setting('server_version_num'), current_setting('server_encoding')";
    let rows = session.run(asked).await?;
    let [Some(version), Some(encoding)] = rows.first().map(Vec::as_slice).unwrap_or_default() else {
        return Err(refusal("the server does not tell its version".to_owned()));
    };
    if version.parse::<u32>().is_ok_and(|version| version < 140_000) {
        return Err(refusal(format!("the server has version {version}, and 14 is the oldest that works")));
    }
    if encoding != "UTF8" {
        return Err(refusal(format!("the database is encoded as {encoding}: create one with UTF8")));
    }
    Ok(())
}

/// Waits until no other process sets up. The lock goes with the transaction.
async fn lock(session: &mut Session<'_>, config: &PostgresConfig) -> Result<(), Failure> {
    let asked = format!("SELECT pg_try_advisory_xact_lock(hashtextextended('setup of {}', 0))", config.channel());
    let started = Instant::now();
    loop {
        let rows = session.run(&asked).await?;
        if rows.first().and_then(|row| row.first()).is_some_and(|got| got.as_deref() == Some("t")) {
            return Ok(());
        }
        if started.elapsed() >= config.setup_timeout {
            let message = format!("another process has been setting up for {:?}", config.setup_timeout);
            return Err(Failure::new(StoreErrorKind::Unavailable, Effect::Refused, message));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Creates the schema where there is none: the right to is needed only then.
async fn create_schema(session: &mut Session<'_>, config: &PostgresConfig) -> Result<(), Failure> {
    let asked = format!("SELECT 1 FROM pg_namespace WHERE nspname = '{}'", config.schema);
    if session.run(&asked).await?.is_empty() {
        session.run(&format!("CREATE SCHEMA \"{}\"", config.schema)).await?;
    }
    Ok(())
}

async fn read_versions(session: &mut Session<'_>, config: &PostgresConfig) -> Result<Vec<Applied>, Failure> {
    let asked = format!("SELECT to_regclass('{}') IS NOT NULL", config.qualified("versions"));
    let rows = session.run(&asked).await?;
    if rows.first().and_then(|row| row.first()).is_none_or(|found| found.as_deref() != Some("t")) {
        return Ok(Vec::new());
    }
    let asked = config.render("SELECT version, works_with, checksum FROM kortyx.versions ORDER BY version");
    let read = |row: &Vec<Option<String>>| match row.as_slice() {
        [Some(version), Some(works_with), Some(checksum)] => Some(Applied {
            version: version.parse().ok()?,
            works_with: works_with.parse().ok()?,
            checksum: checksum.clone(),
        }),
        _ => None,
    };
    let rows = session.run(&asked).await?;
    let applied: Option<Vec<_>> = rows.iter().map(read).collect();
    applied.ok_or_else(|| refusal("the table of versions is not the one that this program made".to_owned()))
}

/// Refuses a schema that this program does not know; says whether it is complete.
fn check(applied: &[Applied]) -> Result<bool, Failure> {
    let newest = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default();
    for Applied { version, works_with, checksum } in applied {
        match MIGRATIONS.iter().find(|migration| migration.version == *version) {
            None if *version == newest + 1 && *works_with <= newest => {
                tracing::info!(version, "the schema is one version ahead, and works with this program");
            }
            None => {
                return Err(refusal(format!(
                    "the schema has version {version} and this program knows {newest}: upgrade the program"
                )));
            }
            Some(migration) if migration.checksum() != *checksum => {
                return Err(refusal(format!(
                    "version {version} of the schema was edited, or made by another build: its checksum differs"
                )));
            }
            Some(_) => {}
        }
    }
    let has = |migration: &Migration| applied.iter().any(|applied| applied.version == migration.version);
    Ok(MIGRATIONS.iter().all(has))
}

fn refusal(message: String) -> Failure {
    Failure::new(StoreErrorKind::Schema, Effect::Refused, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(version: i64, works_with: i64) -> Applied {
        let known = MIGRATIONS.iter().find(|migration| migration.version == version);
        Applied { version, works_with, checksum: known.map_or_else(String::new, Migration::checksum) }
    }

    #[test]
    fn a_schema_one_version_ahead_is_taken_only_when_it_says_that_it_works() {
        let newest = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap();
        let with = |next| {
            let known = MIGRATIONS.iter().map(|migration| applied(migration.version, migration.works_with));
            check(&known.chain([next]).collect::<Vec<_>>()).map_err(|failure| failure.message)
        };
        assert_eq!(with(applied(newest + 1, newest)), Ok(true));
        assert!(with(applied(newest + 1, newest + 1)).unwrap_err().contains("upgrade the program"));
        assert!(with(applied(newest + 2, newest)).is_err(), "two versions ahead");
    }

    #[test]
    fn an_edited_version_is_refused_and_a_missing_one_is_to_be_made() {
        assert!(matches!(check(&[]), Ok(false)));
        assert!(matches!(check(&[applied(1, 1)]), Ok(false)));
        let edited = Applied { checksum: "other".to_owned(), ..applied(1, 1) };
        assert!(check(&[edited]).unwrap_err().message.contains("edited"));
    }

    #[test]
    fn versions_follow_each_other_and_none_shuts_out_the_one_before() {
        for (place, migration) in (1..).zip(&MIGRATIONS) {
            assert_eq!(migration.version, place);
            assert!(migration.works_with <= (place - 1).max(1));
        }
    }
}
