//! What the store keeps in memory, counted by the allocator. One test, so that nothing else allocates meanwhile.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails in a test panics")]

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use kortyx_memory::MemoryStore;
use kortyx_protocol::{RequestId, ResumeToken, RunId, SessionId};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, AskKey, Drive, Driver, Finish, Finished, NewAnswer, NewInterrupt, NewRun, Proof,
    Retention, RunRef, Scalar, Store, Suspend, Suspended, TerminalStatus, WorkflowPin,
};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const SNAPSHOT: usize = 1024;
const QUESTION: usize = 200;

fn pin() -> WorkflowPin {
    WorkflowPin { id: "review".into(), version: "1".into(), fingerprint: "5e".repeat(32).into() }
}

fn driver() -> Driver {
    Driver { id: "driver".to_owned(), ttl: Duration::from_secs(30) }
}

/// Sixteen bytes of the run's own.
fn bytes(number: u64) -> [u8; 16] {
    let mut bytes = [7; 16];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

async fn pause(store: &MemoryStore, number: u64, context: BTreeMap<String, Scalar>) {
    let run = NewRun {
        run_id: RunId::from_random(bytes(number)),
        session_id: SessionId::from_random(bytes(number)),
        workflow: pin(),
        context,
        follows: None,
    };
    let asked = NewInterrupt {
        request_id: RequestId::from_random(bytes(number)),
        token: ResumeToken::mint(bytes(number), [7; 32]),
        ask: AskKey("3/approval".to_owned()),
        workflow: "review".to_owned(),
        node: "approve".to_owned(),
        question: Bytes::from(vec![b'q'; QUESTION]),
        expires_in: Duration::from_mins(15),
        default: None,
        optional_cancel: false,
        after_response_completed: false,
    };
    let request = Suspend {
        run: RunRef::New(run, driver()),
        workflow: pin(),
        snapshot: Bytes::from(vec![b's'; SNAPSHOT]),
        publish: vec![asked],
        withdraw: Vec::new(),
        chunks: Vec::new(),
        answers_seen: 0,
        checkpoint: None,
    };
    assert!(matches!(store.suspend(request).await, Ok(Suspended::Saved(_))));
}

async fn complete(store: &MemoryStore, number: u64) {
    let answer = NewAnswer {
        request_id: RequestId::from_random(bytes(number)),
        proof: Proof::Token(ResumeToken::mint(bytes(number), [7; 32])),
        session_id: None,
        run_id: None,
        answer: Bytes::from_static(br#"{"ids":["approve"],"type":"select"}"#),
        cancel: false,
        actor: Some("ann".to_owned()),
    };
    let request = AnswerRequest { answers: vec![answer], driver: Some(driver()) };
    let Ok(AnswerOutcome::Accepted(_, Drive::Granted(claimed))) = store.answer(request).await else {
        panic!("the answer is accepted");
    };
    let request = Finish {
        run: RunRef::Held(claimed.lease),
        workflow: pin(),
        status: TerminalStatus::Completed,
        outcome: Bytes::from(vec![b'o'; 100]),
        reason: None,
        chunks: Vec::new(),
        answers_seen: 1,
        checkpoint: None,
    };
    assert_eq!(store.finish(request).await.unwrap(), Finished::Done);
}

async fn prune_all(store: &MemoryStore) {
    let retention = Retention { finished_runs: Duration::ZERO, ..Retention::default() };
    while store.prune(&retention, 1000).await.unwrap().more {}
}

/// Bytes kept for each of `count` paused runs beyond their payloads.
async fn overhead(store: &MemoryStore, count: u64, context: impl Fn(u64) -> BTreeMap<String, Scalar>) -> usize {
    let before = ALLOCATOR.current_usage();
    for number in 0..count {
        pause(store, number, context(number)).await;
    }
    let kept = ALLOCATOR.current_usage() - before;
    kept / usize::try_from(count).unwrap() - SNAPSHOT - QUESTION
}

#[test]
fn a_paused_run_is_small_and_a_finished_one_leaves_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = MemoryStore::new();
        let empty = ALLOCATOR.current_usage();

        // Just after its hash maps grew, the store keeps the most for each run.
        for count in [8_000, 15_000] {
            let plain = overhead(&store, count, |_| BTreeMap::new()).await;
            println!("{count} paused runs: {plain} bytes each beyond the payloads");
            assert!(plain < 1200, "{plain}");
            for number in 0..count {
                complete(&store, number).await;
            }
            prune_all(&store).await;
        }
        let tenants = |number| {
            let user = Scalar::Text(format!("user-{number}").into());
            BTreeMap::from([("tenant".to_owned(), Scalar::Text("acme".into())), ("user".to_owned(), user)])
        };
        let with_context = overhead(&store, 8_000, tenants).await;
        println!("with a tenant and a user of its own: {with_context} bytes");
        assert!(with_context < 1600, "{with_context}");
        for number in 0..8_000 {
            complete(&store, number).await;
        }
        prune_all(&store).await;

        let left = ALLOCATOR.current_usage().saturating_sub(empty);
        println!("left after all were pruned: {left} bytes");
        assert!(left < 64 * 1024, "{left}");

        let before = ALLOCATOR.current_usage();
        for number in 0..20_000 {
            pause(&store, number, BTreeMap::new()).await;
            complete(&store, number).await;
            if number % 1000 == 999 {
                prune_all(&store).await;
            }
        }
        let grown = ALLOCATOR.current_usage().saturating_sub(before);
        println!("grown by 20,000 cycles: {grown} bytes");
        assert!(grown < 64 * 1024, "{grown}");
    });
}
