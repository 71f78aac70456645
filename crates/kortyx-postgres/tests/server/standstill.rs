//! A server that stands still, and goes on with what it was asked long after the question was put again.

use std::{
    fs,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use kortyx_postgres::ClockShift;
use kortyx_store::Store;
use sqlx::{AssertSqlSafe, ConnectOptions, postgres::PgConnectOptions};

use crate::{
    faults::work,
    support::{Server, config_at, fresh_schema},
    world::set_up,
};

impl Server {
    /// Sends a signal to every process of this server, and to no other.
    fn signal(&self, signal: &str) {
        let lines = fs::read_to_string(self.directory.join("data/postmaster.pid")).unwrap();
        let postmaster = lines.lines().next().unwrap();
        let children = Command::new("ps").args(["-o", "pid=", "--ppid", postmaster]).output().unwrap();
        let children = String::from_utf8(children.stdout).unwrap();
        for pid in children.split_whitespace().chain([postmaster]) {
            // A server process may have ended since.
            let _ = Command::new("kill").args([signal, pid]).output().unwrap();
        }
    }

    async fn number(&self, sql: &str) -> i64 {
        let options: PgConnectOptions = self.url().parse().unwrap();
        let mut connection = options.connect().await.unwrap();
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&mut connection).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stands_still_under_load_does_everything_once() {
    let server = tokio::task::spawn_blocking(Server::start).await.unwrap();
    let schema = fresh_schema();
    let config = config_at(&server.url(), &schema, &ClockShift::default())
        .statement_timeout(Duration::from_secs(1))
        .connect_timeout(Duration::from_secs(1))
        .acquire_timeout(Duration::from_secs(30))
        .retry_for(Duration::from_mins(1));
    let store = Arc::new(set_up(config).await);
    let stop = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..8).map(|_| tokio::spawn(work(store.clone(), stop.clone()))).collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    server.signal("-STOP");
    tokio::time::sleep(Duration::from_secs(4)).await;
    server.signal("-CONT");
    let up = Instant::now();
    store.ping().await.unwrap();
    assert!(up.elapsed() < Duration::from_secs(5), "it took {:?}", up.elapsed());
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.store(true, Ordering::SeqCst);
    let mut completed = 0;
    for worker in workers {
        completed += i64::try_from(worker.await.unwrap()).unwrap();
    }
    let wrong = format!("SELECT count(*) FROM {schema}.runs WHERE status <> 'completed' OR answers <> 1 OR fence <> 1");
    assert_eq!(server.number(&wrong).await, 0);
    assert_eq!(server.number(&format!("SELECT count(*) FROM {schema}.runs")).await, completed);
    assert_eq!(server.number(&format!("SELECT count(*) FROM {schema}.checkpoints")).await, completed * 2);
    store.close().await;
}
