//! A proxy that counts round trips and cuts connections.
