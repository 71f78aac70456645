//! Points in time, as they are stored and sent.

use std::{
    fmt,
    str::FromStr,
    time::{Duration, UNIX_EPOCH},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A point in time with millisecond precision, from 1970 to the end of the year 9999.
///
/// Prints and travels as ISO 8601 in UTC: `2026-01-01T00:15:00.000Z`. Arithmetic saturates at both ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// The text is not an ISO 8601 time in UTC between 1970 and 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a time must look like 2026-01-01T00:15:00.000Z, in UTC, between 1970 and 9999")]
pub struct InvalidTimestamp;

impl Timestamp {
    /// The beginning of 1970.
    pub const MIN: Self = Self(0);

    /// The last millisecond of the year 9999.
    pub const MAX: Self = Self(253_402_300_799_999);

    /// This many milliseconds after the beginning of 1970, or the nearest end of the range.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(Self::MIN.0, Self::MAX.0))
    }

    /// Milliseconds since the beginning of 1970.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// Later by this much, at most [`MAX`](Self::MAX). Parts of a millisecond are dropped.
    #[must_use]
    pub fn saturating_add(self, by: Duration) -> Self {
        Self::from_millis(self.0.saturating_add(whole_millis(by)))
    }

    /// Earlier by this much, at least [`MIN`](Self::MIN). Parts of a millisecond are dropped.
    #[must_use]
    pub fn saturating_sub(self, by: Duration) -> Self {
        Self::from_millis(self.0.saturating_sub(whole_millis(by)))
    }

    /// The time from `earlier` to this; zero when `earlier` is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

fn whole_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = UNIX_EPOCH + self.since(Self::MIN);
        fmt::Display::fmt(&humantime::format_rfc3339_millis(time), f)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    /// Reads ISO 8601 in UTC, with or without a fraction of a second; digits after the third are dropped.
    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let time = humantime::parse_rfc3339(text).map_err(|_| InvalidTimestamp)?;
        let elapsed = time.duration_since(UNIX_EPOCH).map_err(|_| InvalidTimestamp)?;
        Ok(Self::from_millis(whole_millis(elapsed)))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_time_prints_as_iso_8601_with_milliseconds() {
        assert_eq!(Timestamp::from_millis(1_767_226_500_000).to_string(), "2026-01-01T00:15:00.000Z");
        assert_eq!(Timestamp::MIN.to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::MAX.saturating_add(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MIN.saturating_sub(Duration::MAX), Timestamp::MIN);
        assert_eq!(Timestamp::from_millis(i64::MIN), Timestamp::MIN);
        assert_eq!(Timestamp::from_millis(i64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MIN.since(Timestamp::MAX), Duration::ZERO);
        assert_eq!(Timestamp::from_millis(1500).since(Timestamp::from_millis(500)), Duration::from_secs(1));
    }

    #[test]
    fn a_text_that_is_no_time_is_refused() {
        for text in
            ["", "now", "2026-01-01", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00+01:00", "1969-12-31T23:59:59Z"]
        {
            assert_eq!(text.parse::<Timestamp>(), Err(InvalidTimestamp), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_time_reads_back(millis in 0..=Timestamp::MAX.as_millis()) {
            let time = Timestamp::from_millis(millis);
            prop_assert_eq!(time.to_string().parse(), Ok(time));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9]{0,5}[-0-9T:.Zé ]{0,30}") {
            let _ = text.parse::<Timestamp>();
        }
    }
}
