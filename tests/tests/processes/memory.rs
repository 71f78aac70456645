//! Why the memory store has no place here.

use kortyx::{
    Agent, Answer, ExecuteOptions,
    memory::MemoryStore,
    protocol::{FailureCode, ResumeResponse},
};
use kortyx_testkit::Log;
use kortyx_tests::driven::Flows;
use libtest_mimic::Trial;
use serde_json::json;

use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("a_memory_store_has_no_second_process", no_second_process)]
}

/// What one process keeps in memory, another one's agent does not know.
async fn no_second_process() {
    let flows = Flows::new(&Log::at("/dev/null")).unwrap();
    let agent = || Agent::builder().workflow(&flows.asking).store(MemoryStore::new()).build();
    let (one, other) = (agent().await.unwrap(), agent().await.unwrap());
    let result = one.execute(&flows.asking, json!(1), ExecuteOptions::new()).await.unwrap();
    let answer = || vec![Answer::with_handle(&result.interrupts()[0].resume, ResumeResponse::text("x"))];
    assert_eq!(other.submit(answer()).await.unwrap_err().code(), FailureCode::NotFound);
    assert!(!one.submit(answer()).await.unwrap().is_duplicate);
}
