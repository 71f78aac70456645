//! The names of keys, and the digests that they are made of.

use kortyx_protocol::{ResumeToken, SessionId};
use kortyx_store::{Scalar, WorkflowPin};
use sha2::{Digest as _, Sha256};

/// Which ids a locator is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Run,
    Question,
    Checkpoint,
}

impl Kind {
    /// As keys name it.
    pub(crate) fn letter(self) -> &'static str {
        match self {
            Self::Run => "r",
            Self::Question => "q",
            Self::Checkpoint => "c",
        }
    }

    /// As messages name it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Question => "question",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// Key names under one prefix.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    prefix: String,
}

impl Names {
    pub(crate) fn new(prefix: String) -> Self {
        Self { prefix }
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The hash of the session with this digest; its tag is that of every key of the session.
    pub(crate) fn session(&self, digest: &str) -> String {
        format!("{{{}:s:{digest}}}:s", self.prefix)
    }

    /// What [`session`](Self::session) and runs are named by, for any digest.
    pub(crate) fn any_repairable(&self) -> String {
        format!("{{{}:s:*}}:[rs]*", self.prefix)
    }

    /// The digest in a session's key or a run's, and the run's id.
    pub(crate) fn repairable<'k>(&self, key: &'k str) -> Option<(&'k str, Option<&'k str>)> {
        let rest = key.strip_prefix('{')?.strip_prefix(self.prefix.as_str())?.strip_prefix(":s:")?;
        let (digest, rest) = rest.split_once("}:")?;
        match rest {
            "s" => Some((digest, None)),
            _ => Some((digest, Some(rest.strip_prefix("r:")?))),
        }
    }

    pub(crate) fn locator(&self, kind: Kind, id: &str) -> String {
        format!("{}:l:{}:{id}", self.prefix, kind.letter())
    }

    pub(crate) fn index(&self, name: &str) -> String {
        format!("{{{}:i:{name}}}", self.prefix)
    }

    pub(crate) fn signals(&self) -> String {
        format!("{}:signals", self.prefix)
    }

    pub(crate) fn schema(&self) -> String {
        format!("{}:schema", self.prefix)
    }
}

/// 16 bytes that stand for these texts, in their order.
fn hash(texts: &[&str]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(text.as_bytes());
    }
    let mut half = [0; 16];
    half.iter_mut().zip(hash.finalize()).for_each(|(half, byte)| *half = byte);
    half
}

/// The same as 32 hex digits.
fn digest(texts: &[&str]) -> String {
    hex(&hash(texts))
}

/// Lower-case hex of these bytes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// What scripts compare a token by.
pub(crate) fn token_digest(token: &ResumeToken) -> [u8; 16] {
    hash(&["token", token.expose()])
}

pub(crate) fn session_digest(session_id: &SessionId) -> String {
    digest(&[session_id.as_str()])
}

pub(crate) fn pin_digest(pin: &WorkflowPin) -> String {
    digest(&[&pin.id, &pin.version, &pin.fingerprint])
}

/// The digest of a context pair.
pub(crate) fn pair_digest(key: &str, value: &Scalar) -> String {
    digest(&[key, &encode_scalar(value)])
}

/// A context value as text that says its type.
pub(crate) fn encode_scalar(value: &Scalar) -> String {
    match value {
        Scalar::Bool(value) => format!("b{value}"),
        Scalar::Int(value) => format!("i{value}"),
        Scalar::Text(value) => format!("t{value}"),
    }
}

/// What [`encode_scalar`] gave.
pub(crate) fn decode_scalar(text: &str) -> Option<Scalar> {
    let (kind, value) = text.split_at_checked(1)?;
    match kind {
        "b" => value.parse().ok().map(Scalar::Bool),
        "i" => value.parse().ok().map(Scalar::Int),
        "t" => Some(Scalar::Text(value.into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_of_different_types_have_different_texts_and_come_back() {
        let all = [Scalar::Bool(true), Scalar::Int(1), Scalar::Text("1".into()), Scalar::Text("".into())];
        let texts: std::collections::BTreeSet<_> = all.iter().map(encode_scalar).collect();
        assert_eq!(texts.len(), all.len());
        for value in all {
            assert_eq!(decode_scalar(&encode_scalar(&value)), Some(value));
        }
        for text in ["", "x", "b1", "i1.5", "é"] {
            assert_eq!(decode_scalar(text), None, "{text}");
        }
    }

    #[test]
    fn a_digest_tells_where_one_text_ends_and_the_next_begins() {
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
        assert_eq!(digest(&["a"]).len(), 32);
    }

    #[test]
    fn the_key_of_a_session_says_its_digest() {
        let names = Names::new("app".to_owned());
        assert_eq!(names.session("0af"), "{app:s:0af}:s");
        assert_eq!(names.repairable("{app:s:0af}:s"), Some(("0af", None)));
        assert_eq!(names.repairable("{app:s:0af}:r:a}:s"), Some(("0af", Some("a}:s"))));
        assert_eq!((names.repairable("{other:s:0af}:s"), names.repairable("{app:s:0af}:o")), (None, None));
    }
}
