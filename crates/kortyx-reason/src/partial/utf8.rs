//! Characters out of bytes that are split anywhere.

use super::{Problem, error::Fault};

/// Holds a character back until its last byte arrives.
#[derive(Debug, Default)]
pub(super) struct Utf8 {
    /// The bytes of a character that began: at most three between pushes.
    held: Vec<u8>,
}

impl Utf8 {
    /// Adds the characters that are complete to a text. An error comes after all that is right before it.
    pub(super) fn push(&mut self, mut bytes: &[u8], text: &mut String) -> Result<(), Fault> {
        while !self.held.is_empty() {
            let Some((first, rest)) = bytes.split_first() else { return Ok(()) };
            self.held.push(*first);
            bytes = rest;
            match str::from_utf8(&self.held) {
                Ok(character) => {
                    text.push_str(character);
                    self.held.clear();
                }
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(Problem::NotUtf8.at(text.len())),
            }
        }
        let Some(chunk) = bytes.utf8_chunks().next() else { return Ok(()) };
        text.push_str(chunk.valid());
        let is_cut = chunk.valid().len() + chunk.invalid().len() == bytes.len()
            && str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
        if is_cut {
            self.held.extend_from_slice(chunk.invalid());
        } else if !chunk.invalid().is_empty() {
            return Err(Problem::NotUtf8.at(text.len()));
        }
        Ok(())
    }

    /// Whether a character began and did not end.
    pub(super) fn is_within(&self) -> bool {
        !self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of bytes in pieces: the text, and where it is wrong.
    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (String, Option<usize>, bool) {
        let (mut utf8, mut text) = (Utf8::default(), String::new());
        for piece in pieces {
            if let Err(fault) = utf8.push(piece, &mut text) {
                return (text, Some(fault.offset), false);
            }
        }
        (text, None, utf8.is_within())
    }

    #[test]
    fn any_split_gives_the_same_characters() {
        for bytes in
            ["aé€😀z".as_bytes(), b"a\xc3(", b"\xe2\x82", b"\xf0\x9f\x98", b"\x80", b"ab\xffcd", b"\xed\xa0\x80", b""]
        {
            let whole = read([bytes]);
            assert_eq!(read(bytes.chunks(1)), whole, "{bytes:?}");
            for at in 0..=bytes.len() {
                let (left, right) = bytes.split_at(at);
                assert_eq!(read([left, right]), whole, "{bytes:?} at {at}");
            }
        }
    }

    #[test]
    fn a_wrong_byte_is_found_where_it_is() {
        assert_eq!(read([&b"ab\xffcd"[..]]), ("ab".to_owned(), Some(2), false));
        assert_eq!(read([&b"a\xe2\x82"[..]]), ("a".to_owned(), None, true));
    }
}
