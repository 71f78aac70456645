//! Values that many runs share, each kept once while a run uses it.

use std::{hash::Hash, sync::Arc};

use crate::{
    map::{Map, tidy},
    slab::{Slab, Slot},
};

/// Shared values by number, with something of type `X` kept beside each.
pub(crate) struct Interner<T, X = ()> {
    slots: Map<Arc<T>, Slot>,
    values: Slab<Interned<T, X>>,
}

struct Interned<T, X> {
    value: Arc<T>,
    users: u32,
    beside: X,
}

impl<T, X> Default for Interner<T, X> {
    fn default() -> Self {
        Self { slots: Map::default(), values: Slab::default() }
    }
}

impl<T: Hash + Eq, X: Default> Interner<T, X> {
    /// Adds a user of an equal value and gives the value's number.
    pub(crate) fn acquire(&mut self, value: T) -> Slot {
        if let Some(slot) = self.find(&value) {
            if let Some(interned) = self.values.get_mut(slot) {
                interned.users += 1;
            }
            return slot;
        }
        let value = Arc::new(value);
        let slot = self.values.insert(Interned { value: Arc::clone(&value), users: 1, beside: X::default() });
        self.slots.insert(value, slot);
        slot
    }

    /// Takes a user away; the last one takes the value along.
    pub(crate) fn release(&mut self, slot: Slot) {
        let Some(interned) = self.values.get_mut(slot) else { return };
        interned.users -= 1;
        if interned.users == 0
            && let Some(interned) = self.values.remove(slot)
        {
            self.slots.remove(&interned.value);
        }
    }

    pub(crate) fn find(&self, value: &T) -> Option<Slot> {
        self.slots.get(value).copied()
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&Arc<T>> {
        self.values.get(slot).map(|interned| &interned.value)
    }

    pub(crate) fn beside(&self, slot: Slot) -> Option<&X> {
        self.values.get(slot).map(|interned| &interned.beside)
    }

    pub(crate) fn beside_mut(&mut self, slot: Slot) -> Option<&mut X> {
        self.values.get_mut(slot).map(|interned| &mut interned.beside)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn tidy(&mut self) {
        tidy(&mut self.slots);
        self.values.tidy();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equal_value_is_kept_once_until_its_last_user_goes() {
        let mut names = Interner::<String>::default();
        let first = names.acquire("a".to_owned());
        assert_eq!(names.acquire("a".to_owned()), first);
        assert_ne!(names.acquire("b".to_owned()), first);
        names.release(first);
        assert_eq!(names.find(&"a".to_owned()), Some(first));
        names.release(first);
        assert_eq!(names.find(&"a".to_owned()), None);
        assert!(names.get(first).is_none());
        assert_eq!(names.len(), 1);
    }
}
