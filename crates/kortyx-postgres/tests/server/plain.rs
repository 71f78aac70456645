//! A transition in its plain case reads and decides in one statement: what changed while it waited must be seen.

use std::{sync::Arc, time::Duration};

use kortyx_postgres::PostgresStore;
use kortyx_store::{
    AnswerOutcome, Drive, Finish, Finished, InterruptQuery, InterruptRecord, Refusal, RunRef, Scope, Store,
    StoreErrorKind, Suspend,
};
use sqlx::{AssertSqlSafe, PgConnection};

use crate::world::{World, answer, ask, connect, driver, finish, granted, new_run, paused, saved, suspend};

/// A transaction beside the store that has changed rows and not committed.
struct Held(PgConnection);

impl Held {
    async fn over(world: &World, sql: &str) -> Self {
        let mut connection = connect().await;
        let sql = format!("BEGIN; {sql}").replace("kortyx.", &format!("{}.", world.schema));
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        Self(connection)
    }

    /// Commits as soon as a call of the store waits for it.
    async fn commit_when_awaited(mut self, world: &World) {
        let waiting = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%{}%'",
            world.schema
        );
        while world.number(&waiting).await == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        sqlx::raw_sql("COMMIT").execute(&mut self.0).await.unwrap();
    }
}

fn at(question: &InterruptRecord) -> String {
    format!("run_id = '{}'", question.run_id.as_str())
}

async fn world() -> (World, Arc<PostgresStore>) {
    let world = World::new();
    let store = world.store().await;
    (world, Arc::new(store))
}

/// Answers while somebody else's change is not committed.
async fn answered_during(
    world: &World,
    store: &PostgresStore,
    question: &InterruptRecord,
    change: &str,
) -> AnswerOutcome {
    let held = Held::over(world, change).await;
    let (outcome, ()) = tokio::join!(store.answer(answer(question, "yes")), held.commit_when_awaited(world));
    outcome.unwrap()
}

#[tokio::test]
async fn an_answer_that_waited_meets_what_became_of_its_question() {
    let (world, store) = world().await;
    let question = paused(&*store).await;
    let (run, request) = (at(&question), question.request_id.as_str());
    let change = format!(
        "UPDATE kortyx.runs SET updated_at = updated_at WHERE {run}; \
         UPDATE kortyx.interrupts SET status = 'expired' WHERE request_id = '{request}'"
    );
    match answered_during(&world, &store, &question, &change).await {
        AnswerOutcome::Refused(refusals) => assert_eq!(refusals, [(question.request_id, Refusal::Expired)]),
        other => panic!("an expired question was answered: {other:?}"),
    }
}

#[tokio::test]
async fn an_answer_that_waited_for_a_lock_alone_is_accepted() {
    let (world, store) = world().await;
    let question = paused(&*store).await;
    let change = format!("SELECT FROM kortyx.runs WHERE {} FOR UPDATE", at(&question));
    let claimed = granted(answered_during(&world, &store, &question, &change).await);
    assert_eq!((claimed.answers.len(), claimed.lease.fence), (1, 1));
}

#[tokio::test]
async fn of_two_answers_at_the_same_moment_one_is_granted_the_run_and_the_other_is_told() {
    let (world, store) = world().await;
    let request = suspend(RunRef::New(new_run(), driver()), vec![ask("a"), ask("b")], 0);
    let questions = saved(store.suspend(request).await.unwrap());
    let lock = Held::over(&world, &format!("SELECT FROM kortyx.runs WHERE {} FOR UPDATE", at(&questions[0]))).await;
    let (one, other, ()) = tokio::join!(
        store.answer(answer(&questions[0], "yes")),
        store.answer(answer(&questions[1], "no")),
        lock.commit_when_awaited(&world)
    );
    let drives = [one, other].map(|outcome| match outcome.unwrap() {
        AnswerOutcome::Accepted(_, drive) => matches!(drive, Drive::Granted(_)),
        other => panic!("an answer must be accepted, not: {other:?}"),
    });
    assert!(drives[0] != drives[1], "{drives:?}");
    let run = store.run(&questions[0].run_id).await.unwrap().unwrap();
    assert_eq!((run.answers, run.fence), (2, 1));
}

#[tokio::test]
async fn an_end_that_waited_is_told_of_the_answer_that_came_meanwhile() {
    let (world, store) = world().await;
    let question = paused(&*store).await;
    let claimed = granted(store.answer(answer(&question, "yes")).await.unwrap());
    let held = Held::over(&world, &format!("UPDATE kortyx.runs SET answers = 2 WHERE {}", at(&question))).await;
    let request = Finish { checkpoint: None, ..finish(&claimed.lease, 1) };
    let (outcome, ()) = tokio::join!(store.finish(request), held.commit_when_awaited(&world));
    assert!(matches!(outcome.unwrap(), Finished::Answered(_)));
}

#[tokio::test]
async fn a_run_that_asks_and_ends_plainly_is_stored_as_any_other() {
    let (_world, store) = world().await;
    let run = new_run();
    let request = Suspend { checkpoint: None, ..suspend(RunRef::New(run.clone(), driver()), vec![ask("a")], 0) };
    let published = saved(store.suspend(request).await.unwrap()).remove(0);
    let stored = store.interrupt(&published.request_id).await.unwrap().unwrap();
    assert_eq!(stored.context, published.context);
    assert_eq!((stored.created_at, stored.expires_at), (published.created_at, published.expires_at));
    let page = InterruptQuery {
        scope: Scope { context: run.context, ..Scope::default() },
        limit: 10,
        ..InterruptQuery::default()
    };
    assert_eq!(store.list_interrupts(page.clone()).await.unwrap().interrupts.len(), 1);

    let claimed = granted(store.answer(answer(&published, "yes")).await.unwrap());
    assert_eq!(claimed.answers[0].request_id, published.request_id);
    assert_eq!(store.list_interrupts(page).await.unwrap().interrupts.len(), 0);
    let request = Finish { checkpoint: None, ..finish(&claimed.lease, 1) };
    assert!(matches!(store.finish(request.clone()).await.unwrap(), Finished::Done));
    assert!(store.run(&published.run_id).await.unwrap().unwrap().status.is_terminal());
    assert_eq!(store.finish(request).await.unwrap_err().kind(), StoreErrorKind::LeaseLost);
}
