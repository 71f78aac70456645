//! Work that is the agent's: it gets done whatever becomes of the caller who asked for it.

use std::{
    cell::Cell,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::agent::Inner;

thread_local! {
    /// Whether this thread is beginning some work.
    static IS_BEGINNING: Cell<bool> = const { Cell::new(false) };
}

impl Inner {
    /// Does work in a task of the agent's.
    ///
    /// On a runtime of one thread the work begins at once, on the task that calls: one of its own could not run beside
    /// that, only after it. Mostly the work is done then, and the task, which is not cheap, is saved. What has to wait for
    /// something goes on in a task, so a caller that goes away never takes work along.
    pub(crate) async fn work(&self, work: BoxFuture<'static, ()>) {
        let mut work = self.tasks.track_future(work);
        let is_done = self.may_begin_here() && poll_fn(|cx| Poll::Ready(begin(&mut work, cx))).await;
        if !is_done {
            self.runtime.spawn(work);
        }
    }

    /// Whether work may begin on the task that calls. Work that such work asks for may not: the stack has an end.
    fn may_begin_here(&self) -> bool {
        self.runtime.runtime_flavor() == RuntimeFlavor::CurrentThread
            && !IS_BEGINNING.get()
            && Handle::try_current().is_ok_and(|here| here.id() == self.runtime.id())
    }
}

/// Polls work once. `true`: it is over. A panic ends it and only it, as in a task.
fn begin(work: &mut (impl Future<Output = ()> + Unpin), cx: &mut Context<'_>) -> bool {
    IS_BEGINNING.set(true);
    let is_over = catch_unwind(AssertUnwindSafe(|| Pin::new(work).poll(cx).is_ready()));
    IS_BEGINNING.set(false);
    is_over.unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use futures_util::FutureExt as _;
    use kortyx_memory::MemoryStore;
    use tokio::{sync::oneshot, task};

    use super::*;
    use crate::Agent;

    async fn agent() -> Agent {
        Agent::builder().store(MemoryStore::new()).without_worker().build().await.unwrap()
    }

    /// A flag, and work that sets it once the signal has come.
    fn work(signal: oneshot::Receiver<()>) -> (Arc<AtomicBool>, BoxFuture<'static, ()>) {
        let flag = Arc::new(AtomicBool::new(false));
        let done = flag.clone();
        let work = async move {
            let _ = signal.await;
            done.store(true, Ordering::SeqCst);
        };
        (flag, Box::pin(work))
    }

    fn given() -> oneshot::Receiver<()> {
        let (signal, given) = oneshot::channel();
        signal.send(()).unwrap();
        given
    }

    #[tokio::test]
    async fn work_that_waits_for_nothing_is_done_at_once_and_leaves_no_task() {
        let agent = agent().await;
        let (flag, work) = work(given());
        agent.0.work(work).now_or_never().unwrap();
        assert!(flag.load(Ordering::SeqCst) && agent.0.tasks.is_empty());
    }

    #[tokio::test]
    async fn work_that_waits_goes_on_without_its_caller() {
        let agent = agent().await;
        let (signal, given) = oneshot::channel();
        let (flag, work) = work(given);
        agent.0.work(work).now_or_never().unwrap();
        assert!(!flag.load(Ordering::SeqCst) && agent.0.tasks.len() == 1);
        signal.send(()).unwrap();
        agent.0.tasks.close();
        agent.0.tasks.wait().await;
        assert!(flag.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn a_panic_ends_the_work_and_nothing_else() {
        let agent = agent().await;
        agent.0.work(Box::pin(async { panic!("a defect") })).await;
        let (flag, work) = work(given());
        agent.0.work(work).await;
        assert!(flag.load(Ordering::SeqCst) && agent.0.tasks.is_empty());
    }

    #[tokio::test]
    async fn work_that_work_asks_for_gets_a_task_since_the_stack_has_an_end() {
        let agent = agent().await;
        let (flag, inner) = work(given());
        let (asking, seen) = (agent.clone(), flag.clone());
        let outer = async move {
            asking.0.work(inner).await;
            assert!(!seen.load(Ordering::SeqCst));
        };
        agent.0.work(Box::pin(outer)).await;
        agent.0.tasks.close();
        agent.0.tasks.wait().await;
        assert!(flag.load(Ordering::SeqCst));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn where_tasks_run_at_once_work_gets_one() {
        let agent = agent().await;
        let (tell, is_task) = oneshot::channel();
        agent.0.work(Box::pin(async move { tell.send(task::try_id().is_some()).unwrap() })).await;
        // This test itself is none.
        assert_eq!((task::try_id(), is_task.await), (None, Ok(true)));
    }
}
