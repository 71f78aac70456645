//! Operators' listings of more runs than one call looks at.

use futures_util::future::try_join_all;
use kortyx_store::{
    Park, RunQuery, RunStatus, Store,
    conformance::requests::{new_run, opening},
};

use crate::support::{Server, set_up};

/// More than a call looks at.
const MANY: usize = 2_100;

#[tokio::test(flavor = "multi_thread")]
async fn a_rare_run_is_found_by_calls_that_each_look_at_a_part() {
    let server = Server::start();
    let store = set_up(server.config()).await;
    let leases = try_join_all((0..MANY).map(|_| store.open(opening(new_run())))).await.unwrap();
    // Wherever it stands in the order: one of both calls finds it, and the other one nothing.
    let lease = leases.first().unwrap().clone();
    store.park(Park { lease: lease.clone(), reason: "changed".to_owned() }).await.unwrap();

    let mut query = RunQuery { statuses: vec![RunStatus::Parked], limit: 5, ..RunQuery::default() };
    let (mut found, mut calls) = (Vec::new(), 0);
    loop {
        let page = store.list_runs(query.clone()).await.unwrap();
        found.extend(page.runs);
        calls += 1;
        let Some(next) = page.next else { break };
        query.cursor = Some(next);
    }

    assert_eq!(found.iter().map(|run| &run.run_id).collect::<Vec<_>>(), [&lease.run_id]);
    assert_eq!(calls, 2);
    let runs = store.stats().await.unwrap().runs;
    assert_eq!((runs.of(RunStatus::Parked), runs.total()), (1, u64::try_from(MANY).unwrap()));
}
