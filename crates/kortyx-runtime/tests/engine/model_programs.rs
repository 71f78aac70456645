//! Random programs under random answers and crashes agree with the reference.

use std::{collections::BTreeSet, sync::Arc};

use kortyx_protocol::StreamChunk;
use proptest::{prelude::*, test_runner::TestCaseError};

use crate::{
    model_drive::{Run, Tape, block_on, check, open_questions},
    model_language::{Case, Scope, cases},
    model_node::workflows,
    model_probe::{Probe, respond},
    model_reference::{Expected, Reference},
    support::{World, completed},
};

#[test]
fn random_programs_do_what_the_reference_does() {
    check(200, &cases(1..=1, 2), |case| block_on(agrees(case)));
}

#[test]
fn random_programs_at_once_do_what_the_reference_does() {
    check(120, &cases(2..=3, 1), |case| block_on(agrees(case)));
}

/// Plays a case to its end and compares at every pause.
pub(crate) async fn agrees(case: Case) -> Result<(), TestCaseError> {
    let case = Arc::new(case);
    let probe = Arc::new(Probe::new(case.seed));
    let mut run = Run::new(&workflows(&case, &probe), probe.clone(), Tape::new(case.tape.clone()), respond(&probe));
    let at_pause = |world: &World| {
        let expected = compare(&case, &probe, world)?;
        prop_assert_eq!(open_questions(world), expected.open, "open questions");
        prop_assert_eq!(expected.data, None, "the run waits, but should have ended");
        Ok(())
    };
    let end = run.finish(at_pause).await?;
    let expected = compare(&case, &probe, &run.world)?;
    prop_assert_eq!(Some(&completed(end)), expected.data.as_ref());
    compare_counts(&case, &probe, &expected)
}

fn compare(case: &Case, probe: &Probe, world: &World) -> Result<Expected, TestCaseError> {
    let (winners, answered, crashes) = probe.seen(|seen| (seen.winners.clone(), seen.answered.clone(), seen.crashes));
    let violations = probe.seen(|seen| std::mem::take(&mut seen.violations));
    prop_assert!(violations.is_empty(), "{}", violations.join("\n"));
    let expected = Reference { case, answered: &answered, winners: &winners }.expect();
    prop_assert!(expected.undecided.is_empty(), "undecided: {:?}", expected.undecided);
    compare_steps(probe, &expected)?;
    compare_texts(case, crashes, world, &expected)?;
    Ok(expected)
}

fn compare_steps(probe: &Probe, expected: &Expected) -> Result<(), TestCaseError> {
    let happened: Vec<_> = probe.seen(|seen| seen.effects.values().map(|effect| effect.address.clone()).collect());
    let addresses: BTreeSet<_> = happened.iter().cloned().collect();
    prop_assert_eq!(addresses.len(), happened.len(), "a step has one idempotency key: {:?}", happened);
    let missing: Vec<_> = expected.done.steps.difference(&addresses).collect();
    prop_assert!(missing.is_empty(), "steps that did not happen: {missing:?}");
    let known = |address: &&String| expected.done.steps.contains(*address) || expected.maybe.steps.contains(*address);
    let extra: Vec<_> = addresses.iter().filter(|address| !known(address)).collect();
    prop_assert!(extra.is_empty(), "steps that should not have happened: {extra:?}");
    Ok(())
}

/// Every text is delivered once, apart from crashes; in a program that does one thing after another, in its order.
fn compare_texts(case: &Case, crashes: u32, world: &World, expected: &Expected) -> Result<(), TestCaseError> {
    let chunks = world.chunks.lock().unwrap();
    let delivered = chunks.iter().filter_map(|chunk| match chunk {
        StreamChunk::TextDelta(delta) => Some(delta.delta.clone()),
        _ => None,
    });
    let delivered: Vec<String> = delivered.collect();
    if crashes == 0 && case.is_sequential() {
        prop_assert_eq!(&delivered, &expected.done.texts, "texts in order");
    }
    let count = |texts: &[String], text: &str| texts.iter().filter(|other| *other == text).count();
    for content in ["0", "1", "2"] {
        let (least, got) = (count(&expected.done.texts, content), count(&delivered, content));
        let most = least + count(&expected.maybe.texts, content);
        prop_assert!(got >= least, "text {content} came {got} times of {least}");
        prop_assert!(crashes > 0 || got <= most, "text {content} came {got} times of {most}");
    }
    Ok(())
}

/// State is counted up once by each count that a replayed node passes, and apart in each child.
fn compare_counts(case: &Case, probe: &Probe, expected: &Expected) -> Result<(), TestCaseError> {
    let counts = probe.seen(|seen| seen.counts.clone());
    // What branches of a fan-out set in the state of the workflow is the last one's.
    let is_alone = |at: &(String, Scope)| case.roots == 1 || at.1 == Scope::Node || at.0.contains('/');
    for (at, count) in counts.iter().filter(|(at, _)| is_alone(at)) {
        let least = expected.done.counts.get(at).copied().unwrap_or_default();
        let most = least + expected.maybe.counts.get(at).copied().unwrap_or_default();
        prop_assert!((least..=most).contains(count), "{at:?} counted to {count}, not {least} to {most}");
    }
    prop_assert!(expected.done.counts.keys().all(|at| counts.contains_key(at)), "state that was not counted");
    Ok(())
}
