//! From one version of the schema to the next, with runs under way and programs of the version before beside.

use std::{fmt::Write as _, time::Duration};

use bytes::Bytes;
use kortyx_postgres::PostgresStore;
use kortyx_store::{
    Finish, Finished, NewResponse, Record, Retention, RunRef, RunStatus, Store, StoreErrorKind, Suspend,
};
use sha2::{Digest, Sha256};

use crate::world::{
    World, answer, ask, driver, finish, granted, new_run, open_run, paused, record, saved, set_up, suspend, url_of,
};

/// What version 1 is made of.
const VERSION_1: &str = concat!(
    include_str!("../../src/queries/schema_1.sql"),
    include_str!("../../src/functions/shared.sql"),
    include_str!("../../src/functions/driving.sql"),
    include_str!("../../src/functions/answering.sql"),
    include_str!("../../src/functions/sweeping.sql"),
    include_str!("../../src/functions/sessions.sql"),
    include_str!("../../src/functions/pruning.sql"),
    include_str!("../../src/functions/calls.sql"),
    include_str!("../../src/functions/reading.sql"),
);

impl World {
    /// A database as a program of version 1 sets it up.
    async fn of_version_1() -> Self {
        let world = Self::new();
        let mut checksum = String::new();
        for byte in Sha256::digest(VERSION_1) {
            write!(checksum, "{byte:02x}").unwrap();
        }
        let sql = [
            &format!("CREATE SCHEMA {};", world.schema),
            include_str!("../../src/queries/versions.sql"),
            VERSION_1,
            &format!("; INSERT INTO kortyx.versions (version, works_with, checksum) VALUES (1, 1, '{checksum}')"),
        ];
        world.execute(&sql.concat()).await;
        world
    }
}

fn said(texts: &[&'static str]) -> Vec<Bytes> {
    texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect()
}

async fn output(store: &dyn Store, lease: &kortyx_store::Lease) -> (Vec<Bytes>, RunStatus) {
    let page = store.chunks(&lease.run_id, 0, 100).await.unwrap().unwrap();
    (page.chunks.into_iter().map(|chunk| chunk.chunk).collect(), page.status)
}

#[tokio::test]
async fn runs_of_a_database_of_version_1_go_on_and_say_something_after_the_upgrade() {
    let world = World::of_version_1().await;
    // What brings no chunks calls what version 1 has.
    let old = PostgresStore::open(world.config()).await.unwrap();
    let question = paused(&old).await;
    let driven = old.open(open_run(new_run())).await.unwrap();
    old.record(record(&driven)).await.unwrap();
    let error = old.record(Record { chunks: said(&["too early"]), ..record(&driven) }).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Schema);
    assert!(error.to_string().contains("call setup first"), "{error}");

    let new = set_up(world.config()).await;

    assert_eq!(world.number("SELECT count(*) FROM kortyx.versions").await, 2);
    assert_eq!(output(&new, &driven).await, (Vec::new(), RunStatus::Running));
    new.record(Record { chunks: said(&["a"]), ..record(&driven) }).await.unwrap();
    assert_eq!(output(&new, &driven).await, (said(&["a"]), RunStatus::Running));
    let response = NewResponse { outcome: Bytes::from_static(b"thanks"), checkpoint: None };
    new.record(Record { response: Some(response), ..record(&driven) }).await.unwrap();
    let run = old.run(&driven.run_id).await.unwrap().unwrap();
    assert_eq!((run.response.as_deref(), run.status), (Some(&b"thanks"[..]), RunStatus::Running));
    let claimed = granted(new.answer(answer(&question, "yes")).await.unwrap());
    let pause = suspend(RunRef::Held(claimed.lease), vec![ask("b")], 1);
    let open = saved(new.suspend(Suspend { chunks: said(&["b", "c"]), ..pause }).await.unwrap());
    let claimed = granted(new.answer(answer(&open[0], "yes")).await.unwrap());
    let end = Finish { chunks: said(&["d"]), ..finish(&claimed.lease, 2) };
    assert_eq!(new.finish(end).await.unwrap(), Finished::Done);
    assert_eq!(output(&new, &claimed.lease).await, (said(&["b", "c", "d"]), RunStatus::Completed));
}

/// A program that knows version 1 only, under a user whose rights were given when there was no more.
#[tokio::test]
async fn a_program_of_version_1_ends_and_removes_what_said_something() {
    let world = World::of_version_1().await;
    let (schema, user) = (&world.schema, format!("app_{}", world.schema));
    let rights = [
        format!("CREATE ROLE {user} LOGIN PASSWORD 'limited'; GRANT USAGE ON SCHEMA {schema} TO {user}"),
        format!("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {user}"),
    ];
    world.execute(&rights.join("; ")).await;
    let old = PostgresStore::open(world.config_at(&url_of(&user, "limited"))).await.unwrap();
    paused(&old).await;
    let new = set_up(world.config()).await;

    let run = new_run();
    let pause = suspend(RunRef::New(run.clone(), driver()), vec![ask("a")], 0);
    let open = saved(new.suspend(Suspend { chunks: said(&["a", "b"]), ..pause }).await.unwrap());
    let claimed = granted(old.answer(answer(&open[0], "yes")).await.unwrap());
    old.finish(finish(&claimed.lease, 1)).await.unwrap();
    assert_eq!(output(&new, &claimed.lease).await, (said(&["a", "b"]), RunStatus::Completed));
    let kept = new.open(open_run(new_run())).await.unwrap();
    new.record(Record { chunks: said(&["kept"]), ..record(&kept) }).await.unwrap();

    let retention = Retention { finished_runs: Duration::ZERO, ..Retention::default() };
    assert_eq!(old.prune(&retention, 10).await.unwrap().runs, 1);

    assert_eq!(new.chunks(&run.run_id, 0, 1).await.unwrap(), None);
    assert_eq!(world.number("SELECT count(*) FROM kortyx.chunks").await, 1);
    assert_eq!(output(&new, &kept).await.0, said(&["kept"]));
    old.close().await;
    world.execute(&format!("DROP OWNED BY {user}; DROP ROLE {user}")).await;
}
