//! The Kortyx store that lives in this process.
