//! What a run says: chunks are stored with the transition that brings them, and numbered.

use std::time::Duration;

use bytes::Bytes;
use kortyx_protocol::RunId;

use super::{
    case::{Case, list},
    outcome::{driven, error_kind, granted},
    world::{LEASE, MARGIN, World, answer, bytes, driver, finish, opening, record, suspend},
};
use crate::{
    ChunkPage, Finish, Finished, Fork, ForkOutcome, NewInterrupt, NewRun, OpenRun, Record, Retention, RunRef,
    RunStatus, StoreErrorKind, Suspend, Suspended, TerminalStatus,
};

list![
    chunks_are_numbered_in_the_order_in_which_they_are_stored,
    a_run_that_is_new_at_its_pause_or_its_end_has_its_chunks,
    chunks_are_read_from_a_number_on,
    a_run_that_is_not_stored_has_no_output,
    what_is_refused_leaves_no_chunk,
    answers_that_came_meanwhile_leave_no_chunk,
    a_run_that_ends_instead_of_waiting_keeps_its_chunks,
    another_driver_goes_on_with_the_numbers,
    chunks_are_kept_byte_for_byte,
    a_fork_has_said_nothing_yet,
    chunks_go_with_their_run,
];

/// Everything that a run said, page by page.
async fn said(w: &World<'_>, run_id: &RunId) -> Vec<Bytes> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let page = read(w, run_id, after, 3).await;
        assert!(page.chunks.len() <= 3);
        for chunk in page.chunks {
            after += 1;
            assert_eq!(chunk.number, after);
            all.push(chunk.chunk);
        }
        if after == page.last {
            return all;
        }
    }
}

async fn read(w: &World<'_>, run_id: &RunId, after: u64, limit: u32) -> ChunkPage {
    w.store.chunks(run_id, after, limit).await.unwrap().expect("the run is stored")
}

fn chunks(texts: &[&str]) -> Vec<Bytes> {
    texts.iter().map(|text| bytes(text)).collect()
}

async fn chunks_are_numbered_in_the_order_in_which_they_are_stored(w: &World<'_>) {
    let open = OpenRun { chunks: chunks(&["1"]), ..opening(w.new_run()) };
    let lease = w.store.open(open).await.unwrap();
    assert_eq!(said(w, &lease.run_id).await, chunks(&["1"]));
    w.store.record(Record { chunks: chunks(&["2"]), ..record(&lease) }).await.unwrap();
    w.store.record(record(&lease)).await.unwrap();
    w.store.record(Record { chunks: chunks(&["3"]), entries: chunks(&["e"]), ..record(&lease) }).await.unwrap();
    let pause = Suspend { chunks: chunks(&["4", "5"]), ..suspend(RunRef::Held(lease.clone()), w.asks(&["a"])) };
    let Suspended::Saved(open) = w.store.suspend(pause).await.unwrap() else { panic!("it waits") };
    assert_eq!(read(w, &lease.run_id, 0, 1).await.status, RunStatus::Suspended);
    let claimed = granted(w.answer(&open[0], "yes").await);
    let end = finish(RunRef::Held(claimed.lease), TerminalStatus::Completed);
    let end = Finish { chunks: chunks(&["6", "7", "8"]), answers_seen: 1, ..end };
    assert_eq!(w.store.finish(end).await.unwrap(), Finished::Done);

    assert_eq!(said(w, &lease.run_id).await, chunks(&["1", "2", "3", "4", "5", "6", "7", "8"]));
    assert_eq!(read(w, &lease.run_id, 0, 1).await.status, RunStatus::Completed);
    for store in w.instances().await {
        assert_eq!(store.chunks(&lease.run_id, 7, 10).await.unwrap().unwrap().chunks[0].chunk, bytes("8"));
    }
}

async fn a_run_that_is_new_at_its_pause_or_its_end_has_its_chunks(w: &World<'_>) {
    let paused = w.new_run();
    let pause = suspend(RunRef::New(paused.clone(), driver()), w.asks(&["a"]));
    w.store.suspend(Suspend { chunks: chunks(&["1", "2"]), ..pause }).await.unwrap();
    let ended = w.new_run();
    let end = finish(RunRef::New(ended.clone(), driver()), TerminalStatus::Failed);
    w.store.finish(Finish { chunks: chunks(&["1"]), ..end }).await.unwrap();

    assert_eq!(said(w, &paused.run_id).await, chunks(&["1", "2"]));
    assert_eq!(said(w, &ended.run_id).await, chunks(&["1"]));
}

async fn chunks_are_read_from_a_number_on(w: &World<'_>) {
    let lease = w.driven().await;
    w.store.record(Record { chunks: chunks(&["1", "2", "3", "4"]), ..record(&lease) }).await.unwrap();

    for (after, limit, expected) in [
        (0, 2, vec![1, 2]),
        (1, 2, vec![2, 3]),
        (3, 100, vec![4]),
        (4, 5, vec![]),
        (u64::MAX, 5, vec![]),
        (0, 0, vec![]),
    ] {
        let page = read(w, &lease.run_id, after, limit).await;
        let numbers: Vec<_> = page.chunks.iter().map(|chunk| chunk.number).collect();
        assert_eq!((numbers, page.last, page.status), (expected, 4, RunStatus::Running), "{limit} after {after}");
    }
}

async fn a_run_that_is_not_stored_has_no_output(w: &World<'_>) {
    assert_eq!(w.store.chunks(&w.run_id(), 0, 10).await.unwrap(), None);
}

async fn what_is_refused_leaves_no_chunk(w: &World<'_>) {
    let lease = w.driven().await;
    let again = NewRun { run_id: lease.run_id.clone(), ..w.new_run() };
    let again = OpenRun { chunks: chunks(&["again"]), ..opening(again) };
    assert_eq!(error_kind(w.store.open(again).await), StoreErrorKind::AlreadyExists);
    w.store.release(&lease).await.unwrap();
    let said_late = || chunks(&["late"]);
    let late = Record { chunks: said_late(), ..record(&lease) };
    assert_eq!(error_kind(w.store.record(late).await), StoreErrorKind::LeaseLost);
    let late = Suspend { chunks: said_late(), ..suspend(RunRef::Held(lease.clone()), w.asks(&["a"])) };
    assert_eq!(error_kind(w.store.suspend(late).await), StoreErrorKind::LeaseLost);
    let late = Finish { chunks: said_late(), ..finish(RunRef::Held(lease.clone()), TerminalStatus::Completed) };
    assert_eq!(error_kind(w.store.finish(late).await), StoreErrorKind::LeaseLost);

    let lease = w.claim().await.remove(0).lease;
    let taken = w.published(&lease, w.asks(&["a"])).await.remove(0);
    let again = NewInterrupt { request_id: taken.request_id, ..w.ask("b") };
    let refused = Record { chunks: said_late(), publish: vec![again], ..record(&lease) };
    assert_eq!(error_kind(w.store.record(refused).await), StoreErrorKind::AlreadyExists);

    assert_eq!(said(w, &lease.run_id).await, chunks(&[]));
}

async fn answers_that_came_meanwhile_leave_no_chunk(w: &World<'_>) {
    let lease = w.driven().await;
    let open = w.published(&lease, w.asks(&["a"])).await;
    driven(w.answer(&open[0], "yes").await);
    let pause = Suspend { chunks: chunks(&["1"]), ..suspend(RunRef::Held(lease.clone()), w.asks(&["b"])) };
    assert!(matches!(w.store.suspend(pause.clone()).await.unwrap(), Suspended::Answered(_)));
    let end = finish(RunRef::Held(lease.clone()), TerminalStatus::Completed);
    let ended = w.store.finish(Finish { chunks: chunks(&["1"]), ..end }).await.unwrap();
    assert!(matches!(ended, Finished::Answered(_)));
    assert_eq!(said(w, &lease.run_id).await, chunks(&[]));

    w.store.suspend(Suspend { answers_seen: 1, ..pause }).await.unwrap();
    assert_eq!(said(w, &lease.run_id).await, chunks(&["1"]));
}

async fn a_run_that_ends_instead_of_waiting_keeps_its_chunks(w: &World<'_>) {
    let cancelled = w.driven().await;
    w.cancel(&cancelled.run_id).await;
    let pause = Suspend { chunks: chunks(&["1"]), ..suspend(RunRef::Held(cancelled.clone()), w.asks(&["a"])) };
    assert!(matches!(w.store.suspend(pause).await.unwrap(), Suspended::Cancelled));
    assert_eq!(said(w, &cancelled.run_id).await, chunks(&["1"]));

    let expired = w.driven().await;
    let at_once = NewInterrupt { expires_in: Duration::ZERO, ..w.ask("a") };
    let pause = Suspend { chunks: chunks(&["1"]), ..suspend(RunRef::Held(expired.clone()), vec![at_once]) };
    assert!(matches!(w.store.suspend(pause).await.unwrap(), Suspended::Expired));
    assert_eq!(said(w, &expired.run_id).await, chunks(&["1"]));
}

async fn another_driver_goes_on_with_the_numbers(w: &World<'_>) {
    let lease = w.driven().await;
    w.store.record(Record { chunks: chunks(&["1"]), ..record(&lease) }).await.unwrap();
    w.advance(LEASE + MARGIN);
    let claimed = w.claim().await.remove(0);
    let stale = Record { chunks: chunks(&["stale"]), ..record(&lease) };
    assert_eq!(error_kind(w.store.record(stale).await), StoreErrorKind::LeaseLost);
    w.store.record(Record { chunks: chunks(&["2"]), ..record(&claimed.lease) }).await.unwrap();
    assert_eq!(said(w, &lease.run_id).await, chunks(&["1", "2"]));
}

async fn chunks_are_kept_byte_for_byte(w: &World<'_>) {
    let lease = w.driven().await;
    let mut wanted = vec![Bytes::new(), Bytes::from_static(b"\0\xff\r\n"), Bytes::from(vec![7; 1 << 20])];
    w.store.record(Record { chunks: wanted.clone(), ..record(&lease) }).await.unwrap();
    let many: Vec<_> = (0..500).map(|number| bytes(&format!("delta {number}"))).collect();
    w.store.record(Record { chunks: many.clone(), ..record(&lease) }).await.unwrap();
    wanted.extend(many);
    let page = read(w, &lease.run_id, 0, 1_000).await;
    assert!(page.chunks.iter().map(|chunk| &chunk.chunk).eq(&wanted));
    assert_eq!(page.last, 503);
}

async fn a_fork_has_said_nothing_yet(w: &World<'_>) {
    let run = w.new_run();
    let pause = Suspend {
        chunks: chunks(&["1"]),
        checkpoint: Some(w.new_checkpoint("turn")),
        ..suspend(RunRef::New(run.clone(), driver()), w.asks(&["a"]))
    };
    w.store.suspend(pause).await.unwrap();
    let head = w.store.head(&run.session_id).await.unwrap().unwrap();
    let fork = Fork {
        checkpoint_id: head.checkpoint.id,
        new_session_id: w.session_id(),
        new_checkpoint_id: w.checkpoint_id(),
        new_run_id: w.run_id(),
        reissue: w.reissue(&head.interrupts),
    };
    let ForkOutcome::Done { interrupts, .. } = w.store.fork(fork).await.unwrap() else { panic!("it forks") };
    assert_eq!(said(w, &interrupts[0].run_id).await, chunks(&[]));
    let claimed = granted(w.answer_all(vec![answer(&interrupts[0], "yes")]).await);
    w.store.record(Record { chunks: chunks(&["other"]), ..record(&claimed.lease) }).await.unwrap();
    assert_eq!(said(w, &claimed.lease.run_id).await, chunks(&["other"]));
    assert_eq!(said(w, &run.run_id).await, chunks(&["1"]));
}

async fn chunks_go_with_their_run(w: &World<'_>) {
    let run = w.new_run();
    let end = finish(RunRef::New(run.clone(), driver()), TerminalStatus::Completed);
    w.store.finish(Finish { chunks: chunks(&["1", "2"]), ..end }).await.unwrap();
    let retention = Retention { finished_runs: Duration::from_secs(1), ..Retention::default() };
    w.advance(Duration::from_secs(1) + MARGIN);
    w.store.prune(&retention, 100).await.unwrap();
    assert_eq!(w.store.chunks(&run.run_id, 0, 10).await.unwrap(), None);

    // Who takes the id anew begins anew.
    let end = finish(RunRef::New(run.clone(), driver()), TerminalStatus::Completed);
    w.store.finish(Finish { chunks: chunks(&["3"]), ..end }).await.unwrap();
    assert_eq!(said(w, &run.run_id).await, chunks(&["3"]));
}
