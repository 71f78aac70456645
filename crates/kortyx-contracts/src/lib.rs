//! Questions and answers of Kortyx: kinds, typed contracts, JSON Schema, validation.
