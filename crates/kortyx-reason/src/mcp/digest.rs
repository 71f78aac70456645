//! SHA-256 in hex.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The digest of a text: 64 hex digits.
pub(super) fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
