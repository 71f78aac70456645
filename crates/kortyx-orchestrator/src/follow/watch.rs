//! Who follows which run in this process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kortyx_protocol::RunId;
use tokio::sync::watch;

type Runs = HashMap<RunId, watch::Sender<()>>;

/// Wakes those who follow a run that is driven in this process. A run that nobody follows costs a look.
#[derive(Default, Clone)]
pub(crate) struct Followers(Arc<Mutex<Runs>>);

/// Notices that storage holds more of a run.
pub(super) struct Follower {
    followers: Followers,
    run_id: RunId,
    news: Option<watch::Receiver<()>>,
}

impl Followers {
    fn lock(&self) -> MutexGuard<'_, Runs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Storage holds more of this run.
    pub(crate) fn tell(&self, run_id: &RunId) {
        if let Some(news) = self.lock().get(run_id) {
            news.send_replace(());
        }
    }

    pub(super) fn follow(&self, run_id: RunId) -> Follower {
        let news = self.lock().entry(run_id.clone()).or_insert_with(|| watch::Sender::new(())).subscribe();
        Follower { followers: self.clone(), run_id, news: Some(news) }
    }
}

impl Follower {
    /// Waits until something was told since the last time.
    pub(super) async fn news(&mut self) {
        let Some(news) = &mut self.news else { return std::future::pending().await };
        if news.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut runs = self.followers.lock();
        self.news = None;
        if runs.get(&self.run_id).is_some_and(|news| news.receiver_count() == 0) {
            runs.remove(&self.run_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn news_come_once_to_each_and_nothing_is_left_of_those_who_went() {
        let (followers, run_id) = (Followers::default(), RunId::new("run-1").unwrap());
        let (mut first, mut second) = (followers.follow(run_id.clone()), followers.follow(run_id.clone()));
        assert!(first.news().now_or_never().is_none());
        followers.tell(&RunId::new("run-2").unwrap());
        assert!(first.news().now_or_never().is_none());
        followers.tell(&run_id);
        followers.tell(&run_id);
        for follower in [&mut first, &mut second] {
            assert!(follower.news().now_or_never().is_some());
            assert!(follower.news().now_or_never().is_none());
        }
        drop(first);
        assert_eq!(followers.lock().len(), 1);
        drop(second);
        assert!(followers.lock().is_empty());
    }
}
