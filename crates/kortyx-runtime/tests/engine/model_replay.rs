//! Races are decided by the log: replay under any scheduling has the same winners.

use std::sync::{Arc, atomic::Ordering};

use proptest::test_runner::TestCaseError;

use crate::{
    model_drive::{Run, Tape, block_on, check},
    model_language::{Case, How, Id, Op, Program, Work, cases},
    model_node::workflows,
    model_probe::{Probe, respond},
    model_programs::agrees,
    support::completed,
};

/// How often each run is replayed.
const REPLAYS: u64 = 200;

const ASK: Op = Op::Ask(Id::Own);
const STEP: Op = Op::Step(Id::Own, Work::Plain);

#[test]
fn random_races_replay_with_the_same_winners() {
    check(14, &cases(1..=2, 2), |case| block_on(replays_alike(case.steady())));
}

#[test]
fn random_programs_that_dawdle_do_what_the_reference_does() {
    check(100, &cases(1..=2, 2), |case| block_on(agrees(case.steady())));
}

#[test]
fn b055_an_answer_and_a_timer_replay_with_the_same_winner() {
    let all = Op::Join(How::Woken, vec![vec![ASK], vec![ASK], vec![ASK]]);
    for answer in [ASK, all] {
        each_way(|how| vec![Op::Select(how, vec![vec![answer.clone()], vec![ASK, STEP]]), ASK]);
    }
}

#[test]
fn b056_two_answers_back_to_back_replay_in_their_order() {
    let step = Op::Step(Id::Shared(0), Work::Plain);
    each_way(|how| vec![Op::Join(how, vec![vec![ASK, step.clone()], vec![ASK, step.clone(), step.clone()]]), ASK]);
}

#[test]
fn b057_an_answer_in_a_later_round_wakes_that_round() {
    each_way(|how| vec![Op::Loop(3, vec![Op::Select(how, vec![vec![ASK], vec![ASK, STEP]])]), ASK]);
}

/// Replays a program that was run in many ways.
fn each_way(program: impl Fn(How) -> Program) {
    for seed in 0..6 {
        let how = if seed % 2 == 0 { How::Ordered } else { How::Woken };
        let tape = (0..seed * 3).map(|at| u8::try_from(at * 37 % 251).unwrap()).collect();
        let case = Case { programs: vec![program(how)], roots: 1, tape, seed, dawdles: true };
        block_on(replays_alike(case)).unwrap();
    }
}

/// Runs a case to its end, then again and again from its last durable point.
async fn replays_alike(case: Case) -> Result<(), TestCaseError> {
    let case = Arc::new(case);
    let probe = Arc::new(Probe::new(case.seed));
    let mut run = Run::new(&workflows(&case, &probe), probe.clone(), Tape::new(case.tape.clone()), respond(&probe));
    let output = completed(run.finish(|_| Ok(())).await?);
    let stored = run.world.stored.lock().unwrap().clone();
    if stored.snapshot.is_none() {
        return Ok(());
    }
    for replay in 1..=REPLAYS {
        *run.world.stored.lock().unwrap() = stored.clone();
        run.world.writes_left.store(u64::MAX, Ordering::SeqCst);
        probe.reseed(replay);
        probe.seen(|seen| seen.crashes += 1);
        let again = completed(run.world.resume().await);
        let violations = probe.seen(|seen| seen.violations.join("\n"));
        if again != output || !violations.is_empty() {
            return Err(TestCaseError::fail(format!("replay {replay}: {violations}\n{output}\n{again}")));
        }
    }
    Ok(())
}
