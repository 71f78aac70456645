//! Questions to people.

use std::{future::Future, sync::Arc};

use futures_util::future::{try_join, try_join_all, try_join3, try_join4, try_join5};
use kortyx_contracts::Ask;
use kortyx_protocol::{Failure, FailureCode};

use crate::{
    NodeContext, NodeError,
    io::IoFuture,
    pass::{Call, Known, PassRef},
    state::{CallKey, EntryValue, Kind, OpenAsk},
};

impl NodeContext {
    /// Asks a person and returns the answer, typed by the question.
    ///
    /// Without an answer the future stays pending: when the node can only wait, the engine stores the run, publishes the
    /// question and drops the node. When the answer comes, the node runs again from its start; calls that it made before
    /// return what they returned then, and this one returns the answer.
    ///
    /// Using an id again asks the next question of that name, with an answer of its own. Dropping the future withdraws
    /// the question. A `timeout` around it does not fire; use `expires_in` on the question.
    ///
    /// # Errors
    /// The question is malformed (the error says how), or it is asked within a step. A pause is never an error.
    ///
    /// ```
    /// use kortyx_contracts::Choice;
    /// use kortyx_runtime::{NodeContext, NodeOutput, NodeResult};
    ///
    /// async fn review(ctx: NodeContext) -> NodeResult {
    ///     let question = Choice::new("Approve this draft?").option("approve", "Approve").option("revise", "Revise");
    ///     let decision = ctx.interrupt("approval", question).await?;
    ///     Ok(NodeOutput::new().data("decision", &decision).condition(&decision))
    /// }
    /// ```
    pub fn interrupt<A: Ask>(
        &self,
        id: &str,
        ask: A,
    ) -> impl Future<Output = Result<A::Answer, NodeError>> + Send + use<A> {
        let key = self.0.with_pass(|pass| pass.next_key(id));
        let pass = self.0.clone();
        async move { asked(pass, key?, ask, None).await }
    }

    /// Asks several questions that make sense only together: the node runs again only when all are answered.
    ///
    /// Takes pairs of id and question, in an array, a `Vec` or a tuple of up to five; returns the answers alike.
    ///
    /// ```
    /// use kortyx_contracts::{Choice, Text};
    /// use kortyx_runtime::{NodeContext, NodeOutput, NodeResult};
    ///
    /// async fn book(ctx: NodeContext) -> NodeResult {
    ///     let seat = Choice::new("Which seat?").option("aisle", "Aisle").option("window", "Window");
    ///     let (seat, name) = ctx.interrupt_all((("seat", seat), ("name", Text::new("Whose name?")))).await?;
    ///     Ok(NodeOutput::new().data("seat", &seat).data("name", &name))
    /// }
    /// ```
    pub fn interrupt_all<G: AskGroup>(
        &self,
        asks: G,
    ) -> impl Future<Output = Result<G::Answers, NodeError>> + Send + use<G> {
        asks.ask(self)
    }
}

/// Questions that are asked together. Implemented for arrays, `Vec`s and tuples of `(id, question)`.
pub trait AskGroup {
    /// The answers, in the order of the questions.
    type Answers;

    /// Asks them all.
    fn ask(self, ctx: &NodeContext) -> IoFuture<'static, Result<Self::Answers, NodeError>>;
}

impl<S: AsRef<str>, A: Ask + 'static> AskGroup for Vec<(S, A)> {
    type Answers = Vec<A::Answer>;

    fn ask(self, ctx: &NodeContext) -> IoFuture<'static, Result<Self::Answers, NodeError>> {
        let mut keys = Keys { ctx, group: None };
        let asks: Vec<_> = self.into_iter().map(|(id, ask)| keys.ask(id.as_ref(), ask)).collect();
        Box::pin(try_join_all(asks))
    }
}

impl<S: AsRef<str>, A: Ask + 'static, const N: usize> AskGroup for [(S, A); N] {
    type Answers = Vec<A::Answer>;

    fn ask(self, ctx: &NodeContext) -> IoFuture<'static, Result<Self::Answers, NodeError>> {
        Vec::from(self).ask(ctx)
    }
}

/// Gives the members of a group their keys; the first member's names the group.
struct Keys<'a> {
    ctx: &'a NodeContext,
    group: Option<CallKey>,
}

impl Keys<'_> {
    fn ask<A: Ask + 'static>(&mut self, id: &str, ask: A) -> IoFuture<'static, Result<A::Answer, NodeError>> {
        let key = self.ctx.0.with_pass(|pass| pass.next_key(id));
        let pass = self.ctx.0.clone();
        let Ok(key) = key else { return Box::pin(async { Err(crate::pass::PassOver.into()) }) };
        let group = self.group.get_or_insert_with(|| key.clone()).clone();
        Box::pin(asked(pass, key, ask, Some(group)))
    }
}

macro_rules! tuple_group {
    ($join:ident: $($name:ident $at:tt),+) => {
        impl<S: AsRef<str>, $($name: Ask + 'static),+> AskGroup for ($((S, $name),)+) {
            type Answers = ($($name::Answer,)+);

            fn ask(self, ctx: &NodeContext) -> IoFuture<'static, Result<Self::Answers, NodeError>> {
                let mut keys = Keys { ctx, group: None };
                Box::pin($join($(keys.ask(self.$at.0.as_ref(), self.$at.1)),+))
            }
        }
    };
}

tuple_group!(try_join: A 0, B 1);
tuple_group!(try_join3: A 0, B 1, C 2);
tuple_group!(try_join4: A 0, B 1, C 2, D 3);
tuple_group!(try_join5: A 0, B 1, C 2, D 3, E 4);

async fn asked<A: Ask>(
    pass: Arc<PassRef>,
    key: CallKey,
    ask: A,
    group: Option<CallKey>,
) -> Result<A::Answer, NodeError> {
    let question = ask.question()?;
    let identity = question.identity();
    let (call, known) = Call::begin(&pass, key.clone(), Kind::Interrupt, &identity)?;
    match known {
        Known::No => call.ask(OpenAsk { key: key.clone(), identity: identity.into(), group, question })?,
        Known::InStep => return Err(NodeError::message(format!("`{}` is asked within a step: ask before it", key.id))),
        Known::Completed | Known::Abandoned => {}
    }
    let EntryValue::Answer(response) = call.revealed().await? else {
        return Err(NodeError::message(format!("the journal entry of the question `{}` is no answer", key.id)));
    };
    match ask.decode(&response) {
        Ok(answer) => Ok(answer),
        Err(error) => {
            // The answer was accepted under the recorded question; code that cannot read it must not go on without it.
            let failure = Failure::new(
                FailureCode::ContractMismatch,
                format!(
                    "the accepted answer to `{}` does not fit the question as the node `{}` asks it now: {error}; \
                     deploy code that accepts it, or cancel the run",
                    key.id, pass.node
                ),
            );
            pass.park(failure).await
        }
    }
}
