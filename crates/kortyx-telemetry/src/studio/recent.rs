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
        while self.order.len() > self.most.saturating_mul(2) || self.entries.len() > self.most {
            let Some((number, key)) = self.order.pop_front() else { break };
            if self.entries.get(&key).is_some_and(|(current, _)| *current == number) {
                self.entries.remove(&key);
            }
        }
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        self.entries.remove(key).map(|(_, value)| value)
    }
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
}
