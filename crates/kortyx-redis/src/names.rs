//! The names of keys, and the digests that they are made of.

use std::fmt::Write as _;

use kortyx_protocol::SessionId;
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

    /// What [`session`](Self::session) gives, for any digest.
    pub(crate) fn any_session(&self) -> String {
        self.session("*")
    }

    /// The digest in a session's key.
    pub(crate) fn digest_of<'k>(&self, key: &'k str) -> Option<&'k str> {
        key.strip_prefix('{')?.strip_prefix(self.prefix.as_str())?.strip_prefix(":s:")?.strip_suffix("}:s")
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

/// 32 hex digits that stand for these texts, in their order.
fn digest(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(text.as_bytes());
    }
    hex(hash.finalize().iter().take(16))
}

/// Lower-case hex of these bytes.
pub(crate) fn hex<'b>(bytes: impl IntoIterator<Item = &'b u8>) -> String {
    bytes.into_iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
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
        assert_eq!(names.digest_of("{app:s:0af}:s"), Some("0af"));
        assert_eq!(names.digest_of("{other:s:0af}:s"), None);
    }
}
