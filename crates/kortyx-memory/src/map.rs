//! The hash maps of the store.

use std::{collections::HashMap, hash::Hash};

/// A hash map whose seed is random and whose hash takes a few nanoseconds; the standard one takes a fifth of a
/// transition's time.
pub(crate) type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// How many entries a map may have room for without being asked why.
pub(crate) const SPARE: usize = 256;

/// Gives back the room of entries that are gone.
pub(crate) fn tidy<K: Hash + Eq, V>(map: &mut Map<K, V>) {
    if map.capacity() > SPARE && map.len() * 4 < map.capacity() {
        map.shrink_to((map.len() * 2).max(SPARE));
    }
}
