//! Questions that a tool asks a person.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
};

use futures_util::task::AtomicWaker;
use kortyx_contracts::{AnswerError, Ask, AskError, Question};
use kortyx_protocol::{Failure, FailureCode, RawJson, ResumeResponse};
use serde::{Deserialize, Serialize};

use super::{ToolContext, ToolError};

/// A question as it is recorded with the call that asks it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ToolAsk {
    /// The tool's id for it.
    pub(crate) id: String,
    /// Which use of that id it is.
    #[serde(rename = "use")]
    pub(crate) occurrence: u32,
    question: RawJson,
}

impl ToolAsk {
    fn read(&self) -> Result<Question, AskError> {
        let read = Question::from_slice(self.question.get().as_bytes());
        read.map_err(|source| AskError::Json { part: "recorded question", source })
    }
}

/// The recorded question is the one that is asked, whatever the tool would say by now.
impl Ask for ToolAsk {
    type Answer = ResumeResponse;

    fn question(&self) -> Result<Question, AskError> {
        self.read()
    }

    fn decode(&self, response: &ResumeResponse) -> Result<ResumeResponse, AnswerError> {
        Ok(response.clone())
    }
}

/// A question with its answer.
#[derive(Debug, Clone)]
pub(crate) struct ToolAnswer {
    pub(crate) asked: ToolAsk,
    pub(crate) response: ResumeResponse,
}

/// What one call of a tool has been told, and what it asks.
#[derive(Clone, Default)]
pub(super) struct Desk(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    waker: AtomicWaker,
}

#[derive(Default)]
struct State {
    answers: Arc<[ToolAnswer]>,
    /// How often each id was used.
    uses: BTreeMap<String, u32>,
    /// What is asked and has no answer, in the order of asking.
    open: BTreeMap<u64, ToolAsk>,
    next: u64,
}

impl Desk {
    pub(super) fn new(answers: Arc<[ToolAnswer]>) -> Self {
        let state = Mutex::new(State { answers, ..State::default() });
        Self(Arc::new(Shared { state, waker: AtomicWaker::new() }))
    }

    /// How many answers it was given.
    pub(super) fn answered(&self) -> usize {
        self.lock().answers.len()
    }

    /// Wakes this when something is asked.
    pub(super) fn wake(&self, waker: &Waker) {
        self.0.waker.register(waker);
    }

    /// What is asked now.
    pub(super) fn take_open(&self) -> Vec<ToolAsk> {
        std::mem::take(&mut self.lock().open).into_values().collect()
    }

    fn next_use(&self, id: &str) -> u32 {
        let mut state = self.lock();
        let uses = state.uses.entry(id.to_owned()).or_default();
        *uses = uses.saturating_add(1);
        uses.saturating_sub(1)
    }

    fn answer(&self, id: &str, occurrence: u32, identity: &str) -> Option<ResumeResponse> {
        let state = self.lock();
        let fits = |answer: &&ToolAnswer| {
            answer.asked.id == id
                && answer.asked.occurrence == occurrence
                && answer.asked.read().is_ok_and(|question| question.identity() == identity)
        };
        state.answers.iter().find(fits).map(|answer| answer.response.clone())
    }

    fn open(&self, ask: ToolAsk) -> Open {
        let mut state = self.lock();
        let place = state.next;
        state.next = place.saturating_add(1);
        state.open.insert(place, ask);
        drop(state);
        self.0.waker.wake();
        Open { desk: self.clone(), place }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open question. It belongs to the future that waits for it.
struct Open {
    desk: Desk,
    place: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.desk.lock().open.remove(&self.place);
    }
}

impl ToolContext {
    /// Asks a person and returns the answer, typed by the question.
    ///
    /// Without an answer the call ends here: it is dropped as soon as it waits, the run pauses, and **the tool is called again**,
    /// with the same arguments and the same [`idempotency_key`](Self::idempotency_key), when everything that it asked is answered,
    /// perhaps in another process. What it did before the question it does again, so an effect belongs after the question, or must
    /// mind the key. Questions that are asked at the same time, by `join!`, are open together.
    ///
    /// An answer belongs to the id, the use of the id within the call, and the kind of the question. Another question is asked anew,
    /// up to [`ToolPolicy::max_questions`](super::ToolPolicy::max_questions) in all.
    ///
    /// # Errors
    /// The question is malformed, or the call is over. A pause is never an error.
    ///
    /// ```
    /// use kortyx_contracts::Choice;
    /// use kortyx_reason::{ToolContext, ToolError};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize, schemars::JsonSchema)]
    /// # struct Trip { to: String }
    ///
    /// async fn book(trip: Trip, ctx: ToolContext) -> Result<String, ToolError> {
    ///     let seat = Choice::new("Which seat?").option("aisle", "Aisle").option("window", "Window");
    ///     let seat = ctx.ask("seat", seat).await?;
    ///     Ok(format!("booked to {}, {seat}", trip.to))
    /// }
    /// # let _ = kortyx_reason::tool("book", "Books a trip.", book);
    /// ```
    pub fn ask<A: Ask>(&self, id: &str, ask: A) -> impl Future<Output = Result<A::Answer, ToolError>> + Send + use<A> {
        let (ctx, id, occurrence) = (self.clone(), id.to_owned(), self.desk.next_use(id));
        async move {
            let question = ask.question()?;
            if let Some(response) = ctx.desk.answer(&id, occurrence, &question.identity()) {
                return match ask.decode(&response) {
                    Ok(answer) => Ok(answer),
                    Err(why) => ctx.unreadable(&id, &why).await,
                };
            }
            let question = RawJson::of(&question)?;
            let open = ctx.desk.open(ToolAsk { id, occurrence, question });
            ctx.cancelled.cancelled().await;
            drop(open);
            Err(ToolError::new("the call is over"))
        }
    }

    /// An answer is never lost: code that does not read it goes no further.
    async fn unreadable<T>(&self, id: &str, why: &AnswerError) -> T {
        let text =
            format!("the answer to the question `{id}` of a tool cannot be read: {why}; deploy code that reads it");
        self.node.park(Failure::new(FailureCode::ReplayDiverged, text)).await
    }
}
