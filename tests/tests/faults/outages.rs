//! A server that loses connections in the middle of transitions, crashes, and stands still for half a minute, under load.

use std::{sync::Arc, time::Duration};

use kortyx_testkit::{BoxError, Outage, Proxy, Storm, Stormed};
use kortyx_tests::{
    driven::Flow,
    place::{Place, fresh_name},
    servers::{PostgresServer, RedisServer},
};
use libtest_mimic::Trial;
use tokio::{
    sync::Mutex,
    task::spawn_blocking,
    time::{Instant, sleep},
};

use crate::{kit, trial};

/// How long connections are cut, again and again.
const CUTTING: Duration = Duration::from_secs(15);
const BETWEEN_CUTS: Duration = Duration::from_millis(150);
/// How long the server is away when it is restarted.
const RESTART: Duration = Duration::from_millis(500);
const RESTARTS: usize = 2;
/// How long it stands still.
const STANDSTILL: Duration = Duration::from_secs(30);
/// How long a Postgres may take for one statement: so little that calls fail while it stands still, and do not just wait that long.
const STATEMENT_LIMIT: Duration = Duration::from_secs(5);
/// How long it is left alone after each of these.
const PEACE: Duration = Duration::from_secs(8);

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_redis_that_is_cut_off_crashes_and_stands_still_under_load_loses_nothing", redis),
        trial("a_postgres_that_is_cut_off_crashes_and_stands_still_under_load_loses_nothing", postgres),
    ]
}

/// What can be done to a server.
trait Fragile: Send + 'static {
    fn crash(&mut self);
    fn run(&mut self);
    fn stop(&self);
    fn go_on(&self);
    fn end_connections(&self);
}

impl Fragile for RedisServer {
    fn crash(&mut self) {
        self.crash();
    }
    fn run(&mut self) {
        self.run();
    }
    fn stop(&self) {
        self.stop();
    }
    fn go_on(&self) {
        self.go_on();
    }
    fn end_connections(&self) {
        for kind in ["normal", "pubsub"] {
            self.ask(&["CLIENT", "KILL", "TYPE", kind]);
        }
    }
}

impl Fragile for PostgresServer {
    fn crash(&mut self) {
        self.crash();
    }
    fn run(&mut self) {
        self.run();
    }
    fn stop(&self) {
        self.stop();
    }
    fn go_on(&self) {
        self.go_on();
    }
    fn end_connections(&self) {
        self.end_connections();
    }
}

async fn redis() {
    let server = spawn_blocking(RedisServer::start).await.unwrap();
    let proxy = Proxy::to(server.port()).await.unwrap();
    let url = format!("redis://127.0.0.1:{}", proxy.port());
    let place = move |_: &std::path::Path| Place::Redis { url: url.clone(), prefix: fresh_name() };
    let stormed = storm(server, proxy, place).await;
    println!("faults: redis that is cut off, crashes and stands still: {stormed:?}");
}

async fn postgres() {
    let server = spawn_blocking(PostgresServer::start).await.unwrap();
    let proxy = Proxy::to(server.port()).await.unwrap();
    let limit = STATEMENT_LIMIT.as_millis();
    let settings = format!("sslmode=disable&statement_timeout_ms={limit}");
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres?{settings}", proxy.port());
    let place = move |_: &std::path::Path| Place::Postgres {
        url: url.clone(),
        schema: fresh_name(),
        is_pooled: false,
        cache: None,
    };
    let stormed = storm(server, proxy, place).await;
    println!("faults: postgres that is cut off, crashes and stands still: {stormed:?}");
}

async fn storm(
    server: impl Fragile,
    proxy: Proxy,
    place: impl Fn(&std::path::Path) -> Place + Send + Sync + 'static,
) -> Stormed {
    let storm = Storm::lasting(Duration::from_secs(1)).settles(Duration::from_mins(2));
    let server = Arc::new(Mutex::new(server));
    let stormed = storm.run_during(&kit(Flow::Rich, place), disturb(server.clone(), &proxy)).await.unwrap();
    assert_eq!(stormed.recoveries.len(), RESTARTS + 1);
    assert!(stormed.failures > 0, "nobody noticed that the server stood still: {stormed:?}");
    stormed
}

async fn disturb<S: Fragile>(server: Arc<Mutex<S>>, proxy: &Proxy) -> Result<Vec<Outage>, BoxError> {
    sleep(PEACE / 2).await;
    let until = Instant::now() + CUTTING;
    for round in 0.. {
        match round % 4 {
            0 => proxy.cut(),
            1 => proxy.lose_request(),
            2 => proxy.lose_reply(),
            _ => on(&server, |server| server.end_connections()).await?,
        }
        sleep(BETWEEN_CUTS).await;
        if Instant::now() > until {
            break;
        }
    }
    if proxy.lost() < 8 {
        return Err(format!("only {} requests and replies were lost", proxy.lost()).into());
    }
    let mut outages = Vec::new();
    for _ in 0..RESTARTS {
        outages.push(
            Outage::during(async {
                on(&server, Fragile::crash).await?;
                sleep(RESTART).await;
                on(&server, Fragile::run).await
            })
            .await?,
        );
        sleep(PEACE).await;
    }
    outages.push(
        Outage::during(async {
            on(&server, |server| server.stop()).await?;
            sleep(STANDSTILL).await;
            on(&server, |server| server.go_on()).await
        })
        .await?,
    );
    sleep(PEACE).await;
    Ok(outages)
}

/// Does something to the server that takes its time.
async fn on<S: Fragile>(server: &Arc<Mutex<S>>, act: impl FnOnce(&mut S) + Send + 'static) -> Result<(), BoxError> {
    let mut server = server.clone().lock_owned().await;
    Ok(spawn_blocking(move || act(&mut server)).await?)
}
