//! A bounded pool of connections.
//!
//! A connection is used by one call at a time and goes back only when the call came to its end; what was given up half-way
//! is dropped. Nothing is sent to test a connection: the call that meets a dead one is tried again.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::{Semaphore, SemaphorePermit};

/// Why no connection was to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    /// All stayed in use.
    TimedOut,
    /// The pool was closed.
    Closed,
}

struct Idle<C> {
    connection: C,
    born: Instant,
    since: Instant,
}

/// See the [module](self).
pub(crate) struct Pool<C> {
    size: u32,
    permits: Semaphore,
    /// The one used last comes first.
    idle: Mutex<Vec<Idle<C>>>,
    idle_for: Duration,
    live_for: Duration,
}

/// The right to use one connection, and perhaps the connection.
pub(crate) struct Slot<'a, C> {
    pool: &'a Pool<C>,
    _permit: SemaphorePermit<'a>,
    idle: Option<Idle<C>>,
}

impl<C> Pool<C> {
    pub(crate) fn new(size: u32, idle_for: Duration, live_for: Duration) -> Self {
        Self { size, permits: Semaphore::new(size as usize), idle: Mutex::default(), idle_for, live_for }
    }

    /// Waits for a free place.
    pub(crate) async fn take(&self, patience: Duration) -> Result<Slot<'_, C>, Denied> {
        let permit = match tokio::time::timeout(patience, self.permits.acquire()).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(Denied::Closed),
            Err(_) => return Err(Denied::TimedOut),
        };
        Ok(Slot { pool: self, _permit: permit, idle: self.youngest() })
    }

    fn youngest(&self) -> Option<Idle<C>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|idle| idle.since.elapsed() < self.idle_for && idle.born.elapsed() < self.live_for);
        idle.pop()
    }

    /// Forgets connections that are not in use: another of them was found dead.
    pub(crate) fn clear(&self) -> Vec<C> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *idle).into_iter().map(|idle| idle.connection).collect()
    }

    /// Waits for the calls under way, refuses later ones, and gives the connections to close.
    pub(crate) async fn close(&self) -> Vec<C> {
        // What waited before this goes first: permits are given in order.
        let all = self.permits.acquire_many(self.size).await;
        self.permits.close();
        drop(all);
        self.clear()
    }
}

impl<C> Slot<'_, C> {
    /// The connection that comes with the place, with the time when it was made; `None` when one must be made.
    pub(crate) fn connection(&mut self) -> Option<(C, Instant)> {
        self.idle.take().map(|idle| (idle.connection, idle.born))
    }

    /// Gives a connection back that is ready for another call.
    pub(crate) fn put_back(self, connection: C, born: Instant) {
        let mut idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(Idle { connection, born, since: Instant::now() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(size: u32) -> Pool<u32> {
        Pool::new(size, Duration::from_mins(1), Duration::from_mins(10))
    }

    #[tokio::test]
    async fn a_place_is_free_again_whether_its_connection_came_back_or_not() {
        let pool = pool(1);
        let mut slot = pool.take(Duration::ZERO).await.ok().unwrap();
        assert!(slot.connection().is_none(), "one must be made");
        slot.put_back(7, Instant::now());
        let mut slot = pool.take(Duration::ZERO).await.ok().unwrap();
        assert_eq!(slot.connection().map(|(connection, _)| connection), Some(7));
        drop(slot);
        assert!(pool.take(Duration::ZERO).await.ok().unwrap().connection().is_none(), "dropped, not given back");
    }

    #[tokio::test]
    async fn waiting_for_a_place_has_an_end() {
        let pool = pool(2);
        let held = (pool.take(Duration::ZERO).await.ok(), pool.take(Duration::ZERO).await.ok());
        assert_eq!(pool.take(Duration::from_millis(5)).await.err(), Some(Denied::TimedOut));
        drop(held);
        assert!(pool.take(Duration::ZERO).await.is_ok());
    }

    #[tokio::test]
    async fn a_closed_pool_waits_for_what_is_under_way_and_refuses_the_rest() {
        let pool = std::sync::Arc::new(pool(2));
        let slot = pool.take(Duration::ZERO).await.ok().unwrap();
        let closing = tokio::spawn({
            let pool = std::sync::Arc::clone(&pool);
            async move { pool.close().await }
        });
        tokio::task::yield_now().await;
        assert!(!closing.is_finished());
        slot.put_back(7, Instant::now());
        assert_eq!(closing.await.unwrap(), [7]);
        assert_eq!(pool.take(Duration::ZERO).await.err(), Some(Denied::Closed));
        assert!(pool.close().await.is_empty());
    }

    #[tokio::test]
    async fn connections_that_are_too_old_are_not_used_again() {
        let pool = Pool::new(1, Duration::from_mins(1), Duration::ZERO);
        pool.take(Duration::ZERO).await.ok().unwrap().put_back(7, Instant::now());
        assert!(pool.take(Duration::ZERO).await.ok().unwrap().connection().is_none());
    }
}
