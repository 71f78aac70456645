//! Many processes that answer one question at once, again and again.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::future::{try_join, try_join_all};
use kortyx_orchestrator::{Agent, Interrupt};
use kortyx_protocol::{ResumeResponse, RunId};
use kortyx_store::{InterruptQuery, RunStatus};
use tokio::time::{Instant, sleep};

use crate::{
    Ended, Error, Event, Evidence, Invariant, Kill, Kit, Outcome, Racers, World,
    error::{Doing as _, broken, holds},
};

const LOOK: Duration = Duration::from_millis(3);
/// How long a run may take to ask again or to end.
const LIMIT: Duration = Duration::from_mins(1);
/// What the others get.
const CONFLICT: &str = "INTERRUPT_ALREADY_RESOLVED";

/// Has several processes answer one question at the same moment, question after question. One answer of each is accepted, its repeats
/// get its receipt, all others are told of the conflict, and every effect happens once.
#[derive(Debug, Clone)]
#[must_use]
pub struct Race {
    processes: usize,
    answers: usize,
    questions: usize,
    at_once: usize,
}

/// What a race did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Raced {
    /// Questions that were raced for.
    pub questions: usize,
    /// Answers that were given.
    pub answers: usize,
    /// Runs that asked the questions.
    pub runs: usize,
}

/// A question, and what is given to it: which of the answers are equal changes from question to question.
struct Course {
    question: Interrupt,
    answers: Vec<ResumeResponse>,
}

impl Race {
    /// 100 answers from 4 processes, for as many questions as one after the other come up.
    pub fn for_questions(questions: usize) -> Self {
        Self { processes: 4, answers: 100, questions, at_once: 4 }
    }

    /// How many processes race: 4 by default.
    pub fn processes(self, processes: usize) -> Self {
        Self { processes: processes.max(1), ..self }
    }

    /// How many answers a question gets: 100 by default.
    pub fn answers(self, answers: usize) -> Self {
        Self { answers: answers.max(1), ..self }
    }

    /// How many runs ask at once: 4 by default.
    pub fn at_once(self, runs: usize) -> Self {
        Self { at_once: runs.max(1), ..self }
    }

    /// Does it.
    pub async fn run(&self, kit: &Kit) -> Result<Raced, Error> {
        let world = kit.world()?;
        let (agent, mut racers) = try_join(world.starter(), Racers::start(&world, self.processes, Kill::Never)).await?;
        let mut raced = Raced::default();
        let mut runs = Vec::new();
        while raced.questions < self.questions || !runs.is_empty() {
            if raced.questions < self.questions {
                self.begin(&world, &agent, &mut runs, &mut raced).await?;
            }
            let asked = try_join_all(runs.iter().map(|run_id| open_question(&agent, run_id))).await?;
            runs = asked.iter().flatten().map(|question| question.run_id.clone()).collect();
            let courses: Vec<_> =
                asked.into_iter().flatten().map(|question| self.course(&world, question, &raced)).collect();
            raced.questions += courses.len();
            raced.answers += courses.len() * self.answers;
            self.race_for(&mut racers, &courses).await?;
        }
        let ended = racers.end().await?;
        holds(ended.iter().all(|ended| *ended == Ended::Well), Invariant::DeathsHappen, || "a racer died".to_owned())?;
        check(&world, &raced).await?;
        Ok(raced)
    }

    /// Begins runs until enough are under way.
    async fn begin(&self, world: &World, agent: &Agent, runs: &mut Vec<RunId>, raced: &mut Raced) -> Result<(), Error> {
        while runs.len() < self.at_once {
            let begun = world.subject().begin(agent, u64::try_from(raced.runs).unwrap_or(u64::MAX)).await;
            runs.push(begun.doing("beginning a run")?.run_id().clone());
            raced.runs += 1;
        }
        Ok(())
    }

    /// All different, all equal, or ten of each, in turn.
    fn course(&self, world: &World, question: Interrupt, raced: &Raced) -> Course {
        let kind = (raced.questions / self.at_once) % 3;
        let text = |nth: usize| match kind {
            0 => format!("{nth}"),
            1 => format!("{}", nth % 10),
            _ => "yes".to_owned(),
        };
        let answers = (0..self.answers).map(|nth| world.subject().answer(&question.input, &text(nth))).collect();
        Course { question, answers }
    }

    async fn race_for(&self, racers: &mut Racers, courses: &[Course]) -> Result<(), Error> {
        let mut given = vec![Vec::new(); self.processes];
        for course in courses {
            for (nth, answer) in course.answers.iter().enumerate() {
                if let Some(of_process) = given.get_mut(nth % self.processes) {
                    of_process.push((course.question.handle().clone(), answer.clone()));
                }
            }
        }
        let asked: Vec<Vec<_>> =
            given.iter().map(|of| of.iter().map(|(handle, _)| handle.request_id.clone()).collect()).collect();
        let heard = racers.give(given).await?;
        let mut outcomes: BTreeMap<_, Vec<Outcome>> = BTreeMap::new();
        for (asked, heard) in asked.into_iter().zip(heard) {
            for (request_id, outcome) in asked.into_iter().zip(heard.unwrap_or_default()) {
                outcomes.entry(request_id).or_default().push(outcome);
            }
        }
        courses.iter().try_for_each(|course| course.judge(outcomes.get(&course.question.id).map_or(&[], Vec::as_slice)))
    }
}

impl Course {
    /// One answer was accepted first, its equals got its receipt, every other one is a conflict.
    fn judge(&self, outcomes: &[Outcome]) -> Result<(), Error> {
        let wrong = |what: String| broken(Invariant::OneAnswerWins, format!("{}: {what}", self.question.id));
        let (mut firsts, mut receipts, mut refusals) = (Vec::new(), Vec::new(), 0);
        for outcome in outcomes {
            match outcome {
                Outcome::Accepted { answer, is_repeat, seq, at } => {
                    receipts.push((answer, seq, at));
                    firsts.extend((!is_repeat).then_some(answer));
                }
                Outcome::Refused { code, .. } if code == CONFLICT => refusals += 1,
                Outcome::Refused { code, .. } => return wrong(format!("an answer was refused as {code}")),
            }
        }
        let [winner] = firsts.as_slice() else {
            return wrong(format!("{} of {} answers were accepted first", firsts.len(), outcomes.len()));
        };
        if receipts.windows(2).any(|two| two.first() != two.last()) {
            return wrong(format!("receipts differ: {receipts:?}"));
        }
        let equals = self.answers.iter().filter(|answer| answer == winner).count();
        if (receipts.len(), refusals) != (equals, self.answers.len() - equals) {
            let (got, all) = (receipts.len(), self.answers.len());
            return wrong(format!("{equals} of {all} answers were right, {got} got a receipt, {refusals} a conflict"));
        }
        Ok(())
    }
}

/// The question that a run waits with, once it does; `None` once it has ended.
async fn open_question(agent: &Agent, run_id: &RunId) -> Result<Option<Interrupt>, Error> {
    let until = Instant::now() + LIMIT;
    loop {
        let run = agent.store().run(run_id).await.doing("reading a run")?;
        match run.map(|run| run.status) {
            Some(status) if status.is_terminal() => return Ok(None),
            Some(RunStatus::Suspended) => break,
            status => holds(Instant::now() < until, Invariant::RunsEnd, || format!("{run_id} stays {status:?}"))?,
        }
        sleep(LOOK).await;
    }
    let query = InterruptQuery { run_id: Some(run_id.clone()), limit: 1, ..InterruptQuery::default() };
    let open = agent.list_interrupts(query).await.doing("listing questions")?.interrupts;
    match open.into_iter().next() {
        Some(question) => Ok(Some(question)),
        None => broken(Invariant::RunsEnd, format!("{run_id} waits without a question")),
    }
}

/// Every run has ended well, and each effect was executed once: nobody died.
async fn check(world: &World, raced: &Raced) -> Result<(), Error> {
    for question in world.lines()? {
        if let Event::Failed { call, reason } = question.event {
            return broken(Invariant::ErrorsEnd, format!("{call}: {reason}"));
        }
    }
    let evidence = Evidence::of(world).await?;
    let runs = evidence.check_runs().await?;
    holds(runs == raced.runs, Invariant::RunsEnd, || format!("of {} runs storage knows {runs}", raced.runs))?;
    evidence.check_announced()?;
    evidence.check_steps()?;
    let mut keys = BTreeSet::new();
    for line in evidence.lines() {
        if let Event::Effect { key, name, .. } = &line.event {
            holds(keys.insert(key), Invariant::StepsHappenOnce, || format!("`{name}` was executed twice under {key}"))?;
        }
    }
    evidence.check_nothing_left().await
}
