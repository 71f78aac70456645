//! The Kortyx store in an SQLite file.
