//! What is remembered for a while: a map that forgets its oldest entries.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
};

/// At most so many entries; the oldest go first.
pub(super) struct Recent<K, V> {
    entries: HashMap<K, (u64, V)>,
    order: VecDeque<(u64, K)>,
    most: usize,
    next: u64,
}

impl<K: Hash + Eq + Clone, V> Recent<K, V> {
    pub(super) fn new(most: usize) -> Self {
        Self { entries: HashMap::new(), order: VecDeque::new(), most, next: 0 }
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        self.next = self.next.wrapping_add(1);
        self.order.push_back((self.next, key.clone()));
        self.entries.insert(key, (self.next, value));
        while self.entries.len() > self.most {
            let Some((number, key)) = self.order.pop_front() else { break };
            if is_current(&self.entries, &key, number) {
                self.entries.remove(&key);
            }
        }
        // What has come and gone makes room, so that an old entry that is still there may stay.
        if self.order.len() > self.most.saturating_mul(2) {
            let entries = &self.entries;
            self.order.retain(|(number, key)| is_current(entries, key, *number));
        }
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        self.entries.remove(key).map(|(_, value)| value)
    }
}

fn is_current<K: Hash + Eq, V>(entries: &HashMap<K, (u64, V)>, key: &K, number: u64) -> bool {
    entries.get(key).is_some_and(|(current, _)| *current == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_are_forgotten() {
        let mut recent = Recent::new(2);
        for number in 0..3 {
            recent.insert(number, number);
        }
        assert_eq!((recent.get(&0), recent.get(&1), recent.get(&2)), (None, Some(&1), Some(&2)));
    }

    #[test]
    fn entries_that_come_and_go_leave_nothing_behind() {
        let mut recent = Recent::new(2);
        for number in 0..100 {
            recent.insert(number, number);
            assert_eq!(recent.remove(&number), Some(number));
        }
        assert!(recent.order.len() <= 4 && recent.entries.is_empty());
    }

    #[test]
    fn an_old_entry_outlives_any_number_that_come_and_go() {
        let mut recent = Recent::new(2);
        recent.insert(0, 0);
        for number in 1..100 {
            recent.insert(number, number);
            recent.remove(&number);
        }
        assert_eq!(recent.get(&0), Some(&0));
    }
}
