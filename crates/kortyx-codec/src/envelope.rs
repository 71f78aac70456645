//! The codec of this crate: payloads in an envelope that says how to open it.
//!
//! `C5 4B`, the form's version, flags; when encrypted: the length of the key's id, the id, the nonce, the ciphertext with its
//! tag. The header and the part are authenticated with the ciphertext. No JSON text begins with `C5 4B`, which is not UTF-8.

use bytes::Bytes;

use crate::Keyring;
use crate::{CodecError, Part, PayloadCodec};

const MAGIC: [u8; 2] = [0xC5, b'K'];
const VERSION: u8 = 1;
const COMPRESSED: u8 = 1;
const ENCRYPTED: u8 = 2;
/// Payloads above this many bytes are compressed: below, a frame saves little.
const COMPRESS_ABOVE: usize = 1024;
/// The largest payload, once decompressed: four times what stores take by default.
const LIMIT: usize = 64 << 20;
const LEVEL: i32 = 3;

/// Compresses and encrypts payloads, and reads what any of its configurations wrote.
///
/// ```
/// use kortyx_codec::{CodecStore, Envelope, Key, Keyring};
/// use kortyx_memory::MemoryStore;
///
/// # fn secret() -> [u8; 32] { [7; 32] }
/// let codec = Envelope::new().compress_above(512).encrypt(Keyring::new("2026-11", Key::new(&secret()))?);
/// let store = CodecStore::new(MemoryStore::new(), codec);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct Envelope {
    compress_above: Option<usize>,
    limit: usize,
    keyring: Option<Keyring>,
    reads_plain: bool,
}

impl Envelope {
    /// Compresses above 1 kB, and encrypts nothing.
    pub fn new() -> Self {
        Self { compress_above: Some(COMPRESS_ABOVE), limit: LIMIT, keyring: None, reads_plain: true }
    }

    /// Compresses payloads above this many bytes, when that makes them smaller.
    pub fn compress_above(mut self, bytes: usize) -> Self {
        self.compress_above = Some(bytes);
        self
    }

    /// Compresses nothing. What is compressed still reads.
    pub fn without_compression(mut self) -> Self {
        self.compress_above = None;
        self
    }

    /// Encrypts every payload with AES-256-GCM under the current key. From then on, payloads that are not encrypted are refused;
    /// see [`reads_plain`](Self::reads_plain).
    pub fn encrypt(mut self, keyring: Keyring) -> Self {
        self.keyring = Some(keyring);
        self.reads_plain = false;
        self
    }

    /// Whether payloads that are not encrypted are read, for a store that held some before encryption was switched on. Who can
    /// write to the database can then slip in a payload of their own: switch it off when the old ones are gone.
    pub fn reads_plain(mut self, reads: bool) -> Self {
        self.reads_plain = reads;
        self
    }

    /// The most bytes that a payload may hold. 64 MB by default.
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// The payload compressed, when that is wanted and helps.
    fn compressed(&self, plain: &[u8]) -> Result<Option<Vec<u8>>, CodecError> {
        match self.compress_above {
            Some(above) if plain.len() > above => {
                Ok(Some(compress(plain)?).filter(|compressed| compressed.len() < plain.len()))
            }
            _ => Ok(None),
        }
    }

    fn key_id(&self) -> Option<&str> {
        self.keyring.as_ref().map(Keyring::current)
    }

    fn encrypted(&self, plain: &[u8], bound_to: &[u8]) -> Result<Option<Vec<u8>>, CodecError> {
        self.keyring.as_ref().map(|ring| ring.encrypt(plain, bound_to)).transpose()
    }

    fn decrypted(&self, id: &str, sealed: &[u8], bound_to: &[u8]) -> Result<Vec<u8>, CodecError> {
        let ring = self.keyring.as_ref().ok_or_else(|| CodecError::UnknownKey(id.to_owned()))?;
        ring.decrypt(id, sealed, bound_to)
    }
}

impl Default for Envelope {
    fn default() -> Self {
        Self::new()
    }
}

impl PayloadCodec for Envelope {
    fn encode(&self, part: Part, plain: Bytes) -> Result<Bytes, CodecError> {
        if plain.len() > self.limit {
            return Err(CodecError::TooLarge { limit: self.limit });
        }
        let compressed = self.compressed(&plain)?;
        let flags = compressed.as_ref().map_or(0, |_| COMPRESSED);
        let body: &[u8] = compressed.as_deref().unwrap_or(&plain);
        let header = header(flags, self.key_id());
        let sealed = self.encrypted(body, &bound(&header, part))?;
        Ok([&header, sealed.as_deref().unwrap_or(body)].concat().into())
    }

    fn decode(&self, part: Part, stored: Bytes) -> Result<Bytes, CodecError> {
        let Some(rest) = stored.strip_prefix(&MAGIC) else {
            return if self.reads_plain { Ok(stored) } else { Err(CodecError::Plain) };
        };
        let Some(([version, flags], body)) = rest.split_first_chunk() else { return Err(cut_short()) };
        if *version != VERSION || flags & !(COMPRESSED | ENCRYPTED) != 0 {
            return Err(CodecError::Unsupported(format!(
                "it was written in form {version} with flags {flags}; this release reads form {VERSION}"
            )));
        }
        let opened = match flags & ENCRYPTED {
            0 if !self.reads_plain => return Err(CodecError::Plain),
            0 if flags & COMPRESSED == 0 => return Ok(stored.slice_ref(body)),
            0 => body.to_vec(),
            _ => {
                let (id, sealed) = split_id(body)?;
                self.decrypted(id, sealed, &bound(&header(flags & COMPRESSED, Some(id)), part))?
            }
        };
        if flags & COMPRESSED == 0 {
            return Ok(opened.into());
        }
        decompress(&opened, self.limit).map(Bytes::from)
    }
}

fn header(flags: u8, key_id: Option<&str>) -> Vec<u8> {
    let mut header = Vec::with_capacity(5 + key_id.map_or(0, str::len));
    header.extend(MAGIC);
    header.push(VERSION);
    match key_id {
        None => header.push(flags),
        Some(id) => {
            header.push(flags | ENCRYPTED);
            header.push(u8::try_from(id.len()).unwrap_or(u8::MAX));
            header.extend(id.as_bytes());
        }
    }
    header
}

/// What is authenticated beside the ciphertext.
fn bound(header: &[u8], part: Part) -> Vec<u8> {
    [header, part.as_str().as_bytes()].concat()
}

fn split_id(body: &[u8]) -> Result<(&str, &[u8]), CodecError> {
    let (length, rest) = body.split_first().ok_or_else(cut_short)?;
    let (id, sealed) = rest.split_at_checked(usize::from(*length)).ok_or_else(cut_short)?;
    let id = std::str::from_utf8(id).map_err(|_| CodecError::Malformed("its key id is no text".to_owned()))?;
    Ok((id, sealed))
}

fn cut_short() -> CodecError {
    CodecError::Malformed("it is cut short".to_owned())
}

fn compress(plain: &[u8]) -> Result<Vec<u8>, CodecError> {
    zstd::bulk::compress(plain, LEVEL).map_err(|error| CodecError::Encode(error.to_string()))
}

fn decompress(compressed: &[u8], limit: usize) -> Result<Vec<u8>, CodecError> {
    use std::io::Read as _;

    let malformed = |error: std::io::Error| CodecError::Malformed(format!("it does not decompress: {error}"));
    let mut plain = Vec::new();
    let reader = zstd::stream::read::Decoder::with_buffer(compressed).map_err(malformed)?;
    // One more than allowed tells that there is more, without trusting what the frame says of its size.
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(most).read_to_end(&mut plain).map_err(malformed)?;
    if plain.len() > limit { Err(CodecError::TooLarge { limit }) } else { Ok(plain) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Key;

    fn keyring(id: &str, byte: u8) -> Keyring {
        Keyring::new(id, Key::new(&[byte; 32])).unwrap()
    }

    fn encrypting() -> Envelope {
        Envelope::new().encrypt(keyring("k", 1))
    }

    fn round(codec: &Envelope, plain: &[u8]) -> Bytes {
        let stored = codec.encode(Part::Snapshot, Bytes::copy_from_slice(plain)).unwrap();
        codec.decode(Part::Snapshot, stored).unwrap()
    }

    proptest! {
        #[test]
        fn every_payload_comes_back(plain: Vec<u8>, above in 0..64_usize) {
            for codec in [Envelope::new().compress_above(above), encrypting().compress_above(above), encrypting()] {
                prop_assert_eq!(&round(&codec, &plain)[..], &plain[..]);
            }
        }

        #[test]
        fn no_damage_passes_for_a_payload(plain: Vec<u8>, at: prop::sample::Index, flip in 1..=255_u8) {
            let codec = encrypting().compress_above(16);
            let mut stored = codec.encode(Part::Entry, plain.into()).unwrap().to_vec();
            let at = at.index(stored.len());
            stored[at] ^= flip;
            prop_assert!(codec.decode(Part::Entry, stored.clone().into()).is_err());
            stored[at] ^= flip;
            stored.truncate(at);
            prop_assert!(codec.decode(Part::Entry, stored.into()).is_err());
        }

        #[test]
        fn no_bytes_panic(stored: Vec<u8>, magic: bool) {
            let stored = if magic { [&MAGIC[..], &[1], &stored].concat() } else { stored };
            let _ = Envelope::new().decode(Part::Answer, stored.clone().into());
            let _ = encrypting().decode(Part::Answer, stored.into());
        }
    }

    #[test]
    fn a_payload_does_not_pass_for_another_part() {
        let codec = encrypting();
        let stored = codec.encode(Part::Answer, Bytes::from_static(b"yes")).unwrap();
        assert_eq!(codec.decode(Part::Snapshot, stored), Err(CodecError::Undecryptable("k".into())));
    }

    #[test]
    fn what_repeats_is_stored_small_and_what_does_not_is_not_blown_up() {
        let codec = Envelope::new();
        assert!(codec.encode(Part::Snapshot, vec![b'a'; 100_000].into()).unwrap().len() < 200);
        let mut noise = vec![0; 4096];
        getrandom::fill(&mut noise).unwrap();
        assert_eq!(codec.encode(Part::Snapshot, noise.into()).unwrap().len(), 4096 + 4);
        assert_eq!(codec.encode(Part::Snapshot, Bytes::from_static(b"{}")).unwrap()[..], *b"\xC5K\x01\x00{}");
    }

    #[test]
    fn a_bomb_is_stopped_at_the_limit() {
        let bomb = Envelope::new().encode(Part::Snapshot, vec![0; 10 << 20].into()).unwrap();
        assert!(bomb.len() < 10_000);
        let careful = Envelope::new().limit(1 << 20);
        assert_eq!(careful.decode(Part::Snapshot, bomb), Err(CodecError::TooLarge { limit: 1 << 20 }));
        assert_eq!(round(&careful, &vec![0; 1 << 20]).len(), 1 << 20);
        let refused = careful.encode(Part::Snapshot, vec![0; (1 << 20) + 1].into());
        assert_eq!(refused, Err(CodecError::TooLarge { limit: 1 << 20 }));
    }

    #[test]
    fn plain_payloads_are_refused_under_encryption_unless_allowed() {
        let old = Bytes::from_static(b"{\"v\":1}");
        let unencrypted = Envelope::new().encode(Part::Snapshot, old.clone()).unwrap();
        for plain in [old.clone(), unencrypted] {
            assert_eq!(encrypting().decode(Part::Snapshot, plain.clone()), Err(CodecError::Plain));
            assert_eq!(encrypting().reads_plain(true).decode(Part::Snapshot, plain.clone()), Ok(old.clone()));
            assert_eq!(Envelope::new().decode(Part::Snapshot, plain), Ok(old.clone()));
        }
    }

    #[test]
    fn every_configuration_reads_what_another_wrote_when_it_has_the_key() {
        let plain = Bytes::from(vec![b'x'; 5000]);
        let stored = encrypting().compress_above(0).encode(Part::Outcome, plain.clone()).unwrap();
        let rotated = keyring("new", 2).with_old("k", Key::new(&[1; 32])).unwrap();
        let rotated = Envelope::new().encrypt(rotated).without_compression();
        assert_eq!(rotated.decode(Part::Outcome, stored.clone()), Ok(plain));
        let unknown = CodecError::UnknownKey("k".into());
        assert_eq!(Envelope::new().decode(Part::Outcome, stored.clone()), Err(unknown.clone()));
        assert_eq!(Envelope::new().encrypt(keyring("new", 2)).decode(Part::Outcome, stored), Err(unknown));
    }

    #[test]
    fn what_a_newer_release_wrote_is_refused_and_named() {
        for newer in [b"\xC5K\x02\x00{}", b"\xC5K\x01\x04{}"] {
            let refused = Envelope::new().decode(Part::Snapshot, Bytes::from_static(newer)).unwrap_err();
            assert!(matches!(refused, CodecError::Unsupported(_)), "{refused}");
        }
    }
}
