//! What every task has: the agent over the switched store, the log, and how questions are answered.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use kortyx_orchestrator::{
    Agent, Answer, Fact, Interrupt, OrchestratorError, RefusalReason::AlreadyResolved, TelemetrySink, WorkerConfig,
};
use kortyx_protocol::{ExecutionResult, RunId};
use kortyx_store::Store;

use crate::{
    BoxError, Event, Log, Subject,
    message::{Orders, Task},
    switched::Switched,
};

/// Long enough that no clock of a harness reaches it.
const QUESTION_TTL: Duration = Duration::from_hours(24);
/// How often workers look, so that nobody waits for them.
const POLL: Duration = Duration::from_millis(20);
/// How often they look in a storm, where many share a machine.
const SLOW_POLL: Duration = Duration::from_millis(200);

/// This process.
pub(crate) struct State {
    pub(crate) agent: Agent,
    pub(crate) subject: Arc<dyn Subject>,
    pub(crate) log: Log,
    store: Arc<Switched>,
    answers: AtomicU64,
}

impl State {
    pub(super) async fn start(subject: Arc<dyn Subject>, orders: &Orders) -> Result<Self, BoxError> {
        let log = Log::at(&orders.log);
        let store = subject.open(&orders.place, orders.ahead).await?;
        let store = Arc::new(Switched::new(store, log.clone(), orders.kill));
        let mut config = WorkerConfig::default();
        config.poll = if matches!(orders.task, Task::Storm { .. }) { SLOW_POLL } else { POLL };
        let builder = Agent::builder()
            .shared_store(store.clone())
            .question_ttl(QUESTION_TTL)
            .lease_ttl(orders.lease)
            .telemetry(Listener(log.clone()))
            .worker(config);
        let builder = subject.agent(builder, &log)?;
        let recovers = !matches!(orders.task, Task::Race | Task::Finish { recovers: false, .. });
        let agent = if recovers { builder.build().await? } else { builder.without_worker().build().await? };
        Ok(Self { agent, subject, log, store, answers: AtomicU64::new(0) })
    }

    /// Begins a run, and tells the log what its caller learns.
    pub(super) async fn begin(&self, number: u64) -> Result<ExecutionResult, BoxError> {
        let result = self.subject.begin(&self.agent, number).await?;
        for question in result.interrupts() {
            let token = Some(question.resume.token.clone());
            self.log.append(Event::Announced { request_id: question.request_id.clone(), token })?;
        }
        Ok(result)
    }

    /// Answers questions of one run, each with a text of its own, and tells the log once that is accepted. That another process
    /// was faster is no failure.
    pub(super) async fn answer(&self, questions: &[Interrupt]) -> Result<(), BoxError> {
        self.announce(questions)?;
        let respond = |question: &Interrupt| {
            let id = question.input.id.as_deref().unwrap_or_default();
            let nth = self.answers.fetch_add(1, Ordering::Relaxed);
            self.subject.answer(&question.input, &format!("{id}/{}/{nth}", std::process::id()))
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
            self.log.append(Event::Accepted { request_id: receipt.request_id, seq: receipt.seq, answer })?;
        }
        Ok(())
    }

    fn announce(&self, questions: &[Interrupt]) -> io::Result<()> {
        questions.iter().try_for_each(|question| {
            let token = Some(question.handle().token.clone());
            self.log.append(Event::Announced { request_id: question.id.clone(), token })
        })
    }

    /// Whether storage knows a run.
    pub(super) async fn is_stored(&self, run_id: &RunId) -> Result<bool, BoxError> {
        Ok(self.store.run(run_id).await?.is_some())
    }

    /// Whether the log has all that this process made durable.
    pub(super) fn has_told_all(&self) -> bool {
        self.store.has_told_all()
    }

    /// Whether the process stood still and was told to go on. It begins nothing from then on.
    pub(super) fn has_stood_still(&self) -> bool {
        self.store.has_stood_still()
    }

    /// Tells the log that the process ends by itself.
    pub(super) fn end(&self) -> Result<(), BoxError> {
        Ok(self.log.append(Event::Ended { points: self.store.points() })?)
    }
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
