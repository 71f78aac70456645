//! The program of the processes that tests kill, stop and race.

use std::sync::Arc;

use kortyx_testkit::member;
use kortyx_tests::driven::Driven;

#[tokio::main]
async fn main() {
    member(Arc::new(Driven::anywhere())).await;
    eprintln!("error: this program is started by tests");
    std::process::exit(2);
}
