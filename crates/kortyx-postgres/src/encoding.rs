//! How texts and context values are written, so that the database takes all of them and compares them exactly.

use std::{borrow::Cow, collections::BTreeMap, fmt::Write as _};

use kortyx_store::{Scalar, WorkflowPin};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Stands before an escaped character.
const ESCAPE: char = '\u{10}';

/// A text as stored: Postgres takes no NUL, so it is escaped; other texts stay as they are.
pub(crate) fn encode(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => encoded.extend([ESCAPE, '0']),
            ESCAPE => encoded.extend([ESCAPE, 'e']),
            other => encoded.push(other),
        }
    }
    Cow::Owned(encoded)
}

/// The text that [`encode`] wrote.
pub(crate) fn decode(text: String) -> String {
    if !text.contains(ESCAPE) {
        return text;
    }
    let mut decoded = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        decoded.push(match character {
            ESCAPE if characters.next() == Some('0') => '\0',
            other => other,
        });
    }
    decoded
}

/// A context as a JSON object of texts that tell types apart.
pub(crate) fn encode_context(context: &BTreeMap<String, Scalar>) -> Value {
    let entries = context.iter().map(|(key, value)| (encode(key).into_owned(), encode(&scalar_text(value)).into()));
    Value::Object(entries.collect::<Map<_, _>>())
}

/// The context that [`encode_context`] wrote; `None` when it is none.
pub(crate) fn decode_context(stored: BTreeMap<String, String>) -> Option<BTreeMap<String, Scalar>> {
    stored.into_iter().map(|(key, value)| Some((decode(key), scalar(&decode(value))?))).collect()
}

fn scalar_text(value: &Scalar) -> String {
    match value {
        Scalar::Bool(value) => format!("b:{value}"),
        Scalar::Int(value) => format!("i:{value}"),
        Scalar::Text(value) => format!("t:{value}"),
    }
}

fn scalar(encoded: &str) -> Option<Scalar> {
    let (kind, value) = encoded.split_once(':')?;
    match kind {
        "b" => value.parse().ok().map(Scalar::Bool),
        "i" => value.parse().ok().map(Scalar::Int),
        "t" => Some(Scalar::Text(value.into())),
        _ => None,
    }
}

/// What a definition is found by.
pub(crate) fn pin_digest(pin: &WorkflowPin) -> String {
    digest(&[&pin.id, &pin.version, &pin.fingerprint])
}

/// What the questions of a context's entry are found by.
pub(crate) fn pair_digest(key: &str, value: &Scalar) -> String {
    digest(&[key, &scalar_text(value)])
}

/// The first half of a SHA-256 over texts and their lengths, written as a UUID: of a fixed size, however long the texts.
fn digest(texts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text.as_bytes());
    }
    let mut text = hex(&hasher.finalize());
    text.truncate(32);
    text
}

/// The SHA-256 of a secret, as hex.
pub(crate) fn secret_digest(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

/// Bytes as lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    let (words, rest) = bytes.as_chunks::<16>();
    for word in words {
        let _ = write!(text, "{:032x}", u128::from_be_bytes(*word));
    }
    for byte in rest {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_reads_back_and_holds_no_nul_meanwhile() {
        for text in ["", "plain", "\0", "a\0b\0", "\u{10}", "\u{10}0", "\u{10}\u{10}e\0", "😀\0é"] {
            let encoded = encode(text);
            assert!(!encoded.contains('\0'));
            assert_eq!(decode(encoded.into_owned()), text);
        }
        assert!(matches!(encode("it's \\ \"plain\" %"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_context_keeps_its_types() {
        let context = BTreeMap::from([
            ("a\0".to_owned(), Scalar::Text("b:true\0".into())),
            ("b".to_owned(), Scalar::Int(i64::MIN)),
            ("c".to_owned(), Scalar::Bool(false)),
        ]);
        let stored = serde_json::from_value(encode_context(&context)).unwrap();
        assert_eq!(decode_context(stored), Some(context));
        assert_eq!(decode_context(BTreeMap::from([("a".to_owned(), "x:1".to_owned())])), None);
    }

    #[test]
    fn bytes_of_any_number_are_written_as_hex() {
        let bytes: Vec<u8> = (0..=255).collect();
        for length in [0, 1, 15, 16, 17, 255, 256] {
            let expected: Vec<String> = bytes[..length].iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex(&bytes[..length]), expected.concat());
        }
    }

    #[test]
    fn digests_tell_apart_what_only_differs_in_where_a_text_ends() {
        let digests = [
            pair_digest("ab", &Scalar::Text("c".into())),
            pair_digest("a", &Scalar::Text("bc".into())),
            pair_digest("a", &Scalar::Int(1)),
            pair_digest("a", &Scalar::Text("1".into())),
        ];
        assert!(digests.iter().enumerate().all(|(i, digest)| !digests[..i].contains(digest)));
        assert!(digests.iter().all(|digest| digest.len() == 32));
    }
}
