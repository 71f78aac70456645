//! The secret that answers a question.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{
    InvalidId, RequestId,
    base64::{decode, encode},
    ids::check,
};

/// The secret that answers a question.
///
/// Whoever holds it may answer, so it prints as `ResumeToken(…)`, cannot be compared with `==` and leaves the process
/// only through [`expose`](Self::expose) and serialization. Minted tokens are 64 characters: base64url of the 16 bytes of
/// the request's UUID and 32 secret bytes. Other non-blank texts of at most 512 bytes without control characters are
/// tokens too, of nobody.
#[derive(Clone)]
pub struct ResumeToken(Arc<str>);

impl ResumeToken {
    /// A token for the request whose id is [`RequestId::from_random`] of the same bytes.
    ///
    /// `secret` must come from the system's generator.
    pub fn mint(request: [u8; 16], secret: [u8; 32]) -> Self {
        let mut bytes = [0; 48];
        for (to, from) in bytes.iter_mut().zip(request.into_iter().chain(secret)) {
            *to = from;
        }
        Self(encode(&bytes).into())
    }

    /// A token that came from outside.
    pub fn parse(text: impl AsRef<str>) -> Result<Self, InvalidId> {
        check(text.as_ref())?;
        Ok(Self(text.as_ref().into()))
    }

    /// The secret itself, to send or to store. Never log it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The request that it was minted for, when it has the form of a minted token.
    pub fn request_id(&self) -> Option<RequestId> {
        let bytes: [u8; 48] = decode(&self.0)?.try_into().ok()?;
        let (request, _secret) = bytes.split_first_chunk::<16>()?;
        Some(RequestId::from_random(*request))
    }

    /// Whether both are the same secret; takes as long for a wrong one as for the right one of the same length.
    pub fn matches(&self, other: &Self) -> bool {
        let (a, b) = (self.0.as_bytes(), other.0.as_bytes());
        let difference = a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b));
        a.len() == b.len() && std::hint::black_box(difference) == 0
    }
}

impl fmt::Debug for ResumeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResumeToken(…)")
    }
}

impl Serialize for ResumeToken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ResumeToken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minted_token_names_its_request() {
        let token = ResumeToken::mint([9; 16], [200; 32]);
        assert_eq!(token.expose().len(), 64);
        assert!(token.expose().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'));
        assert_eq!(token.request_id(), Some(RequestId::from_random([9; 16])));
    }

    #[test]
    fn a_foreign_token_names_no_request() {
        for text in ["x", "not/base64+at=all", &"A".repeat(63), &"A".repeat(65), &"é".repeat(32), &"A".repeat(512)] {
            assert_eq!(ResumeToken::parse(text).unwrap().request_id(), None, "{text}");
        }
    }

    #[test]
    fn only_the_same_secret_matches() {
        let token = ResumeToken::mint([1; 16], [2; 32]);
        assert!(token.matches(&ResumeToken::parse(token.expose()).unwrap()));
        assert!(!token.matches(&ResumeToken::mint([1; 16], [3; 32])));
        assert!(!token.matches(&ResumeToken::parse(&token.expose()[..63]).unwrap()));
        assert!(!token.matches(&ResumeToken::parse(format!("{}A", token.expose())).unwrap()));
    }

    #[test]
    fn a_token_does_not_print() {
        assert_eq!(format!("{:?}", ResumeToken::mint([1; 16], [2; 32])), "ResumeToken(…)");
    }

    #[test]
    fn a_malformed_token_is_refused() {
        assert_eq!(ResumeToken::parse(" ").unwrap_err(), InvalidId::Blank);
        assert_eq!(ResumeToken::parse("a\u{7}").unwrap_err(), InvalidId::Control);
        assert_eq!(ResumeToken::parse("x".repeat(513)).unwrap_err(), InvalidId::TooLong);
        assert!(serde_json::from_str::<ResumeToken>("\"\"").is_err());
    }
}
