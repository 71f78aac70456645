//! Random graphs under random answers and crashes agree with the reference.

use std::{collections::BTreeSet, sync::Arc};

use kortyx_protocol::ResumeResponse;
use kortyx_runtime::{OpenQuestion, Outcome};
use proptest::{prelude::*, test_runner::TestCaseError};

use crate::{
    model_drive::{Run, Tape, block_on, check},
    model_graph::{Graph, parallel, sequential},
    model_graph_reference::{End, Expected, limit_address, may_go_on},
    model_probe::{Probe, answer_to},
    support::{Drive, World, select, text},
};

#[test]
fn random_sequential_graphs_take_the_way_of_the_reference() {
    check(200, &sequential(), |graph| block_on(agrees(graph)));
}

#[test]
fn random_parallel_graphs_end_as_the_reference_does() {
    check(200, &parallel(), |graph| block_on(agrees(graph)));
}

async fn agrees(graph: Graph) -> Result<(), TestCaseError> {
    let probe = Arc::new(Probe::new(graph.seed));
    let Some(workflow) = graph.workflow(&probe) else { return Err(TestCaseError::reject("refused by the builder")) };
    let is_parallel = workflow.definition().is_parallel();
    let mut run = Run::new(&[workflow], probe.clone(), Tape::new(graph.tape.clone()), respond(&probe));
    // Which branch of a fan-out comes to the limit depends on who was first.
    let is_certain = !is_parallel || graph.limit.is_none();
    let compare = |is_certain| {
        let answered = probe.seen(|seen| seen.answered.clone());
        let expected = if is_parallel { graph.expect_parallel(&answered) } else { graph.expect_sequential(&answered) };
        compare_steps(&probe, &expected, is_certain).map(|()| expected)
    };
    let at_pause = |world: &World| {
        let expected = compare(is_certain)?;
        if is_certain {
            prop_assert_eq!(open(world), expected.open, "open questions");
            prop_assert_eq!(expected.end, None, "the run waits, but should have ended");
        }
        Ok(())
    };
    let end = run.finish(at_pause).await?;
    let expected = compare(true).map_err(|error| TestCaseError::fail(format!("at the end, {end:?}: {error}")))?;
    compare_end(end, expected.end)
}

fn compare_end(end: Drive, expected: Option<End>) -> Result<(), TestCaseError> {
    match (end, expected) {
        (Drive::Ended(Outcome::Completed(data)), Some(End::Completed(expected))) => {
            prop_assert_eq!(data.to_value().unwrap(), serde_json::json!(expected));
        }
        (Drive::Ended(Outcome::Failed(failure)), Some(End::Failed(expected))) => {
            prop_assert!(expected.contains(failure.code.as_str()), "{failure:?} instead of {expected:?}");
        }
        (end, expected) => prop_assert!(false, "{end:?} instead of {expected:?}"),
    }
    Ok(())
}

fn compare_steps(probe: &Probe, expected: &Expected, is_certain: bool) -> Result<(), TestCaseError> {
    let violations = probe.seen(|seen| std::mem::take(&mut seen.violations));
    prop_assert!(violations.is_empty(), "{}", violations.join("\n"));
    let happened: Vec<_> = probe.seen(|seen| seen.effects.values().map(|effect| effect.address.clone()).collect());
    let steps: BTreeSet<_> = happened.iter().cloned().collect();
    prop_assert_eq!(steps.len(), happened.len(), "a step has one idempotency key: {:?}", happened);
    if is_certain {
        prop_assert_eq!(&steps, &expected.steps, "steps");
    }
    Ok(())
}

fn open(world: &World) -> BTreeSet<String> {
    world.stored.lock().unwrap().open.iter().map(address).collect()
}

fn address(question: &OpenQuestion) -> String {
    if question.id() == "limit-reached" { limit_address(consumed(question)) } else { asked(question).to_owned() }
}

fn asked(question: &OpenQuestion) -> &str {
    question.question.question().unwrap()
}

/// The number in the question whether to go on.
fn consumed(question: &OpenQuestion) -> u64 {
    asked(question).split(' ').find_map(|word| word.parse().ok()).unwrap()
}

fn respond(probe: &Arc<Probe>) -> impl Fn(&OpenQuestion) -> ResumeResponse + use<> {
    let probe = probe.clone();
    move |question| {
        probe.seen(|seen| seen.answered.insert(address(question)));
        if question.id() != "limit-reached" {
            return text(&answer_to(asked(question)));
        }
        select(&[if may_go_on(consumed(question)) { "continue" } else { "stop" }])
    }
}
