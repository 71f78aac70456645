//! Ids at the edge of what is valid, and past it.

use std::fmt::Debug;

use kortyx_protocol::{CheckpointId, RequestId, ResumeToken, RunId, SessionId};

use super::{
    case::{Case, list},
    chains::{fork, rollback},
    outcome::{forked, granted, refusal, rolled_back},
    world::{World, answer, driver, ids, in_scope, of_run, suspend},
};
use crate::{
    CancelOutcome, Fork, NewCheckpoint, NewInterrupt, NewRun, Refusal, Reissue, Rollback, RunRef, Scope, Suspend,
};

list![
    b119_ids_that_are_empty_blank_too_long_or_hold_controls_cannot_be_made,
    ids_with_strange_but_valid_characters_name_what_they_were_given_to,
    ids_that_differ_in_one_character_are_different,
];

async fn b119_ids_that_are_empty_blank_too_long_or_hold_controls_cannot_be_made(_: &World<'_>) {
    let long = "x".repeat(513);
    let longer = "é".repeat(257);
    let huge = "x".repeat(10_000);
    for text in ["", " ", "\t\n", "\u{a0}", "\0", "a\0b", "a\nb", "\u{7f}", "\u{85}", &long, &longer, &huge] {
        refused(text, &RunId::new(text));
        refused(text, &SessionId::new(text));
        refused(text, &RequestId::new(text));
        refused(text, &CheckpointId::new(text));
        refused(text, &ResumeToken::parse(text));
    }
}

fn refused<T: Debug, E: Debug>(text: &str, made: &Result<T, E>) {
    let start: String = text.chars().take(8).collect();
    assert!(made.is_err(), "an id was made of {start:?} ({} bytes)", text.len());
}

fn strange() -> Vec<String> {
    let mut all: Vec<String> = [
        "it's \"quoted\" `x`",
        "%_*?[a-z]{b}\\",
        "a:b/c#d|e&f=g+h",
        "ünï😀–\u{202e}x",
        " led and trailed ",
        "'; DROP TABLE runs; --",
        "{0}:{1}",
        "-1",
        "null",
    ]
    .map(str::to_owned)
    .into();
    all.push("x".repeat(512));
    all.push("é".repeat(256));
    all
}

async fn ids_with_strange_but_valid_characters_name_what_they_were_given_to(w: &World<'_>) {
    for name in strange() {
        let run = NewRun {
            run_id: RunId::new(name.as_str()).unwrap(),
            ..w.new_run_in(&SessionId::new(name.as_str()).unwrap())
        };
        let (request_id, token) = (RequestId::new(name.as_str()).unwrap(), ResumeToken::parse(&name).unwrap());
        let asked = NewInterrupt { request_id: request_id.clone(), token, ..w.ask("a") };
        let checkpoint = NewCheckpoint { id: CheckpointId::new(name.as_str()).unwrap(), ..w.new_checkpoint("turn") };
        let request = Suspend {
            checkpoint: Some(checkpoint.clone()),
            ..suspend(RunRef::New(run.clone(), driver()), vec![asked])
        };
        w.store.suspend(request).await.unwrap();

        let stored = w.question(&request_id).await;
        assert_eq!((&stored.run_id, &stored.session_id), (&run.run_id, &run.session_id));
        assert_eq!(w.run(&run.run_id).await.session_id, run.session_id);
        assert_eq!(w.open(&run.run_id).await, std::slice::from_ref(&request_id));
        let by_session = in_scope(Scope::session(run.session_id.clone()));
        assert_eq!(ids(&w.list(by_session).await), [request_id]);
        let head = w.store.head(&run.session_id).await.unwrap().unwrap();
        assert_eq!(head.checkpoint, checkpoint);
        assert_eq!(w.store.checkpoint(&checkpoint.id).await.unwrap().unwrap().run_id, Some(run.run_id.clone()));

        forks_and_rolls_back(w, &name).await;
        let claimed = granted(w.answer(&stored, "yes").await);
        assert_eq!(w.cancel(&run.run_id).await, [CancelOutcome::Requested(run.run_id)]);
        w.complete(&claimed.lease, 1).await;
    }
}

async fn forks_and_rolls_back(w: &World<'_>, name: &str) {
    let text = format!("{}y", name.chars().rev().skip(1).collect::<String>());
    let checkpoint = w.store.checkpoint(&CheckpointId::new(name).unwrap()).await.unwrap().unwrap();
    let reissue = |from: &RequestId, text: &str| {
        vec![Reissue {
            from: from.clone(),
            request_id: RequestId::new(text).unwrap(),
            token: ResumeToken::parse(text).unwrap(),
        }]
    };
    let request = Fork {
        new_session_id: SessionId::new(text.as_str()).unwrap(),
        new_checkpoint_id: CheckpointId::new(text.as_str()).unwrap(),
        new_run_id: RunId::new(text.as_str()).unwrap(),
        reissue: reissue(&checkpoint.interrupts[0].request_id, &text),
        ..fork(w, &checkpoint)
    };
    let copy = forked(w.store.fork(request.clone()).await.unwrap()).remove(0);
    assert_eq!(w.list(of_run(&request.new_run_id)).await.len(), 1);
    let copied = w.store.checkpoint(&request.new_checkpoint_id).await.unwrap().unwrap();
    w.append(&request.new_session_id, "newer").await;
    let back = Rollback { reissue: w.reissue(&copied.interrupts), ..rollback(w, &copied) };
    let reopened = rolled_back(w.store.rollback(back).await.unwrap()).remove(0);
    assert_eq!(refusal(w.answer(&copy, "late").await), Refusal::Superseded);
    granted(w.answer_all(vec![answer(&reopened, "yes")]).await);
}

async fn ids_that_differ_in_one_character_are_different(w: &World<'_>) {
    let names = ["a", "A", "a ", " a", "á", "a\u{301}", "a.", "1", "01", "1.0", "+1", "ß", "ss", "ﬁ", "fi"];
    for name in names {
        let run = NewRun { run_id: RunId::new(name).unwrap(), ..w.new_run() };
        let asked = NewInterrupt {
            request_id: RequestId::new(name).unwrap(),
            token: ResumeToken::parse(name).unwrap(),
            ..w.ask(name)
        };
        w.paused_run(run, vec![asked]).await;
        w.store
            .append_checkpoint(
                &w.session_id(),
                NewCheckpoint { id: CheckpointId::new(name).unwrap(), ..w.new_checkpoint(name) },
            )
            .await
            .unwrap();
    }
    for name in names {
        let stored = w.question(&RequestId::new(name).unwrap()).await;
        assert_eq!((stored.run_id.as_str(), stored.ask.0.as_str()), (name, name));
        let checkpoint = w.store.checkpoint(&CheckpointId::new(name).unwrap()).await.unwrap().unwrap();
        assert_eq!(checkpoint.checkpoint.label.as_deref(), Some(name));
        assert_eq!(granted(w.answer(&stored, "yes").await).run.run_id.as_str(), name);
    }
}
