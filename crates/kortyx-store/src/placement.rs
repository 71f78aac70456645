//! Where a session lives, for ids that say so.

/// The part of a store that a session lives in, as [`Store::placement`](crate::Store::placement) gives it.
///
/// An id whose random bytes were [marked](Self::mark) with it says where it belongs: its last three hex digits are the
/// part's number. Of the 122 random bits of a version 4 UUID 110 remain; and a store refuses an id that is taken.
///
/// ```
/// use kortyx_protocol::RunId;
/// use kortyx_store::Placement;
///
/// let part = Placement::new(0x2af).expect("below 4096");
/// assert_eq!(RunId::from_random(part.mark([0xff; 16])).as_str(), "run-ffffffff-ffff-4fff-bfff-fffffffff2af");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Placement(u16);

impl Placement {
    /// How many parts there may be.
    pub const COUNT: u16 = 1 << 12;

    /// The part with this number, which is below [`COUNT`](Self::COUNT).
    pub fn new(number: u16) -> Option<Self> {
        (number < Self::COUNT).then_some(Self(number))
    }

    /// Its number.
    pub fn number(self) -> u16 {
        self.0
    }

    /// These random bytes with the number in their last twelve bits, of which a version 4 UUID keeps every one.
    #[must_use]
    pub fn mark(self, random: [u8; 16]) -> [u8; 16] {
        let bits = u128::from_be_bytes(random) & !u128::from(Self::COUNT - 1);
        (bits | u128::from(self.0)).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use kortyx_protocol::{RequestId, ResumeToken};

    use super::*;

    #[test]
    fn there_are_as_many_parts_as_three_hex_digits_tell_apart() {
        assert_eq!(Placement::new(4095).map(Placement::number), Some(4095));
        assert_eq!(Placement::new(4096), None);
    }

    #[test]
    fn a_mark_changes_the_last_three_digits_of_an_id_and_nothing_else() {
        let random = [0x5a; 16];
        for number in [0, 1, 0x0ff, 0xfff] {
            let marked = Placement::new(number).unwrap().mark(random);
            let (plain, id) = (RequestId::from_random(random), RequestId::from_random(marked));
            let (kept, part) = id.as_str().split_at(plain.as_str().len() - 3);
            assert_eq!((part, plain.as_str().starts_with(kept)), (format!("{number:03x}").as_str(), true));
            assert_eq!(ResumeToken::mint(marked, [1; 32]).request_id(), Some(id), "its token says it too");
        }
    }
}
