//! Clients that read nothing.

use std::time::Duration;

use crate::world::{Plan, eventually, unread};

#[tokio::test]
async fn a_reader_that_takes_nothing_loses_its_connection_and_its_run() {
    let mut plan = Plan::new();
    plan.server.write_stall = Duration::from_millis(300);
    let site = plan.start().await;
    let _reader = unread(&site, "s1").await;
    eventually(|| site.agent().driven_runs() == 1).await;
    eventually(|| site.agent().driven_runs() == 0).await;
}
