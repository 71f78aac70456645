//! Points in time, as they are stored and sent.

use std::{error::Error, fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// A point in time with millisecond precision, from 1970 to the end of the year 9999.
///
/// Prints and travels as ISO 8601 in UTC: `2026-01-01T00:15:00.000Z`. Arithmetic saturates at both ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// The text is not an ISO 8601 time in UTC between 1970 and 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidTimestamp;

impl fmt::Display for InvalidTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time must look like 2026-01-01T00:15:00.000Z, in UTC, between 1970 and 9999")
    }
}

impl Error for InvalidTimestamp {}

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

/// Year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar.
///
/// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`, for days not before 1970.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// The inverse of [`date`], `days_from_civil` of the same source.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date(self.0 / DAY_MILLIS);
        let millis = self.0 % DAY_MILLIS;
        let (seconds, millis) = (millis / 1000, millis % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    /// Reads ISO 8601 in UTC, with or without a fraction of a second; its digits after the third are dropped.
    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        read(text).ok_or(InvalidTimestamp)
    }
}

fn read(text: &str) -> Option<Timestamp> {
    let (year, rest) = number(text, 4)?;
    let (month, rest) = number(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = number(rest.strip_prefix('-')?, 2)?;
    let (hour, rest) = number(rest.strip_prefix('T')?, 2)?;
    let (minute, rest) = number(rest.strip_prefix(':')?, 2)?;
    let (second, rest) = number(rest.strip_prefix(':')?, 2)?;
    let millis = fraction(rest.strip_suffix('Z')?)?;
    let days = days(year, month, day);
    let exists = year >= 1970 && date(days) == (year, month, day) && hour < 24 && minute < 60 && second < 60;
    exists.then_some(Timestamp(days * DAY_MILLIS + ((hour * 60 + minute) * 60 + second) * 1000 + millis))
}

/// The number in the first `digits` bytes, and the rest.
fn number(text: &str, digits: usize) -> Option<(i64, &str)> {
    let (number, rest) = text.split_at_checked(digits)?;
    let number = number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())??;
    Some((number, rest))
}

/// The milliseconds in `""` or `".123…"`.
fn fraction(text: &str) -> Option<i64> {
    if text.is_empty() {
        return Some(0);
    }
    let digits = text.strip_prefix('.').filter(|digits| !digits.is_empty())?;
    digits
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| digits.bytes().chain(*b"00").take(3).fold(0, |millis, digit| millis * 10 + i64::from(digit - b'0')))
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
        for text in [
            "",
            "now",
            "2026-01-01",
            "2026-13-01T00:00:00Z",
            "2026-01-01T00:00:00+01:00",
            "1969-12-31T23:59:59Z",
            "2026-02-29T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:60Z",
            "2026-01-01T00:00:00.Z",
            "+026-01-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "é26-01-01T00:00:00Z",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(InvalidTimestamp), "{text}");
        }
    }

    #[test]
    fn a_fraction_is_read_to_the_millisecond() {
        for (text, millis) in [("", 0), (".5", 500), (".05", 50), (".123", 123), (".123999999999", 123)] {
            let time: Timestamp = format!("1970-01-01T00:00:00{text}Z").parse().unwrap();
            assert_eq!(time.as_millis(), millis);
        }
    }

    #[test]
    fn leap_days_exist_where_they_should() {
        assert_eq!("2000-02-29T00:00:00Z".parse(), Ok(Timestamp::from_millis(951_782_400_000)));
        assert_eq!("2024-02-29T12:00:00Z".parse::<Timestamp>().unwrap().to_string(), "2024-02-29T12:00:00.000Z");
        assert_eq!("2100-02-29T00:00:00Z".parse::<Timestamp>(), Err(InvalidTimestamp));
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
