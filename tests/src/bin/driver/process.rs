//! What every task has: the agent over the switched store, the log, and how questions are answered.

use std::{
    error::Error,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use kortyx::{
    Agent, Answer, Fact, Interrupt, OrchestratorError,
    RefusalReason::AlreadyResolved,
    TelemetrySink, WorkerConfig,
    protocol::{RunId, SessionId},
    store::{Scope, Store},
};
use kortyx_tests::{
    driven::{Event, Flows, Log, SESSION, answer_to},
    place::{Place, Time},
};

use crate::{Arguments, kill::Kill, switched::Switched};

/// Long enough that no clock of a test reaches it.
const QUESTION_TTL: Duration = Duration::from_hours(24);

/// This process.
pub(crate) struct Process {
    pub(crate) agent: Agent,
    pub(crate) flows: Flows,
    pub(crate) log: Log,
    store: Arc<Switched>,
    answers: AtomicU64,
}

impl Process {
    pub(crate) async fn start(arguments: &Arguments, worker: bool) -> Result<Self, Box<dyn Error>> {
        let log = Log::at(&arguments.log);
        let place: Place = serde_json::from_str(&arguments.place)?;
        let store = place.open(&Time::ahead(Duration::from_secs(arguments.ahead))).await?;
        let store = Arc::new(Switched::new(store, log.clone(), Kill::from_env()?));
        let flows = Flows::new(&log)?;
        let mut config = WorkerConfig::default();
        config.poll = Duration::from_millis(20);
        let builder = Agent::builder()
            .workflow(&flows.rich)
            .workflow(&flows.child)
            .workflow(&flows.asking)
            .workflow(&flows.crowd)
            .shared_store(store.clone())
            .question_ttl(QUESTION_TTL)
            .lease_ttl(Duration::from_millis(arguments.lease))
            .telemetry(Listener(log.clone()))
            .worker(config);
        let agent = if worker { builder.build().await? } else { builder.without_worker().build().await? };
        Ok(Self { agent, flows, log, store, answers: AtomicU64::new(0) })
    }

    /// Every run's scope.
    pub(crate) fn scope() -> Result<Scope, Box<dyn Error>> {
        Ok(Scope::session(session()?))
    }

    /// Tells the log that somebody outside knows these questions now.
    pub(crate) fn announce<'a>(&self, questions: impl IntoIterator<Item = &'a Interrupt>) -> io::Result<()> {
        questions.into_iter().try_for_each(|question| {
            let token = Some(question.handle().token.clone());
            self.log.append(Event::Announced { request_id: question.id.clone(), token })
        })
    }

    /// Answers questions of one run, each with a text of its own, and tells the log once that is accepted. That another
    /// process was faster is no failure.
    pub(crate) async fn answer(&self, questions: &[Interrupt]) -> Result<(), OrchestratorError> {
        let respond = |question: &Interrupt| {
            let id = question.input.id.as_deref().unwrap_or_default();
            let nth = self.answers.fetch_add(1, Ordering::Relaxed);
            answer_to(&question.input, &format!("{id}/{}/{nth}", std::process::id()))
        };
        let responses: Vec<_> = questions.iter().map(respond).collect();
        let answer =
            |(question, response): (&Interrupt, &_)| Answer::with_handle(question.handle(), Clone::clone(response));
        let acceptance = match self.agent.submit(questions.iter().zip(&responses).map(answer).collect()).await {
            Err(OrchestratorError::Refused(refused)) if refused.iter().all(|it| it.reason == AlreadyResolved) => {
                return Ok(());
            }
            acceptance => acceptance?,
        };
        for (receipt, answer) in acceptance.receipts.into_iter().zip(responses) {
            let told = self.log.append(Event::Accepted { request_id: receipt.request_id, seq: receipt.seq, answer });
            told.map_err(|error| OrchestratorError::InvalidRequest(format!("the log cannot be written: {error}")))?;
        }
        Ok(())
    }

    /// Whether storage knows a run.
    pub(crate) async fn is_stored(&self, run_id: &RunId) -> Result<bool, Box<dyn Error>> {
        Ok(self.store.run(run_id).await?.is_some())
    }

    /// Whether the process stood still and was told to go on. It begins nothing from then on.
    pub(crate) fn has_stood_still(&self) -> bool {
        self.store.has_stood_still()
    }

    /// Tells the log that the process ends by itself.
    pub(crate) fn end(&self) -> Result<(), Box<dyn Error>> {
        Ok(self.log.append(Event::Ended { points: self.store.points() })?)
    }
}

/// The session of every run.
pub(crate) fn session() -> Result<SessionId, Box<dyn Error>> {
    Ok(SessionId::new(SESSION)?)
}

/// Waits until nobody holds the other end of the input.
pub(crate) async fn input_ended() {
    let read = tokio::task::spawn_blocking(|| io::copy(&mut io::stdin().lock(), &mut io::sink()));
    drop(read.await);
}

/// Tells the log what is announced as durable.
struct Listener(Log);

impl TelemetrySink for Listener {
    fn record(&self, fact: &Fact) {
        if let Fact::InterruptCreated { request_id, .. } = fact
            && let Err(error) = self.0.append(Event::Announced { request_id: request_id.clone(), token: None })
        {
            eprintln!("the log cannot be written: {error}");
        }
    }
}
