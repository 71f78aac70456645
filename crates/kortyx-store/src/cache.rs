//! A cache of snapshots beside a store.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use kortyx_protocol::RunId;

use crate::{
    AnswerOutcome, AnswerRequest, ClaimRequest, Claimed, ExpireRequest, ExpiredBatch, Lease, OpenRun, Store,
    StoreError, Suspend, Suspended,
};

/// What tells a snapshot from every other: a digest of its bytes.
///
/// The store keeps it beside the snapshot and says it when it grants a lease. So the store alone decides which snapshot
/// counts, and what a cache gives for it can be checked.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Revision([u8; 32]);

impl Revision {
    /// The revision that these bytes are.
    pub const fn new(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// Its bytes, as stored.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Revision({self})")
    }
}

/// A place for bytes that may be lost, such as a Redis.
///
/// What it gives is checked by whoever asks. Nothing is tried again here; callers wait only for so long and drop the call
/// then.
#[async_trait]
pub trait PayloadCache: Send + Sync + 'static {
    /// What was last put under this key, if it is still there.
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError>;

    /// Keeps a value, for this long at most.
    async fn put(&self, key: &str, value: Bytes, ttl: Duration) -> Result<(), StoreError>;

    /// Frees what it holds; later calls fail.
    async fn close(&self);
}

/// A cache as a [`CacheableStore`] sees it: it never fails, and takes little time.
#[async_trait]
pub trait SnapshotCache: Send + Sync {
    /// The revision of a snapshot that is about to be stored, when the cache will keep it; `None` for one that it does not
    /// want.
    fn revision(&self, snapshot: &Bytes) -> Option<Revision>;

    /// Keeps a snapshot that is stored. Returns at once, and may do nothing.
    fn keep(&self, run_id: &RunId, revision: Revision, snapshot: Bytes);

    /// Whether it may be asked now. Otherwise the store hands snapshots out itself, without another round trip.
    fn is_asked(&self) -> bool;

    /// The snapshot of this revision, never another, if it is there.
    async fn find(&self, run_id: &RunId, revision: &Revision) -> Option<Bytes>;
}

/// A store that can grant a lease without the snapshot, where a cache beside it may have it.
///
/// Each method is that of [`Store`] with the same promises, and with the same outcome whatever the cache does: a snapshot
/// that was stored with a revision is looked for in the cache, and one that is not there is read from the store, under the lease
/// that was just granted. A snapshot without a revision comes with the lease.
///
/// A lease whose snapshot cannot be read any more is not handed out: the run goes on when the lease has run out. An answer
/// that was accepted meanwhile stays so, and says [`Drive::Left`](crate::Drive::Left).
#[async_trait]
pub trait CacheableStore: Store {
    /// As [`Store::open`]; the snapshot goes to the cache once it is stored.
    async fn open_beside(&self, cache: &dyn SnapshotCache, request: OpenRun) -> Result<Lease, StoreError>;

    /// As [`Store::suspend`]; the snapshot goes to the cache once it is stored.
    async fn suspend_beside(&self, cache: &dyn SnapshotCache, request: Suspend) -> Result<Suspended, StoreError>;

    /// As [`Store::answer`].
    async fn answer_beside(
        &self,
        cache: &dyn SnapshotCache,
        request: AnswerRequest,
    ) -> Result<AnswerOutcome, StoreError>;

    /// As [`Store::claim_orphans`].
    async fn claim_orphans_beside(
        &self,
        cache: &dyn SnapshotCache,
        request: ClaimRequest,
    ) -> Result<Vec<Claimed>, StoreError>;

    /// As [`Store::expire_due`].
    async fn expire_due_beside(
        &self,
        cache: &dyn SnapshotCache,
        request: ExpireRequest,
    ) -> Result<ExpiredBatch, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_written_as_hex_of_its_bytes() {
        let mut digest = [0; 32];
        digest[0] = 0x0a;
        digest[31] = 0xff;
        let text = Revision::new(digest).to_string();
        assert!(text.starts_with("0a00") && text.ends_with("00ff") && text.len() == 64, "{text}");
    }
}
