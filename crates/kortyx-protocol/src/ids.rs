//! Ids of runs, sessions, requests and checkpoints.

use std::{error::Error, fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The longest id, in bytes.
pub(crate) const MAX_ID_BYTES: usize = 512;

/// Why a text is not an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidId {
    /// It is empty or holds only white space.
    Blank,
    /// It is longer than 512 bytes.
    TooLong,
    /// It holds a control character, such as NUL or a line break.
    Control,
}

impl fmt::Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blank => "an id must not be blank",
            Self::TooLong => "an id must have at most 512 bytes",
            Self::Control => "an id must not hold control characters",
        })
    }
}

impl Error for InvalidId {}

/// The one rule for all ids and tokens.
pub(crate) fn check(text: &str) -> Result<(), InvalidId> {
    if text.len() > MAX_ID_BYTES {
        return Err(InvalidId::TooLong);
    }
    if text.chars().any(char::is_control) {
        return Err(InvalidId::Control);
    }
    if text.trim().is_empty() {
        return Err(InvalidId::Blank);
    }
    Ok(())
}

/// The longest prefix of a minted id.
const MAX_PREFIX_BYTES: usize = 16;
/// A hyphen and a UUID.
const SUFFIX_BYTES: usize = 37;

/// `prefix` and a version 4 UUID (RFC 9562) of these random bytes.
///
/// Written by hand: every run and question gets such ids, and formatting takes ten times as long.
fn uuid(prefix: &str, random: [u8; 16]) -> Arc<str> {
    let bits = u128::from_be_bytes(random);
    let bits = bits & !(0xf << 76) | (0x4 << 76);
    let bits = bits & !(0x3 << 62) | (0x2 << 62);
    let [first, second, third, last] =
        [96, 64, 32, 0].map(|shift| digits(u32::try_from(bits >> shift & 0xffff_ffff).unwrap_or_default()));
    let ((low, middle), (high, sequence)) = (second.split_at(4), third.split_at(4));
    let parts = [prefix.as_bytes(), b"-", &first, b"-", low, b"-", middle, b"-", high, b"-", sequence, &last];
    let mut text = [0; MAX_PREFIX_BYTES + SUFFIX_BYTES];
    let mut rest = text.as_mut_slice();
    for part in parts {
        // No prefix is longer than it may be.
        let Some((place, after)) = rest.split_at_mut_checked(part.len()) else { break };
        place.copy_from_slice(part);
        rest = after;
    }
    // It is ASCII.
    Arc::from(text.get(..prefix.len() + SUFFIX_BYTES).and_then(|text| str::from_utf8(text).ok()).unwrap_or_default())
}

/// Eight lower-case hex digits, all at once: each in a byte of its own.
fn digits(bits: u32) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let spread = u64::from(bits);
    let spread = (spread << 16 | spread) & 0x0000_ffff_0000_ffff;
    let spread = (spread << 8 | spread) & 0x00ff_00ff_00ff_00ff;
    let values = (spread << 4 | spread) & (0x0f * ONES);
    // 1 in each byte whose value is above 9: adding 6 carries into the upper half.
    let letters = ((values + 0x06 * ONES) >> 4) & ONES;
    (values + u64::from(b'0') * ONES + letters * u64::from(b'a' - 10 - b'0')).to_be_bytes()
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        ///
        /// Not blank, at most 512 bytes, no control characters. Cheap to clone; prints as its text.
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// An id with this text, which is kept as it is.
            pub fn new(text: impl AsRef<str> + Into<Arc<str>>) -> Result<Self, InvalidId> {
                check(text.as_ref())?;
                Ok(Self(text.into()))
            }

            #[doc = concat!("`", $prefix, "-` and a version 4 UUID made of these random bytes.")]
            pub fn from_random(random: [u8; 16]) -> Self {
                Self(uuid($prefix, random))
            }

            /// Its text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(de::Error::custom)
            }
        }
    };
}

id!(
    /// Names one execution of a workflow, from start to a terminal outcome.
    RunId,
    "run"
);
id!(
    /// Names a conversation.
    SessionId,
    "session"
);
id!(
    /// Names a question put to a person; public, unlike its token.
    RequestId,
    "human"
);
id!(
    /// Names a state of a session that can be listed, rolled back to and forked.
    CheckpointId,
    "cp"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_id_has_its_prefix_and_a_version_4_uuid() {
        assert_eq!(RunId::from_random([0xff; 16]).as_str(), "run-ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(SessionId::from_random([0; 16]).as_str(), "session-00000000-0000-4000-8000-000000000000");
        assert_eq!(
            RequestId::from_random([0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0, 1, 2, 3, 4, 5, 6, 7]).as_str(),
            "human-01234567-89ab-4def-8001-020304050607"
        );
        assert!(CheckpointId::from_random([7; 16]).as_str().starts_with("cp-"));
    }

    #[test]
    fn every_digit_is_that_of_its_value() {
        for bits in (0..=0xffff).map(|bits| bits << 16 | (bits ^ 0xa5f0)) {
            assert_eq!(digits(bits), format!("{bits:08x}").as_bytes());
        }
    }

    #[test]
    fn a_malformed_id_is_refused_with_the_rule_it_breaks() {
        assert_eq!(RunId::new(""), Err(InvalidId::Blank));
        assert_eq!(RunId::new(" \u{a0} "), Err(InvalidId::Blank));
        assert_eq!(RunId::new("a\0b"), Err(InvalidId::Control));
        assert_eq!(RunId::new("a\u{85}b"), Err(InvalidId::Control));
        assert_eq!(RunId::new("x".repeat(513)), Err(InvalidId::TooLong));
        assert_eq!(RunId::new("x".repeat(512)).unwrap().as_str().len(), 512);
        assert_eq!("no\nlines".parse::<SessionId>(), Err(InvalidId::Control));
        assert!(serde_json::from_str::<RunId>("\"\"").is_err());
        assert!(serde_json::from_str::<RunId>("7").is_err());
    }

    #[test]
    fn an_id_prints_and_travels_as_its_text() {
        let id = SessionId::new("séance 1").unwrap();
        assert_eq!(id.to_string(), "séance 1");
        assert_eq!(format!("{id:?}"), "\"séance 1\"");
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"séance 1\"");
        assert_eq!(serde_json::from_str::<SessionId>("\"séance 1\"").unwrap(), id);
    }
}
