//! Strings, split anywhere.

use super::{Problem, error::Fault};

/// Where in a string the reader is, after its opening quote.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum StringState {
    /// Among plain characters.
    #[default]
    Plain,
    /// After a backslash.
    Escape,
    /// Within `\uXXXX`: how many digits are known and what they say.
    Hex { digits: u8, unit: u32, high: Option<u32> },
    /// After the first half of a surrogate pair, where the backslash of the second belongs.
    Low { high: u32 },
    /// After that backslash.
    LowEscape { high: u32 },
}

/// How far a string was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// To the end of what is known.
    On,
    /// Up to here, behind its closing quote.
    Closed(usize),
}

impl StringState {
    /// Reads on from an offset, and adds the characters that are certain to `content`, where somebody wants them.
    pub(super) fn read(&mut self, text: &str, mut at: usize, mut content: Option<&mut String>) -> Result<Read, Fault> {
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            if matches!(self, Self::Plain) {
                let plain = rest.bytes().position(is_special).unwrap_or(rest.len());
                if let Some(content) = &mut content {
                    content.push_str(rest.get(..plain).unwrap_or_default());
                }
                at += plain;
                match rest.as_bytes().get(plain) {
                    None => break,
                    Some(b'"') => return Ok(Read::Closed(at + 1)),
                    Some(b'\\') => *self = Self::Escape,
                    Some(_) => return Err(Problem::ControlCharacter.at(at)),
                }
            } else {
                let byte = rest.bytes().next().unwrap_or_default();
                let (next, character) = self.escaped(byte).map_err(|problem| problem.at(at))?;
                if let (Some(content), Some(character)) = (&mut content, character) {
                    content.push(character);
                }
                *self = next;
            }
            at += 1;
        }
        Ok(Read::On)
    }

    /// Takes a byte of an escape; gives the character that is complete with it.
    fn escaped(self, byte: u8) -> Result<(Self, Option<char>), Problem> {
        let next = match self {
            Self::Escape if byte == b'u' => Self::Hex { digits: 0, unit: 0, high: None },
            Self::Escape => return Ok((Self::Plain, Some(plain_escape(byte).ok_or(Problem::Escape)?))),
            Self::Hex { digits, unit, high } => {
                let digit = char::from(byte).to_digit(16).ok_or(Problem::Escape)?;
                return with_digit(digits + 1, unit << 4 | digit, high);
            }
            Self::Low { high } if byte == b'\\' => Self::LowEscape { high },
            Self::LowEscape { high } if byte == b'u' => Self::Hex { digits: 0, unit: 0, high: Some(high) },
            Self::Low { .. } | Self::LowEscape { .. } => return Err(Problem::Surrogate),
            Self::Plain => Self::Plain,
        };
        Ok((next, None))
    }
}

/// Where `\uXXXX` is after a digit.
fn with_digit(digits: u8, unit: u32, high: Option<u32>) -> Result<(StringState, Option<char>), Problem> {
    if digits < 4 {
        return Ok((StringState::Hex { digits, unit, high }, None));
    }
    let code = match (high, unit) {
        (None, 0xd800..=0xdbff) => return Ok((StringState::Low { high: unit }, None)),
        (Some(high), 0xdc00..=0xdfff) => 0x1_0000 + ((high - 0xd800) << 10) + (unit - 0xdc00),
        (Some(_), _) => return Err(Problem::Surrogate),
        (None, _) => unit,
    };
    Ok((StringState::Plain, Some(char::from_u32(code).ok_or(Problem::Surrogate)?)))
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..=0x1f)
}

fn plain_escape(byte: u8) -> Option<char> {
    Some(match byte {
        b'"' | b'\\' | b'/' => char::from(byte),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        _ => return None,
    })
}
