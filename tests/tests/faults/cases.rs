//! Connections that end between a question and its answer, and in the middle of every write.

use kortyx::{
    Answer,
    protocol::{ExecutionResult, ResumeResponse},
};
use kortyx_testkit::{Evidence, Kit, Proxy};
use kortyx_tests::{
    driven::Flow,
    place::{Place, fresh_name},
    servers::{PostgresServer, RedisServer},
};
use libtest_mimic::Trial;
use tokio::task::spawn_blocking;

use crate::{kit, trial};

/// Questions of one run: enough for every kind of write between them.
const QUESTIONS: usize = 5;
const RUNS: u64 = 10;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("b146_connections_of_a_redis_that_end_between_ask_and_answer_and_in_mid_write_go_unseen", redis),
        trial("b146_connections_of_a_postgres_that_end_between_ask_and_answer_and_in_mid_write_go_unseen", postgres),
    ]
}

async fn redis() {
    let server = spawn_blocking(RedisServer::start).await.unwrap();
    let proxy = Proxy::to(server.port()).await.unwrap();
    let url = format!("redis://127.0.0.1:{}", proxy.port());
    let kit = kit(Flow::Asking(QUESTIONS), move |_| Place::Redis { url: url.clone(), prefix: fresh_name() });
    go_unseen(&kit, &proxy, || drop(server.ask(&["CLIENT", "KILL", "TYPE", "normal"]))).await;
}

async fn postgres() {
    let server = spawn_blocking(PostgresServer::start).await.unwrap();
    let proxy = Proxy::to(server.port()).await.unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable", proxy.port());
    let place = move |_: &std::path::Path| Place::Postgres {
        url: url.clone(),
        schema: fresh_name(),
        is_pooled: false,
        cache: None,
    };
    go_unseen(&kit(Flow::Asking(QUESTIONS), place), &proxy, || server.end_connections()).await;
}

/// Everything succeeds at once, and nothing is there twice: no answer, no effect and no record of one.
async fn go_unseen(kit: &Kit, proxy: &Proxy, end_connections: impl Fn()) {
    let world = kit.world().unwrap();
    let agent = world.starter().await.unwrap();
    for number in 0..RUNS {
        let mut result = world.subject().begin(&agent, number).await.unwrap();
        while let ExecutionResult::Suspended { interrupts, .. } = &result {
            end_connections();
            for _ in 0..number % 3 {
                proxy.lose_reply();
            }
            if number % 2 == 0 {
                proxy.lose_request();
            }
            let answer = Answer::with_handle(&interrupts[0].resume, ResumeResponse::text("yes"));
            result = agent.respond(vec![answer]).await.unwrap();
        }
        assert!(matches!(result, ExecutionResult::Completed { .. }), "{result:?}");
    }
    assert!(proxy.lost() > RUNS, "{} requests and replies were lost", proxy.lost());

    let evidence = Evidence::of(&world).await.unwrap();
    assert_eq!(evidence.check_runs().await.unwrap(), usize::try_from(RUNS).unwrap());
    evidence.check_steps().unwrap();
    evidence.check_repeats(0).unwrap();
    evidence.check_nothing_left().await.unwrap();
}
