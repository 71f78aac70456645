//! What must hold once runs have ended, however often processes died meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use kortyx_orchestrator::Agent;
use kortyx_protocol::{RequestId, RunId, StreamChunk, json};
use kortyx_store::{InterruptRecord, InterruptStatus, RunStatus, StoreExt as _};

use crate::{
    EndedRun, Error, Event, Invariant, Line, World,
    error::{Doing as _, broken, holds},
};

/// How many things are read at once.
const AT_ONCE: usize = 8;
/// How many chunks are read at once.
const CHUNKS: u32 = 500;

/// What the processes of a world left behind: the log, and every question that it names as storage knows it.
pub struct Evidence<'a> {
    pub(crate) world: &'a World,
    pub(crate) agent: Agent,
    pub(crate) lines: Vec<Line>,
    pub(crate) questions: BTreeMap<RequestId, InterruptRecord>,
    effects: BTreeMap<RunId, Effects>,
}

/// The keys of a run's effects, by name.
type Effects = BTreeMap<String, BTreeSet<String>>;

impl<'a> Evidence<'a> {
    /// Reads the log and the storage. Every question that somebody learned of must be in storage.
    pub async fn of(world: &'a World) -> Result<Self, Error> {
        let (agent, lines) = (world.clerk().await?, world.lines()?);
        let mut named = BTreeSet::new();
        let mut effects: BTreeMap<RunId, Effects> = BTreeMap::new();
        for line in &lines {
            match &line.event {
                Event::Published { request_id }
                | Event::Announced { request_id, .. }
                | Event::Accepted { request_id, .. } => drop(named.insert(request_id.clone())),
                Event::Effect { run_id, name, key } => {
                    let of_run = effects.entry(run_id.clone()).or_default();
                    of_run.entry(name.clone()).or_default().insert(key.clone());
                }
                _ => {}
            }
        }
        let questions = stored_questions(&agent, named).await?;
        Ok(Self { world, agent, lines, questions, effects })
    }

    /// What happened.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The runs that became durable, in the order of their beginnings.
    pub async fn runs(&self) -> Result<Vec<RunId>, Error> {
        let begun: Vec<RunId> = begun(&self.lines).cloned().collect();
        let read = |run_id: RunId| async move {
            let is_stored = self.agent.store().run(&run_id).await.doing("reading a run")?.is_some();
            Ok::<_, Error>(is_stored.then_some(run_id))
        };
        stream::iter(begun)
            .map(read)
            .buffered(AT_ONCE)
            .try_filter_map(|run_id| async { Ok(run_id) })
            .try_collect()
            .await
    }

    /// Every run has [ended well](Self::check_run). How many there are.
    pub async fn check_runs(&self) -> Result<usize, Error> {
        let runs = self.runs().await?;
        stream::iter(&runs).map(Ok).try_for_each_concurrent(AT_ONCE, |run_id| self.check_run(run_id)).await?;
        Ok(runs.len())
    }

    /// The run has ended well, no question of it is open, its answers are numbered without gaps, each of its effects happened
    /// under one key, and its subject finds nothing wrong with it.
    pub async fn check_run(&self, run_id: &RunId) -> Result<(), Error> {
        let effects = self.check_effects(run_id)?;
        let store = self.agent.store();
        let record = store.run(run_id).await.doing("reading a run")?;
        let view = self.agent.get_run(run_id, &self.world.subject().scope()).await.doing("reading a run")?;
        let (Some(record), Some(view)) = (record, view) else {
            return broken(Invariant::RunsEnd, format!("{run_id} is gone, or outside the subject's scope"));
        };
        holds(record.status == RunStatus::Completed, Invariant::RunsEnd, || {
            format!("{run_id} is {:?}: {:?} {:?}", record.status, record.reason, view.failure)
        })?;
        let open = store.open_questions(run_id).await.doing("reading questions")?;
        holds(open.is_empty(), Invariant::AnswersAreUsed, || format!("{run_id} ended with a question open: {open:?}"))?;
        let questions = self.answered(run_id, record.answers)?;
        let data = match view.data {
            Some(data) => data.to_value().doing("reading an output")?,
            None => serde_json::Value::Null,
        };
        let (notes, said) = (self.notes(run_id), self.said(run_id).await?);
        let run = EndedRun { record, data, questions, effects, notes, said };
        let verdict = self.world.subject().verify(&run);
        verdict.or_else(|wrong| broken(Invariant::Subject, format!("{run_id}: {wrong}: {run:?}")))
    }

    /// Everybody was given the right secrets, and every answer that somebody learned was accepted is the question's answer.
    pub fn check_announced(&self) -> Result<(), Error> {
        for line in &self.lines {
            match &line.event {
                Event::Announced { request_id, token: Some(token) } => {
                    let is_right = self.questions.get(request_id).is_some_and(|known| token.matches(&known.token));
                    holds(is_right, Invariant::TokensAreKnown, || format!("{request_id} has another token"))?;
                }
                Event::Accepted { request_id, seq, answer } => {
                    let Some(known) = self.questions.get(request_id) else { continue };
                    let answer = json::canonical(answer).doing("writing an answer")?;
                    let place = known.receipt.as_ref().map(|receipt| receipt.seq);
                    let is_right = known.answer.as_ref().is_some_and(|stored| *stored == answer.as_bytes());
                    holds(is_right && place == Some(*seq), Invariant::AnswersAreUsed, || {
                        format!("{request_id} was answered with {answer} as number {seq}, and storage has {known:?}")
                    })?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The record of no effect was written twice.
    pub fn check_steps(&self) -> Result<(), Error> {
        let mut recorded = BTreeSet::new();
        for line in &self.lines {
            if let Event::Recorded { key } = &line.event {
                holds(recorded.insert(key), Invariant::StepsHappenOnce, || format!("{key} was recorded twice"))?;
            }
        }
        let happened: BTreeSet<_> = self.effects.values().flat_map(BTreeMap::values).flatten().collect();
        holds(happened.is_empty() || !recorded.is_empty(), Invariant::StepsHappenOnce, || {
            "effects happened and the record of none was seen".to_owned()
        })
    }

    /// These effects of the run happened, each under a key of its own.
    pub fn check_effects(&self, run_id: &RunId) -> Result<BTreeSet<String>, Error> {
        let none = Effects::default();
        let effects = self.effects.get(run_id).unwrap_or(&none);
        let distinct: BTreeSet<_> = effects.values().flatten().collect();
        let is_once = effects.values().all(|keys| keys.len() == 1) && distinct.len() == effects.len();
        holds(is_once, Invariant::StepsHappenOnce, || {
            format!("keys and effects of {run_id} do not match: {effects:?}")
        })?;
        Ok(effects.keys().cloned().collect())
    }

    /// An effect was executed again only where a [kill switch](crate::Kill) fell between it and its record, while at most so many
    /// others were under way in its run: 0 when the run's effects come one after the other.
    pub fn check_repeats(&self, others: usize) -> Result<(), Error> {
        let is_recorded = |line: &Line, of: &str| matches!(&line.event, Event::Recorded { key } if key == of);
        let is_excuse = |between: &[Line]| match others {
            0 => !between.iter().any(|line| matches!(line.event, Event::Stored { .. })),
            _ => between.iter().filter(|line| matches!(line.event, Event::Effect { .. })).count() <= others,
        };
        let mut last: BTreeMap<&str, usize> = BTreeMap::new();
        for (now, line) in self.lines.iter().enumerate() {
            let Event::Effect { key, name, .. } = &line.event else { continue };
            if let Some(before) = last.insert(key, now) {
                let between = self.lines.get(before + 1..now).unwrap_or_default();
                let kill = between.iter().position(|line| matches!(line.event, Event::Fired { .. }));
                let is_excused = kill.and_then(|kill| between.get(..kill)).is_some_and(is_excuse);
                let is_excused = is_excused && !between.iter().any(|line| is_recorded(line, key));
                holds(is_excused, Invariant::StepsHappenOnce, || format!("`{name}` was repeated: {:#?}", self.lines))?;
            }
        }
        Ok(())
    }

    /// What was noted of a run.
    fn notes(&self, run_id: &RunId) -> Vec<String> {
        let of_run = self.lines.iter().filter_map(|line| match &line.event {
            Event::Noted { run_id: of, text } if of == run_id => Some(text.clone()),
            _ => None,
        });
        of_run.collect()
    }

    /// What a run said.
    async fn said(&self, run_id: &RunId) -> Result<Vec<StreamChunk>, Error> {
        let mut said = Vec::new();
        let mut after = 0;
        loop {
            let page = self.agent.store().chunks(run_id, after, CHUNKS).await.doing("reading chunks")?;
            let chunks = page.map(|page| page.chunks).unwrap_or_default();
            let Some(last) = chunks.last() else { return Ok(said) };
            after = last.number;
            for record in &chunks {
                said.push(json::from_slice(&record.chunk).doing("reading a chunk")?);
            }
        }
    }

    /// The questions of a run that were answered, in the order of their answers.
    fn answered(&self, run_id: &RunId, answers: u64) -> Result<Vec<InterruptRecord>, Error> {
        let of_run = self.questions.values().filter(|question| question.run_id == *run_id);
        let answered = of_run.filter(|question| question.status == InterruptStatus::Answered);
        let place = |question: &InterruptRecord| question.receipt.as_ref().map(|receipt| receipt.seq);
        let mut questions: Vec<_> = answered.cloned().collect();
        questions.sort_by_key(place);
        let places: Vec<_> = questions.iter().filter_map(place).collect();
        holds(places.iter().copied().eq(1..=answers), Invariant::AnswersAreUsed, || {
            format!("{run_id} was given {answers} answers, and its questions have those numbered {places:?}")
        })?;
        Ok(questions)
    }
}

/// The runs that the log names.
pub(crate) fn begun(lines: &[Line]) -> impl Iterator<Item = &RunId> {
    lines.iter().filter_map(|line| match &line.event {
        Event::Began { run_id } => Some(run_id),
        _ => None,
    })
}

async fn stored_questions(
    agent: &Agent,
    named: BTreeSet<RequestId>,
) -> Result<BTreeMap<RequestId, InterruptRecord>, Error> {
    let read = |request_id: RequestId| async move {
        match agent.store().interrupt(&request_id).await.doing("reading a question")? {
            Some(found) => Ok((request_id, found)),
            None => broken(Invariant::TokensAreKnown, format!("somebody learned of {request_id}")),
        }
    };
    stream::iter(named).map(read).buffer_unordered(AT_ONCE).try_collect().await
}
