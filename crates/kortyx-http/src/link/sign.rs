//! Signing links, and reading what was signed.

use std::fmt::{self, Write as _};

use hmac::{Hmac, KeyInit as _, Mac as _};
use kortyx_protocol::{RequestId, Timestamp};
use sha2::Sha256;

use super::AnswerLink;

/// What is signed begins with this, so that a signature means nothing elsewhere.
const DOMAIN: &[u8] = b"kortyx answer link 1";

/// The shortest secret, in bytes: as long as what HMAC-SHA-256 makes (RFC 2104, section 3).
const SHORTEST: usize = 32;

/// A key that signs links, with the id that links name it by.
#[derive(Clone)]
pub struct LinkKey {
    id: String,
    secret: Vec<u8>,
}

/// Why something is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkKeyError {
    /// The id is not 1 to 32 ASCII letters, digits, `-` or `_`.
    Id,
    /// The secret is shorter than 32 bytes.
    Short,
}

impl fmt::Display for LinkKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Id => "a key's id is 1 to 32 ASCII letters, digits, `-` or `_`",
            Self::Short => "a key's secret has at least 32 bytes",
        })
    }
}

impl std::error::Error for LinkKeyError {}

/// What an address says, before its signature is checked.
pub(crate) struct Claim {
    pub(super) key: String,
    link: AnswerLink,
    signature: Vec<u8>,
}

impl LinkKey {
    /// A key of at least 32 random bytes.
    pub fn new(id: impl Into<String>, secret: impl Into<Vec<u8>>) -> Result<Self, LinkKeyError> {
        let (id, secret): (String, Vec<u8>) = (id.into(), secret.into());
        let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_');
        if id.is_empty() || id.len() > 32 || !id.bytes().all(is_plain) {
            return Err(LinkKeyError::Id);
        }
        if secret.len() < SHORTEST {
            return Err(LinkKeyError::Short);
        }
        Ok(Self { id, secret })
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The query of a signed link.
    pub(super) fn sign(&self, link: &AnswerLink) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if let Some(choice) = &link.choice {
            query.append_pair("choice", choice);
        }
        if let Some(actor) = &link.actor {
            query.append_pair("actor", actor);
        }
        query.append_pair("expires", &link.expires.as_millis().to_string());
        query.append_pair("key", &self.id);
        let signature = self.mac(link).map(|mac| mac.finalize().into_bytes());
        let mut hex = String::new();
        for byte in signature.iter().flatten() {
            let _ = write!(hex, "{byte:02x}");
        }
        query.append_pair("signature", &hex);
        query.finish()
    }

    /// The link, if this key signed it. Compares in constant time.
    pub(super) fn verify(&self, claim: Claim) -> Option<AnswerLink> {
        self.mac(&claim.link)?.verify_slice(&claim.signature).ok()?;
        Some(claim.link)
    }

    /// Every part with its length before it, so that no two links are signed alike.
    fn mac(&self, link: &AnswerLink) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).ok()?;
        let expires = link.expires.as_millis().to_string();
        let parts = [Some(self.id.as_str()), Some(link.request_id.as_str()), Some(&expires)];
        mac.update(DOMAIN);
        for part in parts.into_iter().chain([link.choice.as_deref(), link.actor.as_deref()]) {
            match part {
                None => mac.update(&[0]),
                Some(text) => {
                    mac.update(&[1]);
                    mac.update(&(text.len() as u64).to_be_bytes());
                    mac.update(text.as_bytes());
                }
            }
        }
        Some(mac)
    }
}

impl fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Claim {
    /// Reads a query; parts that no link has are ignored, since mail tools add some.
    pub(super) fn read(request_id: RequestId, query: &str) -> Option<Self> {
        let mut link = AnswerLink::new(request_id, Timestamp::from_millis(0));
        let (mut key, mut signature, mut expires) = (None, None, None);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let place = match name.as_ref() {
                "choice" => &mut link.choice,
                "actor" => &mut link.actor,
                "expires" => &mut expires,
                "key" => &mut key,
                "signature" => &mut signature,
                _ => continue,
            };
            if place.replace(value.into_owned()).is_some() {
                return None;
            }
        }
        link.expires = Timestamp::from_millis(expires?.parse().ok()?);
        Some(Self { key: key?, link, signature: unhex(&signature?)? })
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AnswerLinks;

    fn key(id: &str, byte: u8) -> LinkKey {
        LinkKey::new(id, [byte; 32]).unwrap()
    }

    fn link() -> AnswerLink {
        let id = RequestId::new("human-1").unwrap();
        AnswerLink::new(id, Timestamp::from_millis(7)).choice("a b&c").actor("ann@example.com")
    }

    fn read(links: &AnswerLinks, address: &str) -> Option<AnswerLink> {
        let (path, query) = address.split_once('?').unwrap();
        links.read(RequestId::new(path.rsplit('/').next().unwrap().to_owned()).unwrap(), query)
    }

    #[test]
    fn a_link_is_read_as_what_it_was_made_for_also_after_another_key_took_over() {
        let (old, new) = (key("old", 1), key("new", 2));
        let before = AnswerLinks::new("https://x/answers/", old.clone());
        let address = before.answer_link(&link());
        assert_eq!(read(&before, &address), Some(link()));
        assert_eq!(read(&before, &format!("{address}&utm_source=mail")), Some(link()));
        let after = AnswerLinks::new("https://x/answers", new.clone());
        assert_eq!(read(&after, &address), None);
        assert_eq!(read(&after.accepting(old), &address), Some(link()));
        assert_eq!(read(&AnswerLinks::new("x", key("old", 3)), &address), None, "another secret under the same id");
    }

    #[test]
    fn a_link_that_was_changed_is_none() {
        let links = AnswerLinks::new("https://x", key("k", 1));
        let address = links.answer_link(&link());
        for (from, to) in [
            ("human-1", "human-2"),
            ("choice=a", "choice=b"),
            ("choice=", "other="),
            ("expires=7", "expires=8"),
            ("actor=ann", "actor=bob"),
            ("key=k", "key=l"),
            ("signature=", "signature=00"),
            ("&signature", "&other"),
            ("choice=a", "choice=x&choice=a"),
        ] {
            let changed = address.replacen(from, to, 1);
            assert_ne!(changed, address);
            assert_eq!(read(&links, &changed), None, "{changed}");
        }
        let without = links.answer_link(&AnswerLink { choice: None, ..link() });
        assert_eq!(read(&links, &format!("{without}&choice=approve")), None);
    }

    #[test]
    fn a_key_has_a_plain_id_and_a_long_secret_that_does_not_print() {
        assert_eq!(LinkKey::new("", [0; 32]).unwrap_err(), LinkKeyError::Id);
        assert_eq!(LinkKey::new("a b", [0; 32]).unwrap_err(), LinkKeyError::Id);
        assert_eq!(LinkKey::new("k", [0; 31]).unwrap_err(), LinkKeyError::Short);
        assert_eq!(format!("{:?}", key("k", 65)), r#"LinkKey { id: "k", .. }"#);
    }
}
