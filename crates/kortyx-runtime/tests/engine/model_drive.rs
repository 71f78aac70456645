//! Drives a run through pauses, answers and crashes as a tape says, whatever the run is.

use std::{
    collections::BTreeSet,
    future::Future,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use kortyx_protocol::ResumeResponse;
use kortyx_runtime::{DeliveredAnswer, ExecutionHandle, OpenQuestion, Workflow};
use proptest::{
    prelude::*,
    test_runner::{RngAlgorithm, TestCaseError, TestRng, TestRunner},
};
use serde_json::Value;

use crate::{
    model_probe::{Probe, Random},
    support::{Drive, World},
};

/// More polls than any run of the models needs.
const SPINNING: u64 = 200_000;
/// More time than any run of the models waits.
const HANGING: Duration = Duration::from_secs(100);

/// A run with its world, over all its processes.
pub(crate) struct Run {
    pub(crate) world: Arc<World>,
    probe: Arc<Probe>,
    root: Workflow,
    tape: Tape,
    handle: Arc<Mutex<Option<ExecutionHandle>>>,
    pauses: u32,
    respond: Respond,
}

/// How a question is answered.
type Respond = Arc<dyn Fn(&OpenQuestion) -> ResumeResponse + Send + Sync>;

/// Decisions; zeros when it has run out.
pub(crate) struct Tape(std::vec::IntoIter<u8>);

impl Tape {
    pub(crate) fn new(tape: Vec<u8>) -> Self {
        Self(tape.into_iter())
    }

    fn below(&mut self, bound: u8) -> u8 {
        self.0.next().unwrap_or_default() % bound
    }

    fn is_over(&self) -> bool {
        self.0.as_slice().is_empty()
    }
}

/// How a process ends before it is done.
#[derive(Clone, Copy)]
enum Crash {
    Never,
    /// Storage refuses the write after so many.
    AfterWrites(u8),
    /// It is killed at its so-manieth poll.
    AfterPolls(u8),
}

impl Run {
    pub(crate) fn new(
        workflows: &[Workflow],
        probe: Arc<Probe>,
        tape: Tape,
        respond: impl Fn(&OpenQuestion) -> ResumeResponse + Send + Sync + 'static,
    ) -> Self {
        let world = World::new(&workflows.iter().collect::<Vec<_>>());
        let handle: Arc<Mutex<Option<ExecutionHandle>>> = Arc::default();
        let respond: Respond = Arc::new(respond);
        let (weak, reach, answer) = (Arc::downgrade(&world), handle.clone(), respond.clone());
        probe.act_by(Box::new(move |random| {
            if let Some(world) = weak.upgrade() {
                act(&world, reach.lock().unwrap().as_ref(), random, &answer);
            }
        }));
        let meddling = probe.clone();
        *world.meddler.lock().unwrap() = Some(Box::new(move || meddling.meddle()));
        Self { world, probe, root: workflows[0].clone(), tape, handle, pauses: 0, respond }
    }

    /// Runs to the end; `check` is called at every pause.
    pub(crate) async fn finish(
        &mut self,
        mut check: impl FnMut(&World) -> Result<(), TestCaseError>,
    ) -> Result<Drive, TestCaseError> {
        loop {
            match self.drive().await? {
                Drive::Waiting => {
                    check(&self.world)?;
                    self.answer()?;
                }
                Drive::Crashed => self.probe.seen(|seen| seen.crashes += 1),
                end => return Ok(end),
            }
        }
    }

    /// One process: begins or restores the run and drives it to its next stop.
    async fn drive(&mut self) -> Result<Drive, TestCaseError> {
        let crash = match self.tape.below(4) {
            1 => Crash::AfterWrites(self.tape.below(5)),
            2 => Crash::AfterPolls(self.tape.below(40)),
            _ => Crash::Never,
        };
        let left = if let Crash::AfterWrites(writes) = crash { writes.into() } else { u64::MAX };
        self.world.writes_left.store(left, Ordering::SeqCst);
        let is_durable = self.world.stored.lock().unwrap().snapshot.is_some();
        let mut execution = if is_durable {
            self.world.restore().map_err(|error| TestCaseError::fail(format!("{error:?}")))?
        } else {
            self.world.start(&self.root, &Value::Null)
        };
        *self.handle.lock().unwrap() = Some(execution.handle());
        let polls = if let Crash::AfterPolls(polls) = crash { polls.into() } else { u64::MAX };
        let drive = kill_after(&AtomicU64::new(polls), self.world.drive(&mut execution)).await;
        *self.handle.lock().unwrap() = None;
        Ok(drive)
    }

    /// People answer none, one or several of the open questions. When the tape is over, one: the run must end.
    fn answer(&mut self) -> Result<(), TestCaseError> {
        let answers = if self.tape.is_over() { 1 } else { self.tape.below(4) };
        for _ in 0..answers {
            let open = self.world.stored.lock().unwrap().open.len();
            if open == 0 {
                break;
            }
            let at = usize::from(self.tape.below(u8::try_from(open).unwrap_or(u8::MAX)));
            accept(&self.world, at, &self.respond);
        }
        self.pauses += 1;
        if self.pauses > 1000 { Err(TestCaseError::fail("the run pauses for ever")) } else { Ok(()) }
    }
}

/// Polls a drive while there are polls left, then the process is dead. Fails when the drive spins or hangs.
pub(crate) async fn kill_after(polls_left: &AtomicU64, drive: impl Future<Output = Drive>) -> Drive {
    let (mut drive, mut polls) = (pin!(drive), 0);
    let counted = std::future::poll_fn(|cx| {
        polls += 1;
        assert!(polls < SPINNING, "the run spins");
        let left = polls_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_err() { Poll::Ready(Drive::Crashed) } else { drive.as_mut().poll(cx) }
    });
    tokio::time::timeout(HANGING, counted).await.expect("the run goes on within the time")
}

/// Storage accepts the answer to an open question.
fn accept(world: &World, at: usize, respond: &Respond) {
    let mut stored = world.stored.lock().unwrap();
    let question = stored.open.remove(at);
    let seq = stored.answers.len() as u64 + 1;
    stored.answers.push(DeliveredAnswer { seq, response: respond(&question), ask: question.ask });
}

/// Somebody may answer a question while the run is driven; the driver may learn of it at once or only from storage.
fn act(world: &World, handle: Option<&ExecutionHandle>, random: &mut Random, respond: &Respond) {
    let open = u8::try_from(world.stored.lock().unwrap().open.len()).unwrap_or(u8::MAX);
    if open > 0 && random.below(6) == 1 {
        accept(world, random.below(open).into(), respond);
    }
    if let Some(handle) = handle.filter(|_| random.below(4) == 1) {
        let answers = world.stored.lock().unwrap().answers.clone();
        handle.deliver(answers);
    }
}

/// The questions that are open in storage.
pub(crate) fn open_questions(world: &World) -> BTreeSet<String> {
    let stored = world.stored.lock().unwrap();
    stored.open.iter().map(|question| question.question.question().unwrap().to_owned()).collect()
}

/// Runs a property over deterministic cases. `MODEL_CASES` multiplies them, `MODEL_SEED` chooses others.
pub(crate) fn check<S: Strategy>(cases: u32, strategy: &S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let number = |name: &str, default: u32| std::env::var(name).map_or(default, |value| value.parse().unwrap());
    let cases = cases * number("MODEL_CASES", 1);
    let config =
        ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 4096, ..ProptestConfig::default() };
    let mut seed = [7; 32];
    seed[..4].copy_from_slice(&number("MODEL_SEED", 0).to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(config, random);
    if let Err(error) = runner.run(strategy, test) {
        panic!("{error}");
    }
}

/// Runs a future on a clock that goes on only when nothing else does.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(future)
}
