//! The names of keys, and the digests that they are made of.

use std::borrow::Cow;

use kortyx_protocol::{ResumeToken, SessionId};
use kortyx_store::{Placement, Scalar, WorkflowPin};
use sha2::{Digest as _, Sha256};

use crate::client::sha1;

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
        format!("{}:{{{}}}:{digest}:s", self.prefix, part_of_digest(digest))
    }

    /// What [`session`](Self::session) and runs are named by, for any digest.
    pub(crate) fn any_repairable(&self) -> String {
        format!("{}:{{*}}:{}:[rs]*", self.prefix, "?".repeat(DIGEST))
    }

    /// What runs are named by, of the session with this digest or of any.
    pub(crate) fn runs_of(&self, digest: Option<&str>) -> String {
        let (part, digest) = match digest {
            Some(digest) => (part_of_digest(digest).to_owned(), digest.to_owned()),
            None => ("*".to_owned(), "?".repeat(DIGEST)),
        };
        format!("{}:{{{part}}}:{digest}:r:*", self.prefix)
    }

    /// The digest in a session's key or a run's, and the run's id.
    pub(crate) fn repairable<'k>(&self, key: &'k str) -> Option<(&'k str, Option<&'k str>)> {
        match self.in_session(key)? {
            (digest, "s") => Some((digest, None)),
            (digest, rest) => Some((digest, Some(rest.strip_prefix("r:")?))),
        }
    }

    /// The digest in a key of a session, and what follows it.
    pub(crate) fn in_session<'k>(&self, key: &'k str) -> Option<(&'k str, &'k str)> {
        let rest = key.strip_prefix(self.prefix.as_str())?.strip_prefix(":{")?;
        let (part, rest) = rest.split_once("}:")?;
        rest.split_once(':').filter(|(digest, _)| is_digest(digest) && digest.starts_with(part))
    }

    /// What the checkpoints of sessions are named by, for any digest.
    pub(crate) fn turns(&self) -> String {
        format!("{}:{{*}}:{}:t", self.prefix, "?".repeat(DIGEST))
    }

    /// What runs and the checkpoints of sessions are named by, for any digest.
    pub(crate) fn countable(&self) -> String {
        format!("{}:{{*}}:{}:[rt]*", self.prefix, "?".repeat(DIGEST))
    }

    /// Where an id's place is said: in a slot that the id tells.
    pub(crate) fn locator(&self, kind: Kind, id: &str) -> String {
        format!("{}:{{{}}}:l:{}:{id}", self.prefix, part_of_id(id), kind.letter())
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

/// How many hex digits a session's digest has.
pub(crate) const DIGEST: usize = 32;
/// How many hex digits a part has: the hash tag of all keys in it.
const PART: usize = 3;

pub(crate) fn is_digest(text: &str) -> bool {
    text.len() == DIGEST && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The part that a session lives in, as a hash tag.
pub(crate) fn part_of_digest(digest: &str) -> &str {
    digest.get(..PART).unwrap_or(digest)
}

/// The part that an id says: its last digits, or else those of its hash.
pub(crate) fn part_of_id(id: &str) -> Cow<'_, str> {
    let digits = id.get(id.len().saturating_sub(PART)..).filter(|digits| digits.len() == PART);
    match digits.filter(|digits| digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))) {
        Some(digits) => digits.into(),
        None => sha1(id).get(..PART).unwrap_or_default().to_owned().into(),
    }
}

/// The same for ids that are to say where this session lives.
pub(crate) fn placement(session_id: &SessionId) -> Option<Placement> {
    u16::from_str_radix(part_of_digest(&session_digest(session_id)), 16).ok().and_then(Placement::new)
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
    use kortyx_protocol::RunId;

    use super::*;
    use crate::client::slot;

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
        let digest = "0af3".repeat(8);
        assert_eq!(names.session(&digest), format!("app:{{0af}}:{digest}:s"));
        assert_eq!(names.repairable(&names.session(&digest)), Some((digest.as_str(), None)));
        let run = format!("app:{{0af}}:{digest}:r:a}}:s");
        assert_eq!(names.repairable(&run), Some((digest.as_str(), Some("a}:s"))));
        let others =
            [format!("other:{{0af}}:{digest}:s"), format!("app:{{0af}}:{digest}:o"), "app:{0af}:l:r:s".to_owned()];
        assert!(others.iter().all(|key| names.repairable(key).is_none()));
    }

    #[test]
    fn an_id_that_a_session_placed_has_its_locator_in_the_slot_of_the_session() {
        let names = Names::new("app".to_owned());
        for number in 0..100_u8 {
            let session_id = SessionId::new(format!("session-{number}")).unwrap();
            let id = RunId::from_random(placement(&session_id).unwrap().mark([number; 16]));
            let tag = |key: &str| key.split(['{', '}']).nth(1).map(str::to_owned);
            let home = tag(&names.session(&session_digest(&session_id)));
            assert_eq!(tag(&names.locator(Kind::Run, id.as_str())), home, "{id}");
        }
    }

    #[test]
    fn parts_spread_evenly_over_masters_as_the_documentation_says() {
        let names = Names::new("app".to_owned());
        for (masters, fewest, most) in [(3, 1361, 1368), (32, 126, 130)] {
            let mut parts = vec![0; masters];
            for part in 0..Placement::COUNT {
                let slot = slot(&names.session(&format!("{part:03x}{}", "0".repeat(DIGEST - PART))));
                parts[usize::from(slot) * masters / 16_384] += 1;
            }
            assert_eq!((parts.iter().min(), parts.iter().max()), (Some(&fewest), Some(&most)), "{masters} masters");
        }
    }

    #[test]
    fn any_id_says_a_part_and_always_the_same() {
        assert_eq!(part_of_id("run-00f"), "00f");
        for id in ["run-17", "F0A", "7", "é", "run-00F", "☃☃☃"] {
            let part = part_of_id(id).into_owned();
            assert!(part.len() == PART && part.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}: {part}");
            assert_eq!(part, sha1(id)[..3], "{id}");
        }
    }
}
