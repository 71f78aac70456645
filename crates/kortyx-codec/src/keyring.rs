//! Keys, by id.

use std::{collections::BTreeMap, fmt};

use aes_gcm::{
    Aes256Gcm, KeyInit as _, Nonce,
    aead::{Aead as _, Payload},
};

use crate::CodecError;

/// The length of a nonce: 96 bits, as NIST SP 800-38D recommends for GCM.
pub(crate) const NONCE: usize = 12;
const KEY: usize = 32;
/// The id travels with every payload.
const LONGEST_ID: usize = 64;

/// A key of 256 bits. Its bytes never leave it.
pub struct Key(Box<Aes256Gcm>);

/// Keys by id: one encrypts, all decrypt.
///
/// To rotate, add a new key as the current one and keep the old ones until nothing is left that they encrypted. GCM with
/// random nonces is sound for about 4 billion payloads a key (NIST SP 800-38D, section 8.3); rotate long before that.
pub struct Keyring {
    current: String,
    keys: BTreeMap<String, Key>,
}

/// Why a key or a keyring is refused. Never shows the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A key is not 64 hexadecimal digits.
    #[error("the key `{0}` is not 64 hexadecimal digits (32 bytes)")]
    Malformed(String),
    /// An id is empty, longer than 64 bytes or holds something else than letters, digits, `-`, `_` and `.`.
    #[error("`{0}` is no key id: use 1 to 64 letters, digits, `-`, `_` and `.`")]
    Id(String),
    /// An id names two keys.
    #[error("the key id `{0}` occurs twice")]
    Twice(String),
    /// There is no key.
    #[error("there is no key: write `id:key`, the current one first, others after commas")]
    Empty,
}

impl Key {
    /// The key with these bytes.
    pub fn new(bytes: &[u8; KEY]) -> Self {
        Self(Box::new(Aes256Gcm::new(bytes.into())))
    }

    fn parse(id: &str, hex: &str) -> Result<Self, KeyError> {
        let malformed = || KeyError::Malformed(id.to_owned());
        let digits: Vec<u8> = hex.bytes().collect();
        let mut bytes = [0; KEY];
        if digits.len() != KEY * 2 {
            return Err(malformed());
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit =
                |at: usize| pair.get(at).and_then(|digit| char::from(*digit).to_digit(16)).ok_or_else(malformed);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).map_err(|_| malformed())?;
        }
        Ok(Self::new(&bytes))
    }
}

impl Keyring {
    /// A keyring with the key that encrypts.
    pub fn new(id: impl Into<String>, key: Key) -> Result<Self, KeyError> {
        let current = id.into();
        check_id(&current)?;
        Ok(Self { keys: BTreeMap::from([(current.clone(), key)]), current })
    }

    /// Adds a key that only decrypts.
    pub fn with_old(mut self, id: impl Into<String>, key: Key) -> Result<Self, KeyError> {
        let id = id.into();
        check_id(&id)?;
        if self.keys.contains_key(&id) {
            return Err(KeyError::Twice(id));
        }
        self.keys.insert(id, key);
        Ok(self)
    }

    /// Reads `id:key` with 64 hexadecimal digits for the key; the current one first, old ones after commas. For a secret that
    /// comes from the environment.
    ///
    /// ```
    /// use kortyx_codec::Keyring;
    ///
    /// let (new, old) = ("1f".repeat(32), "e0".repeat(32));
    /// assert!(Keyring::parse(&format!("2026-11:{new}, 2025-01:{old}")).is_ok());
    /// assert!(Keyring::parse("2026-11:too-short").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut ring: Option<Self> = None;
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (id, hex) = part.split_once(':').ok_or(KeyError::Empty)?;
            let key = Key::parse(id, hex)?;
            ring = Some(match ring {
                None => Self::new(id, key)?,
                Some(ring) => ring.with_old(id, key)?,
            });
        }
        ring.ok_or(KeyError::Empty)
    }

    pub(crate) fn current(&self) -> &str {
        &self.current
    }

    /// Encrypts with the current key; the nonce comes first.
    pub(crate) fn encrypt(&self, plain: &[u8], bound_to: &[u8]) -> Result<Vec<u8>, CodecError> {
        let key = self.keys.get(&self.current).ok_or_else(|| CodecError::UnknownKey(self.current.clone()))?;
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(|error| CodecError::Encode(format!("no random bytes: {error}")))?;
        let sealed = key.0.encrypt(&Nonce::from(nonce), Payload { msg: plain, aad: bound_to });
        let sealed = sealed.map_err(|_| CodecError::Encode("it is too large to encrypt".to_owned()))?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Decrypts what [`encrypt`](Self::encrypt) made with the key of this id.
    pub(crate) fn decrypt(&self, id: &str, sealed: &[u8], bound_to: &[u8]) -> Result<Vec<u8>, CodecError> {
        let key = self.keys.get(id).ok_or_else(|| CodecError::UnknownKey(id.to_owned()))?;
        let undecryptable = || CodecError::Undecryptable(id.to_owned());
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE>().ok_or_else(undecryptable)?;
        key.0.decrypt(&Nonce::from(*nonce), Payload { msg: sealed, aad: bound_to }).map_err(|_| undecryptable())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring").field("current", &self.current).field("ids", &self.keys.keys()).finish()
    }
}

fn check_id(id: &str) -> Result<(), KeyError> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if id.is_empty() || id.len() > LONGEST_ID || !id.chars().all(is_fine) {
        return Err(KeyError::Id(id.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> Key {
        Key::new(&[byte; KEY])
    }

    #[test]
    fn what_one_key_encrypts_only_that_key_decrypts() {
        let ring = Keyring::new("a", key(1)).unwrap();
        let sealed = ring.encrypt(b"text", b"bound").unwrap();
        assert_eq!(ring.decrypt("a", &sealed, b"bound").unwrap(), b"text");
        let other = Keyring::new("a", key(2)).unwrap();
        assert_eq!(other.decrypt("a", &sealed, b"bound"), Err(CodecError::Undecryptable("a".into())));
        assert_eq!(ring.decrypt("b", &sealed, b"bound"), Err(CodecError::UnknownKey("b".into())));
        assert_eq!(ring.decrypt("a", &sealed, b"other"), Err(CodecError::Undecryptable("a".into())));
        assert_eq!(ring.decrypt("a", b"short", b"bound"), Err(CodecError::Undecryptable("a".into())));
    }

    #[test]
    fn after_a_rotation_the_old_key_still_decrypts_and_the_new_one_encrypts() {
        let sealed = Keyring::new("old", key(1)).unwrap().encrypt(b"text", b"").unwrap();
        let ring = Keyring::new("new", key(2)).unwrap().with_old("old", key(1)).unwrap();
        assert_eq!(ring.decrypt("old", &sealed, b"").unwrap(), b"text");
        assert_eq!(ring.current(), "new");
    }

    #[test]
    fn a_malformed_keyring_is_refused_without_showing_a_key() {
        let hex = "ab".repeat(KEY);
        let refused = |text: &str| Keyring::parse(text).unwrap_err();
        assert_eq!(refused(""), KeyError::Empty);
        assert_eq!(refused(&hex), KeyError::Empty);
        assert_eq!(refused("a:xyz"), KeyError::Malformed("a".into()));
        assert_eq!(refused(&format!("a:{}é", "0".repeat(62))), KeyError::Malformed("a".into()));
        assert_eq!(refused(&format!("a b:{hex}")), KeyError::Id("a b".into()));
        assert_eq!(refused(&format!("a:{hex},a:{hex}")), KeyError::Twice("a".into()));
        let ring = Keyring::parse(&format!("new:{hex},old:{hex}")).unwrap();
        assert!(!format!("{ring:?} {:?}", key(0xab)).contains("abab"));
    }
}
