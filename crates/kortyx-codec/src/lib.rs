//! Compression and encryption of what a store keeps.
//!
#![doc = include_str!("../README.md")]

mod codec;
#[cfg(feature = "conformance")]
pub mod conformance;
mod envelope;
mod keyring;
mod opened;
mod sealed;
mod store;

pub use codec::{CodecError, Part, PayloadCodec};
pub use envelope::Envelope;
pub use keyring::{Key, KeyError, Keyring};
pub use store::CodecStore;
