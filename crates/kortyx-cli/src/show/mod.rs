//! How things look to people.

pub(crate) mod paint;
mod table;
mod tree;

pub(crate) use self::{table::Table, tree::Tree};
