//! The node that runs a program of the language for real.

use std::sync::Arc;

use futures_util::{
    FutureExt as _, StreamExt as _,
    future::{BoxFuture, join_all, select_all},
    stream::FuturesUnordered,
};
use kortyx_contracts::Text;
use kortyx_runtime::{NodeContext, NodeError, NodeOutput, NodeResult, Workflow};
use serde_json::{Value, json};

use crate::{
    model_language::{Case, How, Id, Op, Place, Program, Scope, Work},
    model_probe::Probe,
};

type Ran<T> = Result<T, NodeError>;

/// The workflows of a case: the root first.
pub(crate) fn workflows(case: &Arc<Case>, probe: &Arc<Probe>) -> Vec<Workflow> {
    let mut children: Vec<Workflow> = Vec::new();
    for level in (case.roots..case.programs.len()).rev() {
        let builder = Workflow::builder(format!("level{level}")).node("work", node(case, probe, &children, level));
        children.insert(0, builder.build().unwrap());
    }
    let mut root = Workflow::builder("root").node("begin", |_| async { Ok(NodeOutput::new()) });
    for level in 0..case.roots {
        let name = format!("work{level}");
        root = root.node(name.clone(), node(case, probe, &children, level)).edge("begin", name);
    }
    children.insert(0, root.build().unwrap());
    children
}

/// A node that runs the program of a level. `children`: those that it may call, by ascending level.
fn node(
    case: &Arc<Case>,
    probe: &Arc<Probe>,
    children: &[Workflow],
    level: usize,
) -> impl Fn(NodeContext) -> BoxFuture<'static, NodeResult> + Send + Sync + use<> {
    let (case, probe, children) = (case.clone(), probe.clone(), Arc::from(children));
    move |ctx| {
        let env = Env { case: case.clone(), probe: probe.clone(), children: Arc::clone(&children), ctx };
        env.node(level).boxed()
    }
}

#[derive(Clone)]
struct Env {
    case: Arc<Case>,
    probe: Arc<Probe>,
    children: Arc<[Workflow]>,
    ctx: NodeContext,
}

impl Env {
    async fn node(self, level: usize) -> NodeResult {
        let by: Option<String> = self.ctx.input()?;
        let place = by.map_or_else(|| Place::root(level), |by| Place::called(level, &by));
        let case = self.case.clone();
        if case.dawdles {
            self.probe.meddle().pass().await;
        }
        let value = self.run(&case.programs[level], &place, String::new()).await?;
        for scope in [Scope::Node, Scope::Workflow] {
            let total = self.state(scope).get()?;
            self.probe.seen(|seen| seen.counts.insert((place.root.clone(), scope), total));
        }
        Ok(NodeOutput::new().data(format!("value{level}"), &value))
    }

    fn state(&self, scope: Scope) -> kortyx_runtime::StateHandle<u32> {
        match scope {
            Scope::Node => self.ctx.node_state("count", 0),
            Scope::Workflow => self.ctx.workflow_state("count", 0),
        }
    }

    /// Runs a program; `read` is what it read of clock and randomness before.
    fn run<'a>(&'a self, program: &'a Program, place: &Place, mut read: String) -> BoxFuture<'a, Ran<Value>> {
        let place = place.clone();
        async move {
            let mut values = Vec::new();
            for (index, op) in program.iter().enumerate() {
                values.push(self.op(op, &place.at(index), &mut read).await?);
                if self.case.dawdles {
                    self.probe.dawdle().pass().await;
                }
            }
            Ok(Value::Array(values))
        }
        .boxed()
    }

    async fn op(&self, op: &Op, place: &Place, read: &mut String) -> Ran<Value> {
        match op {
            Op::Text(text) => self.ctx.text(text.to_string()).await,
            Op::Step(id, work) => return self.step(*id, *work, place, read).await,
            Op::Ask(id) => {
                let answer = self.ctx.interrupt(&place.id(*id), Text::new(&place.address)).await?;
                self.probe.answered(&place.address, &answer);
                return Ok(answer.into());
            }
            Op::Group(questions) => return self.group(*questions, place).await,
            Op::Join(how, branches) => return self.join(*how, branches, place, read).await,
            Op::Select(how, branches) => return self.select(*how, branches, place, read).await,
            Op::Loop(rounds, body) => {
                let mut values = Vec::new();
                for round in 0..*rounds {
                    values.push(self.run(body, &place.round(round), read.clone()).await?);
                }
                return Ok(values.into());
            }
            Op::Call(id, number) => {
                let Some(callee) = self.case.callee(place, *number) else { return Ok(Value::Null) };
                let child = &self.children[callee - self.case.roots.max(place.level + 1)];
                let output = self.ctx.call(&place.id(*id), child, place.address.clone().into()).await?;
                return Ok(output[format!("value{callee}")].clone());
            }
            Op::Count(scope) => {
                let state = self.state(*scope);
                state.set(&(state.get()? + 1))?;
            }
            Op::Now => *read = self.ctx.now()?.to_string(),
            Op::Random => *read = self.ctx.random_id()?,
        }
        Ok(Value::Null)
    }

    /// The effect's payload is what was read before: the same in every replay, or the effect is another one.
    async fn step(&self, id: Id, work: Work, place: &Place, read: &str) -> Ran<Value> {
        let name = place.id(id);
        let (env, key, address, read) = (self.clone(), name.clone(), place.address.clone(), read.to_owned());
        let effect = move || async move {
            env.probe.effect(env.ctx.idempotency_key(&key), &address, &read);
            env.probe.meddle().pass().await;
            match work {
                Work::Plain => {}
                Work::Talks(text) => env.ctx.text(text.to_string()).await,
                Work::Reads => drop((env.ctx.now()?, env.ctx.random_id()?)),
            }
            Ok::<_, NodeError>(address)
        };
        let result = self.ctx.step(&name, effect).await?;
        self.probe.finished(&place.address, &result);
        Ok(result.into())
    }

    async fn group(&self, questions: u8, place: &Place) -> Ran<Value> {
        let members = (0..questions).map(|member| place.at(member.into()));
        let asks: Vec<_> = members.clone().map(|at| (at.id(Id::Own), Text::new(&at.address))).collect();
        let answers = self.ctx.interrupt_all(asks).await?;
        members.zip(&answers).for_each(|(at, answer)| self.probe.answered(&at.address, answer));
        Ok(json!(answers))
    }

    async fn join(&self, how: How, branches: &[Program], place: &Place, read: &str) -> Ran<Value> {
        let running = branches.iter().enumerate().map(|(i, branch)| self.branch(i, branch, place, read));
        let mut ended = match how {
            How::Ordered => join_all(running).await,
            How::Woken => running.collect::<FuturesUnordered<_>>().collect().await,
        };
        ended.sort_by_key(|(index, _)| *index);
        ended.into_iter().map(|(_, value)| value).collect::<Ran<Vec<_>>>().map(Value::Array)
    }

    async fn select(&self, how: How, branches: &[Program], place: &Place, read: &str) -> Ran<Value> {
        let running = branches.iter().enumerate().map(|(i, branch)| self.branch(i, branch, place, read));
        let (index, value) = match how {
            How::Ordered => select_all(running).await.0,
            How::Woken => running.collect::<FuturesUnordered<_>>().next().await.unwrap(),
        };
        self.probe.won(&place.address, index);
        Ok(json!({ "won": index, "value": value? }))
    }

    fn branch<'a>(
        &'a self,
        index: usize,
        branch: &'a Program,
        place: &Place,
        read: &str,
    ) -> BoxFuture<'a, (usize, Ran<Value>)> {
        self.run(branch, &place.at(index), read.to_owned()).map(move |value| (index, value)).boxed()
    }
}
