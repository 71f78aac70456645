//! base64url without padding (RFC 4648, section 5), for tokens.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A bit that the value of no digit has.
const NO_DIGIT: u32 = 64;

/// The text of these bytes.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    let (groups, rest) = bytes.as_chunks::<3>();
    for [a, b, c] in groups {
        text.extend(digits([*a, *b, *c]));
    }
    match rest {
        [a] => text.extend(digits([*a, 0, 0]).into_iter().take(2)),
        [a, b] => text.extend(digits([*a, *b, 0]).into_iter().take(3)),
        _ => {}
    }
    // The alphabet is ASCII.
    String::from_utf8(text).unwrap_or_default()
}

fn digits([a, b, c]: [u8; 3]) -> [u8; 4] {
    let bits = u32::from_be_bytes([0, a, b, c]);
    [18, 12, 6, 0].map(|shift| ALPHABET.get((bits >> shift & 0x3f) as usize).copied().unwrap_or_default())
}

/// The bytes of this text; `None` unless it is exactly what [`encode`] makes.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (groups, rest) = text.as_bytes().as_chunks::<4>();
    for group in groups {
        let [_, a, b, c] = bits(*group)?.to_be_bytes();
        bytes.extend([a, b, c]);
    }
    // What the last digit holds beyond the last byte must be zero, as `encode` makes it.
    match *rest {
        [] => {}
        [a, b] => {
            let [_, a, 0, 0] = bits([a, b, b'A', b'A'])?.to_be_bytes() else { return None };
            bytes.push(a);
        }
        [a, b, c] => {
            let [_, a, b, 0] = bits([a, b, c, b'A'])?.to_be_bytes() else { return None };
            bytes.extend([a, b]);
        }
        _ => return None,
    }
    Some(bytes)
}

/// The 24 bits of four digits.
fn bits(digits: [u8; 4]) -> Option<u32> {
    let [a, b, c, d] = digits.map(value);
    ((a | b | c | d) < NO_DIGIT).then_some(a << 18 | b << 12 | c << 6 | d)
}

/// The value of a digit, or [`NO_DIGIT`].
fn value(byte: u8) -> u32 {
    let (first, offset) = match byte {
        b'A'..=b'Z' => (b'A', 0),
        b'a'..=b'z' => (b'a', 26),
        b'0'..=b'9' => (b'0', 52),
        b'-' => return 62,
        b'_' => return 63,
        _ => return NO_DIGIT,
    };
    u32::from(byte - first) + offset
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
