//! The natural order of versions: `10` after `9`, `1.2.0` after `1.2.0-rc1`.

use std::cmp::Ordering;

/// Compares two versions as people read them.
///
/// Runs of digits compare as numbers and come before text; a version comes after its own pre-releases (what follows the
/// first `-`, as in Semantic Versioning 2.0.0, clause 11); what follows a `+` decides last. Only equal texts are equal.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    let (left_core, left_pre, left_build) = parts(left);
    let (right_core, right_pre, right_build) = parts(right);
    natural(left_core, right_core)
        .then_with(|| match (left_pre, right_pre) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(left), Some(right)) => natural(left, right),
        })
        .then_with(|| natural(left_build, right_build))
        .then_with(|| left.cmp(right))
}

/// The version proper, the pre-release, the build.
fn parts(version: &str) -> (&str, Option<&str>, &str) {
    let (version, build) = version.split_once('+').unwrap_or((version, ""));
    match version.split_once('-') {
        Some((core, pre)) => (core, Some(pre), build),
        None => (version, None, build),
    }
}

fn natural(left: &str, right: &str) -> Ordering {
    Segments(left).cmp(Segments(right))
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Segment<'a> {
    /// The count of digits without leading zeros, and these digits: orders numbers of any size.
    Number(usize, &'a str),
    Text(&'a str),
}

/// Splits a text where digits begin or end.
struct Segments<'a>(&'a str);

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        let is_number = self.0.starts_with(|c: char| c.is_ascii_digit());
        let end = self.0.find(|c: char| c.is_ascii_digit() != is_number).unwrap_or(self.0.len());
        let (segment, rest) = self.0.split_at(end);
        self.0 = rest;
        if is_number {
            let digits = segment.trim_start_matches('0');
            Some(Segment::Number(digits.len(), digits))
        } else {
            (!segment.is_empty()).then_some(Segment::Text(segment))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_sort_as_people_read_them() {
        let sorted = [
            "1",
            "1.2.0-alpha",
            "1.2.0-rc1",
            "1.2.0-rc2",
            "1.2.0-rc10",
            "1.2.0",
            "1.2.0+build5",
            "1.10.0",
            "2",
            "9",
            "10",
            "2026-01-31",
            "2026-02-01",
            "99999999999999999999999998",
            "99999999999999999999999999",
            "v2",
            "v10",
        ];
        let mut shuffled = sorted;
        shuffled.reverse();
        shuffled.sort_by(|left, right| compare(left, right));
        assert_eq!(shuffled, sorted);
    }

    #[test]
    fn only_equal_texts_are_equal() {
        assert_eq!(compare("1.0", "1.0"), Ordering::Equal);
        assert_ne!(compare("1", "01"), Ordering::Equal);
        assert_ne!(compare("1+a", "1+A"), Ordering::Equal);
    }

    proptest! {
        #[test]
        fn the_order_is_total(a in "[0-9a.+-]{0,6}", b in "[0-9a.+-]{0,6}", c in "[0-9a.+-]{0,6}") {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            prop_assert_eq!(compare(&a, &b) == Ordering::Equal, a == b);
            if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
                prop_assert!(compare(&a, &c).is_le());
            }
        }
    }
}
