//! Workflows that stop, ask a person, and go on later: the facade of the Kortyx crates.
