//! Boxed values under small numbers that are used again.

use crate::map::SPARE;

/// The number of a value in its [`Slab`].
pub(crate) type Slot = u32;

/// Values that indexes name by four bytes; a value costs its own size and one pointer.
pub(crate) struct Slab<T> {
    slots: Vec<Option<Box<T>>>,
    /// Empty slots; those past the end of `slots` are stale and skipped.
    free: Vec<Slot>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(crate) fn insert(&mut self, value: T) -> Slot {
        let value = Some(Box::new(value));
        while let Some(slot) = self.free.pop() {
            if let Some(place) = self.slots.get_mut(slot as usize) {
                *place = value;
                return slot;
            }
        }
        // Four billion values of a kilobyte each: memory ends long before the numbers do.
        let slot = Slot::try_from(self.slots.len()).unwrap_or(Slot::MAX);
        self.slots.push(value);
        slot
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&T> {
        self.slots.get(slot as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        self.slots.get_mut(slot as usize)?.as_deref_mut()
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<T> {
        let value = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(*value)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.iter().count()
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        self.from(0)
    }

    /// Values in the order of their slots, from this one on.
    pub(crate) fn from(&self, first: Slot) -> impl Iterator<Item = (Slot, &T)> {
        let slots = (0..).zip(&self.slots).skip(first as usize);
        slots.filter_map(|(slot, value)| Some((slot, value.as_deref()?)))
    }

    /// Gives back the room of values that are gone, as far as the ones that stay allow.
    pub(crate) fn tidy(&mut self) {
        while let Some(None) = self.slots.last() {
            self.slots.pop();
        }
        let used = self.slots.len();
        if self.slots.capacity() > SPARE && used * 4 < self.slots.capacity() {
            self.slots.shrink_to((used * 2).max(SPARE));
            self.free.retain(|slot| (*slot as usize) < used);
            self.free.shrink_to(SPARE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_slot_is_used_again() {
        let mut slab = Slab::default();
        let (a, b) = (slab.insert("a"), slab.insert("b"));
        assert_eq!(slab.remove(a), Some("a"));
        assert_eq!(slab.remove(a), None);
        assert_eq!(slab.insert("c"), a);
        assert_eq!((slab.get(a), slab.get(b), slab.len()), (Some(&"c"), Some(&"b"), 2));
    }

    #[test]
    fn a_tidy_slab_gives_its_room_back_and_loses_nothing() {
        let mut slab = Slab::default();
        let slots: Vec<_> = (0..10_000).map(|number| slab.insert(number)).collect();
        for slot in slots.iter().skip(1) {
            slab.remove(*slot);
        }
        slab.tidy();
        assert!(slab.slots.capacity() <= SPARE, "{}", slab.slots.capacity());
        assert!(slab.free.capacity() <= SPARE, "{}", slab.free.capacity());
        assert_eq!(slab.get(slots[0]), Some(&0));
        assert_eq!(slab.insert(7), 1);
        assert_eq!((slab.insert(8), slab.len()), (2, 3));
    }
}
