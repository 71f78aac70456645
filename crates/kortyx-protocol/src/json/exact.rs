//! Finding integers that neither an `i64` nor a `u64` holds.

use super::JsonError;

/// The fewest digits of an integer that may not fit: `i64::MIN - 1` has 19.
const SUSPICIOUS_DIGITS: usize = 19;

/// Refuses integers outside `i64::MIN..=u64::MAX`. `text` is JSON.
pub(crate) fn refuse_inexact(text: &str) -> Result<(), JsonError> {
    if !has_long_digits(text.as_bytes()) {
        return Ok(());
    }
    let mut walk = Walk::new(text);
    while let Some(literal) = walk.next_number() {
        if !is_exact(literal) {
            let digits = literal.trim_start_matches('-').len();
            let range = "outside -9223372036854775808..=18446744073709551615 and would be rounded, send it as a string";
            return Err(JsonError::new(walk.path(), format!("integer of {digits} digits is {range}")));
        }
    }
    Ok(())
}

/// Whether there is a run of suspicious length, in or outside of strings. Looks at one byte of 19, mostly.
fn has_long_digits(bytes: &[u8]) -> bool {
    let mut at = SUSPICIOUS_DIGITS - 1;
    while let Some(byte) = bytes.get(at) {
        if byte.is_ascii_digit() {
            let digits = |byte: &&u8| byte.is_ascii_digit();
            let before = bytes.iter().take(at).rev().take_while(digits).count();
            let after = bytes.iter().skip(at).take_while(digits).count();
            if before + after >= SUSPICIOUS_DIGITS {
                return true;
            }
            at += after;
        }
        at += SUSPICIOUS_DIGITS;
    }
    false
}

fn is_exact(literal: &str) -> bool {
    literal.contains(['.', 'e', 'E']) || literal.parse::<i64>().is_ok() || literal.parse::<u64>().is_ok()
}

/// A container that the walk is in.
enum Frame<'a> {
    /// An object; `None` before a key was read.
    Object(Option<&'a str>),
    /// An array, at this index.
    Array(usize),
}

/// A walk through JSON text from number to number. Ends early, without harm, on what is not JSON.
struct Walk<'a> {
    rest: &'a str,
    frames: Vec<Frame<'a>>,
}

impl<'a> Walk<'a> {
    fn new(text: &'a str) -> Self {
        Self { rest: text, frames: Vec::new() }
    }

    /// Takes what lies before the first byte that `end` likes.
    fn take_until(&mut self, end: impl Fn(u8) -> bool) -> &'a str {
        let length = self.rest.bytes().position(end).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// Takes a string with its quotes, of which the first is next.
    fn take_string(&mut self) -> &'a str {
        let mut escaped = false;
        let closing = self.rest.bytes().skip(1).position(|byte| {
            let closes = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            closes
        });
        let length = closing.map_or(self.rest.len(), |length| length + 2);
        let (string, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        string
    }

    /// Where the walk is.
    fn path(&self) -> String {
        let mut path = String::new();
        for frame in &self.frames {
            path.push('/');
            match frame {
                Frame::Array(index) => path.push_str(&index.to_string()),
                Frame::Object(key) => {
                    let key: String = key.and_then(|key| serde_json::from_str(key).ok()).unwrap_or_default();
                    path.push_str(&key.replace('~', "~0").replace('/', "~1"));
                }
            }
        }
        path
    }

    /// Steps over a byte of structure.
    fn structure(&mut self, byte: u8) {
        match byte {
            b'{' => self.frames.push(Frame::Object(None)),
            b'[' => self.frames.push(Frame::Array(0)),
            b'}' | b']' => drop(self.frames.pop()),
            b',' => match self.frames.last_mut() {
                Some(Frame::Object(key)) => *key = None,
                Some(Frame::Array(index)) => *index += 1,
                None => {}
            },
            _ => {}
        }
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    /// Steps to the next number.
    fn next_number(&mut self) -> Option<&'a str> {
        loop {
            self.take_until(|byte| matches!(byte, b'{' | b'}' | b'[' | b']' | b',' | b'"' | b'-' | b'0'..=b'9'));
            match *self.rest.as_bytes().first()? {
                b'"' => {
                    let string = self.take_string();
                    if let Some(Frame::Object(key @ None)) = self.frames.last_mut() {
                        *key = Some(string);
                    }
                }
                b'-' | b'0'..=b'9' => {
                    let in_number = |byte: u8| matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E' | b'0'..=b'9');
                    return Some(self.take_until(|byte| !in_number(byte)));
                }
                byte => self.structure(byte),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(text: &str) -> Vec<(String, &str)> {
        let mut walk = Walk::new(text);
        std::iter::from_fn(|| walk.next_number().map(|literal| (walk.path(), literal))).collect()
    }

    #[test]
    fn a_walk_yields_every_number_with_its_path() {
        let text = r#" {"a" : -1.5e3, "\"b" :[ 2,{"~/":[[3] ,4]},"5" ], "c":{}, "":6}"#;
        let expected =
            [("/a", "-1.5e3"), ("/\"b/0", "2"), ("/\"b/1/~0~1/0/0", "3"), ("/\"b/1/~0~1/1", "4"), ("/", "6")];
        assert_eq!(numbers(text), expected.map(|(path, literal)| (path.to_owned(), literal)));
        assert_eq!(numbers("7"), [(String::new(), "7")]);
    }

    #[test]
    fn digits_in_strings_are_not_numbers() {
        let long = "9".repeat(40);
        assert!(refuse_inexact(&format!(r#"{{"{long}":"{long}","\\":"\"{long}"}}"#)).is_ok());
        assert!(refuse_inexact(&format!("[0.{long},{long}.0,1{long}e-40]")).is_ok());
    }

    #[test]
    fn a_deep_text_with_many_numbers_is_checked_in_no_time() {
        let (open, close) = ("[".repeat(200_000), "]".repeat(200_000));
        assert!(refuse_inexact(&format!("{open}{}1{close}", "1234567890123456789,".repeat(100_000))).is_ok());
    }

    proptest! {
        #[test]
        fn the_quick_look_misses_nothing(before in "[a0-9]{0,60}", digits in "[0-9]{19,60}", after in "[a0-9]{0,60}") {
            let text = format!("{before}{digits}{after}");
            prop_assert!(has_long_digits(text.as_bytes()));
        }

        #[test]
        fn the_quick_look_suspects_only_long_runs(text in "([0-9]{0,18}[a-z]){0,30}") {
            prop_assert!(!has_long_digits(text.as_bytes()));
        }

        #[test]
        fn a_walk_ends_on_any_text(text in "[\\[\\]{},:\"\\\\0-9eé -]{0,60}") {
            let _ = numbers(&text);
        }
    }
}
