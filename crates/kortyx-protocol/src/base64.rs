//! base64url without padding (RFC 4648, section 5), for tokens.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The text of these bytes.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..=group.len() {
            let six = bits >> (18 - 6 * place) & 0x3f;
            text.extend(usize::try_from(six).ok().and_then(|six| ALPHABET.get(six)).map(|byte| char::from(*byte)));
        }
    }
    text
}

/// The bytes of this text; `None` unless it is exactly what [`encode`] makes.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.as_bytes().chunks(4) {
        let mut bits = 0;
        for byte in group {
            bits = bits << 6 | value(*byte)?;
        }
        let [_, a, b, c] = (bits << (6 * (4 - group.len()))).to_be_bytes();
        bytes.extend([a, b, c].into_iter().take(group.len().saturating_sub(1)));
    }
    (encode(&bytes) == text).then_some(bytes)
}

fn value(byte: u8) -> Option<u32> {
    let (first, offset) = match byte {
        b'A'..=b'Z' => (b'A', 0),
        b'a'..=b'z' => (b'a', 26),
        b'0'..=b'9' => (b'0', 52),
        b'-' => return Some(62),
        b'_' => return Some(63),
        _ => return None,
    };
    Some(u32::from(byte - first) + offset)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_vectors_of_rfc_4648_hold() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), bytes.as_bytes());
        }
    }

    #[test]
    fn a_text_that_encode_does_not_make_is_refused() {
        for text in ["Z", "Zh", "Zg==", "Zm9+", "Zm9/", "é", "Zm 9"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn bytes_survive(bytes: Vec<u8>) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }

        #[test]
        fn any_text_decodes_or_is_refused(text: String) {
            if let Some(bytes) = decode(&text) {
                prop_assert_eq!(encode(&bytes), text);
            }
        }
    }
}
