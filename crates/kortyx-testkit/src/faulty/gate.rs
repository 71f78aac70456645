//! What holds calls until a test lets them go on.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Holds calls until it is opened.
#[derive(Debug, Clone)]
pub struct Gate {
    reached: Arc<Semaphore>,
    opened: Arc<Semaphore>,
}

impl Gate {
    pub(super) fn closed() -> Self {
        Self { reached: Arc::new(Semaphore::new(0)), opened: Arc::new(Semaphore::new(0)) }
    }

    /// Waits until a call stands before it.
    pub async fn reached(&self) {
        // Nobody closes it.
        if let Ok(permit) = self.reached.acquire().await {
            permit.forget();
        }
    }

    /// Lets every call through.
    pub fn open(&self) {
        self.opened.add_permits(Semaphore::MAX_PERMITS / 2);
    }

    pub(super) async fn pass(&self) {
        self.reached.add_permits(1);
        drop(self.opened.acquire().await);
    }
}
