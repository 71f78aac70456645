//! Numbers and the words `true`, `false` and `null`, split anywhere.

use std::ops::Range;

use super::{
    Problem,
    error::{Fault, unexpected},
};

/// Where in a number or word the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    /// In a word, of which this is still missing.
    Word(&'static str),
    /// In a number.
    Number(Number),
}

/// What a number has so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    Minus,
    Zero,
    Digits,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

/// How far a scalar was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// To the end of what is known.
    On,
    /// Up to here, where it ends.
    Ended(usize),
}

impl Scalar {
    /// The scalar that begins with this byte.
    pub(super) fn of(first: u8) -> Option<Self> {
        Some(match first {
            b't' => Self::Word("rue"),
            b'f' => Self::Word("alse"),
            b'n' => Self::Word("ull"),
            b'-' => Self::Number(Number::Minus),
            b'0' => Self::Number(Number::Zero),
            b'1'..=b'9' => Self::Number(Number::Digits),
            _ => return None,
        })
    }

    /// Reads on from an offset.
    pub(super) fn read(&mut self, text: &str, mut at: usize) -> Result<Read, Fault> {
        loop {
            let byte = text.as_bytes().get(at).copied();
            let next = match self {
                Self::Word("") => return Ok(Read::Ended(at)),
                Self::Word(missing) => {
                    let Some(byte) = byte else { return Ok(Read::On) };
                    missing.strip_prefix(char::from(byte)).map(Self::Word)
                }
                Self::Number(number) => {
                    let Some(byte) = byte else { return Ok(Read::On) };
                    match number.with(byte) {
                        None if number.may_end() => return Ok(Read::Ended(at)),
                        next => next.map(Self::Number),
                    }
                }
            };
            *self = next.ok_or_else(|| unexpected(text, at, self.expects()))?;
            at += 1;
        }
    }

    /// Whether it is complete when nothing follows.
    pub(super) fn may_end(self) -> bool {
        match self {
            Self::Word(missing) => missing.is_empty(),
            Self::Number(number) => number.may_end(),
        }
    }

    /// Refuses a number that a `Value` would round or cannot hold.
    pub(super) fn check(self, text: &str, range: Range<usize>) -> Result<(), Fault> {
        let start = range.start;
        let is_kept = matches!(self, Self::Word(_)) || text.get(range).is_some_and(is_exact);
        if is_kept { Ok(()) } else { Err(Problem::Inexact.at(start)) }
    }

    fn expects(self) -> &'static str {
        match self {
            Self::Word(_) => "`true`, `false` or `null`",
            Self::Number(_) => "a digit",
        }
    }
}

impl Number {
    fn with(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Minus, b'0') => Self::Zero,
            (Self::Minus, b'1'..=b'9') | (Self::Digits, b'0'..=b'9') => Self::Digits,
            (Self::Zero | Self::Digits, b'.') => Self::Point,
            (Self::Point | Self::Fraction, b'0'..=b'9') => Self::Fraction,
            (Self::Zero | Self::Digits | Self::Fraction, b'e' | b'E') => Self::Exponent,
            (Self::Exponent, b'+' | b'-') => Self::ExponentSign,
            (Self::Exponent | Self::ExponentSign | Self::ExponentDigits, b'0'..=b'9') => Self::ExponentDigits,
            _ => return None,
        })
    }

    fn may_end(self) -> bool {
        matches!(self, Self::Zero | Self::Digits | Self::Fraction | Self::ExponentDigits)
    }
}

fn is_exact(number: &str) -> bool {
    if number.contains(['.', 'e', 'E']) {
        return number.parse().is_ok_and(f64::is_finite);
    }
    number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok()
}
