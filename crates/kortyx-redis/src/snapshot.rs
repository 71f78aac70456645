//! Snapshots as they are stored: large ones compressed. Every byte that passes through a script is copied several times and
//! hashed, which takes the server longer than all else that a script does for a snapshot of 16 kB.

use bytes::Bytes;

use crate::reply::{Damage, Reading};

/// Which sizes are compressed: smaller ones cost little, and larger ones would keep this thread too long.
const COMPRESSED: std::ops::RangeInclusive<usize> = 4_096..=1_048_576;
/// What starts a snapshot that is not stored as it came: a byte that starts no text.
const MARK: u8 = 0xff;
/// It came with a mark of its own, and stands behind this one.
const PLAIN: u8 = 0;
/// Its size in 4 bytes, big-endian, and an LZ4 block.
const LZ4: u8 = 1;
const HEAD: usize = 6;
/// No block gives more bytes than this for one of its own.
const MOST: usize = 255;

/// A snapshot as it is stored.
pub(crate) fn stored(snapshot: Bytes) -> Bytes {
    if let Some(compressed) = compressed(&snapshot) {
        return compressed;
    }
    match snapshot.first() {
        Some(&MARK) => [&[MARK, PLAIN], snapshot.as_ref()].concat().into(),
        _ => snapshot,
    }
}

fn compressed(snapshot: &Bytes) -> Option<Bytes> {
    let size = u32::try_from(snapshot.len()).ok().filter(|_| COMPRESSED.contains(&snapshot.len()))?;
    let mut all = vec![0; HEAD + lz4_flex::block::get_maximum_output_size(snapshot.len())];
    let (head, body) = all.split_at_mut_checked(HEAD)?;
    let length = lz4_flex::block::compress_into(snapshot, body).ok()?;
    let [first, second, third, fourth] = size.to_be_bytes();
    head.copy_from_slice(&[MARK, LZ4, first, second, third, fourth]);
    all.truncate(HEAD + length);
    all.shrink_to_fit();
    (all.len() < snapshot.len() / 8 * 7).then(|| all.into())
}

/// What [`stored`] was given.
pub(crate) fn given(stored: Bytes) -> Reading<Bytes> {
    let damage = || Damage::new("a snapshot does not read back");
    match stored.as_ref() {
        [MARK, PLAIN, ..] => Ok(stored.slice(2..)),
        [MARK, LZ4, first, second, third, fourth, block @ ..] => {
            let size = u32::from_be_bytes([*first, *second, *third, *fourth]);
            let size = usize::try_from(size).ok().filter(|size| *size <= block.len().saturating_mul(MOST));
            let snapshot = lz4_flex::block::decompress(block, size.ok_or_else(damage)?).map_err(|_| damage())?;
            Some(snapshot).filter(|snapshot| Some(snapshot.len()) == size).map(Bytes::from).ok_or_else(damage)
        }
        [MARK, ..] => Err(damage()),
        _ => Ok(stored),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(size: usize) -> Bytes {
        (0..).flat_map(|number: u32| format!("{{\"number\":{number}}},").into_bytes()).take(size).collect()
    }

    #[test]
    fn every_snapshot_is_given_back() {
        let marked = [&[MARK, LZ4][..], &text(9_000)].concat().into();
        for snapshot in [Bytes::new(), text(1), text(4_095), text(4_096), text(1 << 20), text((1 << 20) + 1), marked] {
            assert_eq!(given(stored(snapshot.clone())), Ok(snapshot));
        }
        let marks: Bytes = vec![MARK; 7].into();
        assert_eq!(given(stored(marks.clone())), Ok(marks));
    }

    #[test]
    fn only_a_large_one_that_becomes_smaller_is_compressed() {
        assert!(stored(text(16_000)).len() < 10_000);
        assert_eq!(stored(text(4_095)), text(4_095));
        // Every pair of bytes comes once: there is nothing to find again.
        let mut state = 1_u64;
        let noise: Bytes = (0..16_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state.to_be_bytes()[0] & 0x7f | u8::try_from(state >> 40 & 0x80).unwrap_or(0)
            })
            .collect();
        assert!(stored(noise.clone()).len() >= noise.len());
    }

    #[test]
    fn a_damaged_one_is_refused_and_takes_no_more_memory_than_it_may() {
        let whole = stored(text(16_000));
        for length in 1..whole.len() {
            assert!(given(whole.slice(..length)).is_err(), "{length}");
        }
        let mut huge = whole.to_vec();
        huge.splice(2..6, [0xff; 4]);
        assert!(given(huge.into()).is_err());
        assert!(given(Bytes::from_static(&[MARK, 2])).is_err());
    }
}
