//! Compiled schemas, kept by their text.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{SchemaError, SchemaValidator};

/// Most schemas that are kept.
const MAX_SCHEMAS: usize = 256;

/// Longest schema that is kept. A longer one is compiled for each use: the cache stays within 16 MiB of text.
const MAX_KEPT_BYTES: usize = 64 * 1024;

type Compiled = Result<SchemaValidator, SchemaError>;

/// The cache of this process.
pub(crate) fn shared() -> &'static Cache {
    static CACHE: OnceLock<Cache> = OnceLock::new();
    CACHE.get_or_init(|| Cache::new(MAX_SCHEMAS))
}

/// A bounded map from schema text to what came of compiling it, mistakes included. The one unused for longest goes first.
pub(crate) struct Cache {
    capacity: usize,
    clock: AtomicU64,
    entries: RwLock<HashMap<Arc<str>, Entry>>,
}

struct Entry {
    compiled: Arc<OnceLock<Compiled>>,
    last_used: AtomicU64,
}

impl Cache {
    fn new(capacity: usize) -> Self {
        Self { capacity, clock: AtomicU64::new(0), entries: RwLock::default() }
    }

    /// What was compiled from this text. Callers that come at once wait for one of them to compile it.
    pub(crate) fn get(&self, text: &str, compile: impl FnOnce() -> Compiled) -> Compiled {
        if text.len() > MAX_KEPT_BYTES {
            return compile();
        }
        let slot = self.find(text).unwrap_or_else(|| self.insert(text));
        slot.get_or_init(compile).clone()
    }

    fn find(&self, text: &str) -> Option<Arc<OnceLock<Compiled>>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(text)?;
        entry.last_used.store(self.tick(), Ordering::Relaxed);
        Some(Arc::clone(&entry.compiled))
    }

    fn insert(&self, text: &str) -> Arc<OnceLock<Compiled>> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if !entries.contains_key(text) && entries.len() >= self.capacity {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.last_used.load(Ordering::Relaxed));
            if let Some(oldest) = oldest.map(|(text, _)| Arc::clone(text)) {
                entries.remove(&oldest);
            }
        }
        let last_used = AtomicU64::new(self.tick());
        let entry = entries.entry(text.into()).or_insert_with(|| Entry { compiled: Arc::default(), last_used });
        Arc::clone(&entry.compiled)
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, sync::Barrier, thread};

    use super::*;

    #[test]
    fn a_schema_is_compiled_once_also_when_it_is_wrong() {
        let cache = Cache::new(2);
        let compiled = Cell::new(0);
        for _ in 0..3 {
            let result = cache.get("x", || {
                compiled.set(compiled.get() + 1);
                Err(SchemaError::TooDeep)
            });
            assert_eq!(result.err(), Some(SchemaError::TooDeep));
        }
        assert_eq!(compiled.get(), 1);
    }

    #[test]
    fn threads_that_come_at_once_compile_once() {
        let cache = Cache::new(2);
        let compiled = AtomicU64::new(0);
        let start = Barrier::new(8);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    cache.get("x", || {
                        compiled.fetch_add(1, Ordering::Relaxed);
                        Err(SchemaError::TooDeep)
                    })
                });
            }
        });
        assert_eq!(compiled.into_inner(), 1);
    }

    #[test]
    fn the_schema_unused_for_longest_makes_room() {
        let cache = Cache::new(2);
        let get = |text: &str| {
            let fresh = Cell::new(false);
            let _ = cache.get(text, || {
                fresh.set(true);
                Err(SchemaError::TooDeep)
            });
            fresh.get()
        };
        assert!(get("a") && get("b"));
        assert!(!get("a"), "kept");
        assert!(get("c"), "takes the place of b");
        assert!(!get("a"), "still kept");
        assert!(get("b"), "went first");
        assert_eq!(cache.entries.read().map(|entries| entries.len()).ok(), Some(2));
    }

    #[test]
    fn a_huge_schema_is_not_kept() {
        let cache = Cache::new(2);
        let _ = cache.get(&" ".repeat(MAX_KEPT_BYTES + 1), || Err(SchemaError::TooLong));
        assert_eq!(cache.entries.read().map(|entries| entries.len()).ok(), Some(0));
    }
}
