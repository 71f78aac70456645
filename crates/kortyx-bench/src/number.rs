//! Numbers for people.

use serde::{Deserialize, Serialize};

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Unit {
    /// Nothing: a plain number.
    #[serde(rename = "")]
    None,
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
    /// Microseconds.
    #[serde(rename = "µs")]
    Micros,
    /// Times a second.
    #[serde(rename = "/s")]
    PerSecond,
}

impl Unit {
    fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Bytes => " B",
            Self::Micros => " µs",
            Self::PerSecond => "/s",
        }
    }

    /// A number with its unit, in about three digits or as a whole number with separators.
    pub(crate) fn format(self, number: f64) -> String {
        format!("{}{}", plain(number), self.suffix())
    }
}

/// A number in at least three digits.
pub(crate) fn plain(number: f64) -> String {
    let size = number.abs();
    let decimals = if size >= 100.0 || number.fract() == 0.0 {
        0
    } else if size >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{number:.decimals$}");
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), ""), |(whole, fraction)| (whole, fraction));
    let separator = if fraction.is_empty() { "" } else { "." };
    format!("{}{separator}{fraction}", grouped(whole))
}

/// A whole number's text in groups of three digits.
fn grouped(whole: &str) -> String {
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut text = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count as a number to calculate with.
#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

/// The size of something in memory as a number to calculate with.
pub(crate) fn float_of(size: usize) -> f64 {
    float(u64::try_from(size).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_shows_three_digits_or_all_of_its_whole_part() {
        for (number, text) in [
            (0.0, "0"),
            (3.0, "3"),
            (0.3049, "0.30"),
            (12.345, "12.3"),
            (123.45, "123"),
            (1_234.5, "1,234"),
            (80_000.0, "80,000"),
            (1_000_000.0, "1,000,000"),
            (-1_234_567.8, "-1,234,568"),
            (-123.0, "-123"),
        ] {
            assert_eq!(plain(number), text);
        }
    }

    #[test]
    fn a_unit_follows_its_number() {
        assert_eq!(Unit::PerSecond.format(50_000.0), "50,000/s");
        assert_eq!(Unit::Bytes.format(1_100.0), "1,100 B");
        assert_eq!(Unit::Micros.format(9.875), "9.88 µs");
        assert_eq!(Unit::None.format(0.0), "0");
    }
}
