//! What an encoding store promises beyond the port: secrecy, repeats, lost keys.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails in a test panics")]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use kortyx_codec::{CodecStore, Envelope, Key, Keyring};
use kortyx_memory::MemoryStore;
use kortyx_protocol::{RequestId, ResumeToken, RunId, SessionId};
use kortyx_store::{
    AnswerOutcome, AnswerRequest, AskKey, ClaimRequest, Drive, Driver, InterruptQuery, InterruptRecord, NewAnswer,
    NewInterrupt, NewRun, Proof, Refusal, RunRef, RunStatus, Scope, Store, StoreErrorKind, Suspend, Suspended,
    WorkflowPin,
};

const SECRET: &str = "the launch code is 0000";

fn encrypting(id: &str) -> Envelope {
    let byte = id.bytes().next().unwrap();
    Envelope::new().encrypt(Keyring::new(id, Key::new(&[byte; 32])).unwrap())
}

/// A store under a key, over a place that others see too.
fn under(key: &str, place: &Arc<MemoryStore>) -> CodecStore<MemoryStore> {
    CodecStore::over(place.clone(), Arc::new(encrypting(key)))
}

fn pin() -> WorkflowPin {
    WorkflowPin { id: "review".into(), version: "1".into(), fingerprint: "5e".repeat(32).into() }
}

fn driver() -> Driver {
    Driver { id: "driver".to_owned(), ttl: Duration::from_secs(30) }
}

fn question(ask: &str) -> NewInterrupt {
    NewInterrupt {
        request_id: RequestId::new(format!("human-{ask}")).unwrap(),
        token: ResumeToken::parse(format!("token-{ask}")).unwrap(),
        ask: AskKey(ask.to_owned()),
        workflow: "review".to_owned(),
        node: "approve".to_owned(),
        question: SECRET.into(),
        expires_in: Duration::from_mins(15),
        default: Some(SECRET.into()),
        optional_cancel: false,
        after_response_completed: false,
    }
}

/// A run that waits for two answers.
async fn paused(store: &dyn Store) -> Vec<InterruptRecord> {
    let run = NewRun {
        run_id: RunId::new("run-1").unwrap(),
        session_id: SessionId::new("session-1").unwrap(),
        workflow: pin(),
        context: BTreeMap::new(),
        follows: None,
    };
    let suspend = Suspend {
        run: RunRef::New(run, driver()),
        workflow: pin(),
        snapshot: SECRET.into(),
        publish: vec![question("a"), question("b")],
        withdraw: Vec::new(),
        chunks: Vec::new(),
        answers_seen: 0,
        checkpoint: None,
    };
    match store.suspend(suspend).await.unwrap() {
        Suspended::Saved(open) => open,
        other => panic!("expected a saved suspension, got {other:?}"),
    }
}

fn answering(given: &[(&InterruptRecord, &'static str)]) -> AnswerRequest {
    let answer = |(question, text): &(&InterruptRecord, &'static str)| NewAnswer {
        request_id: question.request_id.clone(),
        proof: Proof::Token(question.token.clone()),
        session_id: None,
        run_id: None,
        answer: Bytes::from_static(text.as_bytes()),
        cancel: false,
        actor: None,
    };
    AnswerRequest { answers: given.iter().map(answer).collect(), driver: None }
}

#[tokio::test]
async fn nothing_that_people_wrote_is_stored_readably() {
    let place = Arc::new(MemoryStore::new());
    let store = under("k", &place);
    let open = paused(&store).await;
    assert_eq!((&open[0].question[..], open[0].default.as_deref()), (SECRET.as_bytes(), Some(SECRET.as_bytes())));
    store.answer(answering(&[(&open[0], SECRET)])).await.unwrap();

    let claim = ClaimRequest { driver: driver(), workflows: vec![pin()], parked_before: None, limit: 10 };
    let raw = place.interrupt(&open[0].request_id).await.unwrap().unwrap();
    let claimed = place.claim_orphans(claim).await.unwrap().remove(0);
    let answer = claimed.answers[0].answer.clone();
    for stored in [raw.question, raw.answer.unwrap(), raw.default.unwrap(), claimed.snapshot, answer] {
        assert!(!stored.windows(6).any(|part| part == b"launch"), "{stored:?}");
    }
}

#[tokio::test]
async fn a_repeated_answer_gets_its_first_receipt_although_it_encrypts_to_other_bytes() {
    let store = under("k", &Arc::new(MemoryStore::new()));
    let open = paused(&store).await;
    let first = match store.answer(answering(&[(&open[0], "\"yes\"")])).await.unwrap() {
        AnswerOutcome::Accepted(receipts, Drive::Left) => receipts,
        other => panic!("{other:?}"),
    };
    match store.answer(answering(&[(&open[0], "\"yes\"")])).await.unwrap() {
        AnswerOutcome::Duplicate(receipts, _) => assert_eq!(receipts, first),
        other => panic!("{other:?}"),
    }
    match store.answer(answering(&[(&open[0], "\"no\"")])).await.unwrap() {
        AnswerOutcome::Refused(refused) => assert!(matches!(refused[0].1, Refusal::Conflict(_))),
        other => panic!("{other:?}"),
    }
    // One that repeats beside one that is new.
    match store.answer(answering(&[(&open[0], "\"yes\""), (&open[1], "\"new\"")])).await.unwrap() {
        AnswerOutcome::Accepted(receipts, _) => assert_eq!(receipts[0], first[0]),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_run_whose_key_is_missing_is_parked_with_its_answer_and_goes_on_with_the_key() {
    let place = Arc::new(MemoryStore::new());
    let old = under("old", &place);
    let open = paused(&old).await;
    old.answer(answering(&[(&open[0], "\"yes\"")])).await.unwrap();

    let claim = |parked_before| ClaimRequest { driver: driver(), workflows: vec![pin()], parked_before, limit: 10 };
    assert!(under("new", &place).claim_orphans(claim(None)).await.unwrap().is_empty());
    let run = place.run(&open[0].run_id).await.unwrap().unwrap();
    assert_eq!(run.status, RunStatus::Parked);
    assert!(run.reason.unwrap().contains("the key `old`"));

    let later = place.now().await.unwrap().saturating_add(Duration::from_secs(1));
    let claimed = old.claim_orphans(claim(Some(later))).await.unwrap().remove(0);
    assert_eq!((&claimed.snapshot[..], &claimed.answers[0].answer[..]), (SECRET.as_bytes(), &b"\"yes\""[..]));
}

#[tokio::test]
async fn a_question_whose_key_is_missing_is_an_error_that_names_question_and_key() {
    let place = Arc::new(MemoryStore::new());
    let open = paused(&under("old", &place)).await;
    let new = under("new", &place);
    let error = new.interrupt(&open[0].request_id).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    for part in ["human-a", "the key `old`"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    let scope = Scope::session(SessionId::new("session-1").unwrap());
    let query = InterruptQuery { scope, limit: 10, ..InterruptQuery::default() };
    assert_eq!(new.list_interrupts(query).await.unwrap_err().kind(), StoreErrorKind::Corrupt);
    assert_eq!(place.interrupt(&open[0].request_id).await.unwrap().unwrap().question[..2], *b"\xC5K");
}
