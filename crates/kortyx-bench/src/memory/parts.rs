//! The parts of a cycle, each without the others.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use kortyx_memory::MemoryStore;
use kortyx_protocol::{RawJson, StreamChunk, Timestamp};
use kortyx_runtime::{
    Batch, ChunkSink, DeliveredAnswer, Engine, Host, Io, IoFuture, Limits, Outcome, RecordError, RecordReply, Recorder,
    Registry, Restore, RunInfo, Start, Suspension, Turn, Workflow,
};
use kortyx_store::{AnswerOutcome, Drive, Finished, Store, Suspended};

use super::Stopwatch;
use crate::{
    error::Error,
    template::{Ids, Template},
    workload,
};

/// The engine without agent and storage: start, pause, go on from the snapshot, end.
pub(super) struct EngineAlone {
    engine: Engine,
    workflow: Workflow,
    input: RawJson,
    io: Io,
}

impl EngineAlone {
    pub(super) fn new() -> Result<Self, Error> {
        let workflow = workload::workflow()?;
        let mut registry = Registry::new();
        registry.register(&workflow)?;
        let engine = Engine::new(Arc::new(registry), Limits::default());
        let input = RawJson::of(&workload::state())?;
        let nothing = Arc::new(Nothing);
        Ok(Self { engine, workflow, input, io: Io::new(nothing.clone(), nothing.clone(), nothing) })
    }

    /// Microseconds of the processor for each cycle.
    pub(super) async fn micros(&self, count: u64) -> Result<f64, Error> {
        let ids: Vec<Ids> = (0..count).map(Ids::of).collect();
        let watch = Stopwatch::start();
        for ids in ids {
            self.cycle(RunInfo { run_id: ids.run_id, session_id: ids.session_id }).await?;
        }
        Ok(watch.processor(count))
    }

    async fn cycle(&self, run: RunInfo) -> Result<(), Error> {
        let start = Start::new(run.clone(), self.workflow.definition().clone(), self.input.clone());
        let Turn::Suspended(pause) = self.engine.start(start, self.io.clone())?.advance().await? else {
            return Err(Error::unexpected("a run must pause"));
        };
        let restore = Restore { run, snapshot: &pause.snapshot, entries: &[], answers: vec![answered(&pause)?] };
        match self.engine.restore(restore, self.io.clone())?.advance().await? {
            Turn::Finished(ending) if matches!(ending.outcome, Outcome::Completed(_)) => Ok(()),
            other => Err(Error::unexpected(format!("a run must complete, not: {other:?}"))),
        }
    }
}

fn answered(pause: &Suspension) -> Result<DeliveredAnswer, Error> {
    let question = pause.publish.first().ok_or_else(|| Error::unexpected("a run must ask"))?;
    Ok(DeliveredAnswer { seq: 1, ask: question.ask.clone(), response: workload::answer() })
}

/// The store without agent and engine: suspend, read the question, answer, finish.
pub(super) struct StoreAlone(Template);

impl StoreAlone {
    pub(super) fn new(template: Template) -> Self {
        Self(template)
    }

    /// Microseconds of the processor for each cycle, in a store that starts empty.
    pub(super) async fn micros(&self, count: u64) -> Result<f64, Error> {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let ids: Vec<Ids> = (0..count).map(Ids::of).collect();
        let watch = Stopwatch::start();
        for ids in &ids {
            self.cycle(&*store, ids).await?;
        }
        Ok(watch.processor(count))
    }

    async fn cycle(&self, store: &dyn Store, ids: &Ids) -> Result<(), Error> {
        let Suspended::Saved(_) = store.suspend(self.0.suspend(ids)).await? else {
            return Err(Error::unexpected("a run must wait"));
        };
        if store.interrupt(&ids.request_id).await?.is_none() {
            return Err(Error::unexpected("a question must be known"));
        }
        let AnswerOutcome::Accepted(_, Drive::Granted(claimed)) = store.answer(self.0.answer(ids)).await? else {
            return Err(Error::unexpected("an answer must be accepted"));
        };
        match store.finish(self.0.finish(claimed.lease)).await? {
            Finished::Done => Ok(()),
            Finished::Answered(_) => Err(Error::unexpected("a run must end")),
        }
    }
}

/// Chunks go nowhere, nothing is recorded, the clock and the generator are the machine's.
struct Nothing;

impl ChunkSink for Nothing {
    fn send(&self, _: StreamChunk) -> IoFuture<'_, ()> {
        Box::pin(async {})
    }
}

impl Recorder for Nothing {
    fn open(&self, _: Vec<u8>) -> IoFuture<'_, Result<(), RecordError>> {
        Box::pin(async { Ok(()) })
    }

    fn record(&self, _: Batch) -> IoFuture<'_, Result<RecordReply, RecordError>> {
        Box::pin(async { Ok(RecordReply::default()) })
    }
}

impl Host for Nothing {
    fn now(&self) -> Timestamp {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
    }

    fn random(&self) -> Result<[u8; 16], RecordError> {
        let mut bytes = [0; 16];
        match getrandom::fill(&mut bytes) {
            Ok(()) => Ok(bytes),
            Err(error) => Err(RecordError { message: "no random bytes".into(), source: Some(error.into()) }),
        }
    }

    fn sleep(&self, duration: Duration) -> IoFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{watched::Watched, workload::Workload};

    #[tokio::test]
    async fn the_engine_goes_through_the_cycle_alone() {
        assert!(EngineAlone::new().unwrap().micros(2).await.unwrap() > 0.0);
    }

    #[tokio::test]
    async fn the_store_goes_through_the_cycle_alone() {
        let watched = Watched::new(Arc::new(MemoryStore::new()));
        Workload::over(watched.clone()).await.unwrap().cycle().await.unwrap();

        assert!(StoreAlone::new(watched.template().unwrap()).micros(2).await.unwrap() > 0.0);
    }
}
