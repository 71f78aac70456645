//! Jobs: transitions on their way to the writer and back.

use async_trait::async_trait;
use kortyx_store::StoreError;
use tokio::sync::oneshot;

use crate::{
    alone::Alone,
    batch::{Batch, Wants},
    error::Failure,
    transition::Transition,
    work::Work,
};

/// A transition that waits for its commit.
pub(crate) enum Job {
    /// One that may share a commit.
    Shared(Box<dyn Shared>),
    /// One that takes a transaction of its own.
    Alone(Box<dyn Solo>),
}

/// What the writer does with a [`Transition`].
pub(crate) trait Shared: Send {
    /// Whether its caller is gone, so that it need not happen.
    fn is_abandoned(&self) -> bool;
    fn wants(&self, wants: &mut Wants);
    /// Decides; the outcome is kept until it is settled.
    fn apply(&mut self, batch: &mut Batch);
    /// Whether it must decide again, alone.
    fn is_undecided(&self) -> bool;
    /// Tells the outcome.
    fn settle(self: Box<Self>);
    fn fail(self: Box<Self>, failure: &Failure);
}

/// What the writer does with a transition that is [`Alone`].
#[async_trait]
pub(crate) trait Solo: Send {
    fn is_abandoned(&self) -> bool;
    /// Whether it may find no tables.
    fn is_bare(&self) -> bool;
    /// Decides; whether there is something to commit.
    async fn run(&mut self, work: &mut Work<'_>) -> bool;
    fn settle(self: Box<Self>);
    fn fail(self: Box<Self>, failure: &Failure);
}

/// Where an outcome goes.
pub(crate) type Reply<T> = oneshot::Receiver<Result<T, StoreError>>;

struct Ticket<R, T> {
    request: R,
    reply: oneshot::Sender<Result<T, StoreError>>,
    outcome: Option<Result<T, StoreError>>,
}

impl<R, T> Ticket<R, T> {
    fn new(request: R) -> (Box<Self>, Reply<T>) {
        let (reply, outcome) = oneshot::channel();
        (Box::new(Self { request, reply, outcome: None }), outcome)
    }

    fn tell(self) {
        if let Some(outcome) = self.outcome {
            // The caller is gone: it learns by reading what became of it.
            let _ = self.reply.send(outcome);
        }
    }
}

/// A job that may share a commit.
pub(crate) fn shared<T: Transition>(request: T) -> (Job, Reply<T::Outcome>) {
    let (ticket, reply) = Ticket::new(request);
    (Job::Shared(ticket), reply)
}

/// A job with a transaction of its own.
pub(crate) fn alone<T: Alone>(request: T) -> (Job, Reply<T::Outcome>) {
    let (ticket, reply) = Ticket::new(request);
    (Job::Alone(ticket), reply)
}

impl<T: Transition> Shared for Ticket<T, T::Outcome> {
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn wants(&self, wants: &mut Wants) {
        self.request.wants(wants);
    }

    fn apply(&mut self, batch: &mut Batch) {
        batch.operation = T::NAME;
        batch.is_undecided = false;
        let outcome = self.request.apply(batch);
        self.outcome = if batch.is_undecided { None } else { Some(outcome) };
    }

    fn is_undecided(&self) -> bool {
        self.outcome.is_none()
    }

    fn settle(self: Box<Self>) {
        self.tell();
    }

    fn fail(mut self: Box<Self>, failure: &Failure) {
        self.outcome = Some(Err(failure.told(T::NAME)));
        self.tell();
    }
}

#[async_trait]
impl<T: Alone> Solo for Ticket<T, T::Outcome> {
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn is_bare(&self) -> bool {
        T::IS_BARE
    }

    async fn run(&mut self, work: &mut Work<'_>) -> bool {
        work.batch.operation = T::NAME;
        let outcome = self.request.run(work).await;
        let is_done = outcome.is_ok();
        self.outcome = Some(outcome);
        is_done
    }

    fn settle(self: Box<Self>) {
        self.tell();
    }

    fn fail(mut self: Box<Self>, failure: &Failure) {
        self.outcome = Some(Err(failure.told(T::NAME)));
        self.tell();
    }
}
