//! What must hold once rich runs have ended, however often processes died meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use kortyx::{
    Agent,
    contracts::Question,
    protocol::{RequestId, ResumeResponse, RunId, json},
    store::{InterruptRecord, InterruptStatus, RunStatus, StoreExt as _},
};
use kortyx_tests::driven::{EFFECTS, Event, Line, QUESTIONS};
use serde_json::Value;

use crate::world::{World, scope};

/// What the processes of a world left behind.
pub(crate) struct Evidence {
    agent: Agent,
    pub(crate) lines: Vec<Line>,
    /// Every question that the log names, as it is stored.
    questions: BTreeMap<RequestId, InterruptRecord>,
}

impl Evidence {
    /// Reads the log and the storage. Every question that somebody learned of must be in storage.
    pub(crate) async fn of(world: &World) -> Self {
        let (agent, lines) = (world.clerk().await, world.lines());
        let mut questions = BTreeMap::new();
        for line in &lines {
            if let Event::Published { request_id }
            | Event::Announced { request_id, .. }
            | Event::Accepted { request_id, .. } = &line.event
                && !questions.contains_key(request_id)
            {
                let found = agent.store().interrupt(request_id).await.unwrap();
                let found =
                    found.unwrap_or_else(|| panic!("storage does not know {request_id}, which somebody learned of"));
                questions.insert(request_id.clone(), found);
            }
        }
        Self { agent, lines, questions }
    }

    /// The runs that became durable.
    pub(crate) async fn runs(&self) -> Vec<RunId> {
        stored_runs(&self.agent, &self.lines).await.into_iter().map(|(_, run_id)| run_id).collect()
    }

    /// The run has ended well, each of its effects happened once, and every answer that was accepted was used.
    pub(crate) async fn verify_rich(&self, run_id: &RunId) {
        verify_effects(&self.lines, run_id, &EFFECTS);
        let run = self.agent.get_run(run_id, &scope()).await.unwrap().unwrap();
        assert_eq!(run.status, RunStatus::Completed, "{:?}", run.failure);
        assert!(self.agent.store().open_questions(run_id).await.unwrap().is_empty(), "a question was left open");

        let questions = self.answered(run_id);
        let mut ids: Vec<_> = questions.iter().map(|question| author_id(question)).collect();
        ids.sort_unstable();
        let mut wanted = QUESTIONS.to_vec();
        wanted.sort_unstable();
        assert_eq!(ids, wanted, "a question was asked twice, or not at all");
        let output = run.data.unwrap().to_value().unwrap();
        assert_eq!(answers_in(&output), answers_of(&questions), "the output does not hold what was answered: {output}");
    }

    /// Everybody was given the right secrets, and every answer that somebody learned was accepted is the question's answer.
    pub(crate) fn verify_announced(&self) {
        for line in &self.lines {
            match &line.event {
                Event::Announced { request_id, token: Some(token) } => {
                    assert!(token.matches(&self.questions[request_id].token), "a token is not the stored one");
                }
                Event::Accepted { request_id, seq, answer } => {
                    let known = &self.questions[request_id];
                    assert_eq!(known.receipt.as_ref().unwrap().seq, *seq);
                    assert_eq!(known.answer.as_ref().unwrap(), json::canonical(answer).unwrap().as_bytes());
                }
                _ => {}
            }
        }
    }

    /// The questions of a run, all answered, in the order of their answers.
    fn answered(&self, run_id: &RunId) -> Vec<&InterruptRecord> {
        let of_run = self.questions.values().filter(|question| question.run_id == *run_id);
        let mut questions: Vec<_> = of_run.collect();
        assert!(questions.iter().all(|question| question.status == InterruptStatus::Answered), "{questions:?}");
        questions.sort_by_key(|question| seq(question));
        let places: Vec<_> = questions.iter().map(|question| seq(question)).collect();
        assert_eq!(places, (1..).take(places.len()).collect::<Vec<_>>(), "the answers are not numbered without gaps");
        questions
    }
}

/// The runs that the log names and storage knows, with their numbers.
pub(crate) async fn stored_runs(agent: &Agent, lines: &[Line]) -> Vec<(i64, RunId)> {
    let mut runs = Vec::new();
    for line in lines {
        if let Event::Began { run_id, number } = &line.event
            && agent.store().run(run_id).await.unwrap().is_some()
        {
            runs.push((*number, run_id.clone()));
        }
    }
    runs
}

/// These effects of the run happened, each under one key.
pub(crate) fn verify_effects(lines: &[Line], run_id: &RunId, wanted: &[&str]) {
    let mut keys: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in lines {
        if let Event::Effect { run_id: of, name, key } = &line.event
            && of == run_id
        {
            keys.entry(name).or_default().insert(key);
        }
    }
    assert_eq!(keys.keys().copied().collect::<BTreeSet<_>>(), wanted.iter().copied().collect());
    assert!(keys.values().all(|keys| keys.len() == 1), "an effect happened under two keys: {keys:?}");
    let distinct: BTreeSet<_> = keys.values().flatten().collect();
    assert_eq!(distinct.len(), wanted.len(), "two effects share a key: {keys:?}");
}

/// An effect was executed again only where a kill fell between it and its record: nothing was stored between the effect and
/// the kill. For runs whose effects are never under way at once.
pub(crate) fn verify_repeats(lines: &[Line]) {
    verify_repeats_by(lines, |between| !between.iter().any(|line| matches!(line.event, Event::Stored { .. })));
}

/// As [`verify_repeats`], for runs with up to two effects under way at once: at most one other between effect and kill.
pub(crate) fn verify_parallel_repeats(lines: &[Line]) {
    verify_repeats_by(lines, |between| {
        between.iter().filter(|line| matches!(line.event, Event::Effect { .. })).count() <= 1
    });
}

fn verify_repeats_by(lines: &[Line], is_excuse: impl Fn(&[Line]) -> bool) {
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for (now, line) in lines.iter().enumerate() {
        let Event::Effect { key, name, .. } = &line.event else { continue };
        if let Some(before) = last.insert(key, now) {
            let between = &lines[before + 1..now];
            let kill = between.iter().position(|line| matches!(line.event, Event::Fired { .. }));
            assert!(kill.is_some_and(|kill| is_excuse(&between[..kill])), "`{name}` was repeated: {lines:#?}");
        }
    }
}

fn seq(question: &InterruptRecord) -> u64 {
    question.receipt.as_ref().unwrap().seq
}

fn author_id(question: &InterruptRecord) -> String {
    Question::from_slice(&question.question).unwrap().input().id.unwrap()
}

/// The answers to each question, by its author's id, in the order of acceptance.
fn answers_of(questions: &[&InterruptRecord]) -> BTreeMap<String, Vec<String>> {
    let mut answers: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for question in questions {
        let answer = json::from_slice(question.answer.as_ref().unwrap()).unwrap();
        let text = match answer {
            ResumeResponse::Text { text } => text,
            ResumeResponse::Value { value } => value["answer"].as_str().unwrap().to_owned(),
            other => panic!("an answer is {other:?}"),
        };
        answers.entry(author_id(question)).or_default().push(text);
    }
    answers
}

/// The answers that the run's output holds, by the same ids.
fn answers_in(output: &Value) -> BTreeMap<String, Vec<String>> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let texts = |field: &str| match &output[field] {
        Value::Array(values) => values.iter().map(text).collect(),
        value => vec![text(value)],
    };
    [("round", "rounds"), ("left", "left"), ("right", "right"), ("approve", "child")]
        .map(|(id, field)| (id.to_owned(), texts(field)))
        .into()
}
