//! What callers of a store do often, made of its transitions.

use async_trait::async_trait;
use kortyx_protocol::RunId;

use crate::{InterruptQuery, InterruptRecord, Store, StoreError};

/// The most that a page holds.
const PAGE: u32 = 200;

/// Conveniences for callers; every [`Store`] has them.
#[async_trait]
pub trait StoreExt: Store {
    /// Reads every open question of a run, oldest first, page by page: each as it stands when its page is read.
    ///
    /// ```
    /// use kortyx_protocol::RunId;
    /// use kortyx_store::{Store, StoreError, StoreExt as _};
    ///
    /// async fn is_waiting(store: &dyn Store, run_id: &RunId) -> Result<bool, StoreError> {
    ///     Ok(!store.open_questions(run_id).await?.is_empty())
    /// }
    /// ```
    async fn open_questions(&self, run_id: &RunId) -> Result<Vec<InterruptRecord>, StoreError> {
        let mut query = InterruptQuery { run_id: Some(run_id.clone()), limit: PAGE, ..InterruptQuery::default() };
        let mut open = Vec::new();
        loop {
            let page = self.list_interrupts(query.clone()).await?;
            open.extend(page.interrupts);
            match page.next {
                Some(next) => query.cursor = Some(next),
                None => return Ok(open),
            }
        }
    }
}

impl<S: Store + ?Sized> StoreExt for S {}
