//! Measures over the store in a file, against loops that write the same rows through the same driver without any of it.

mod commits;
mod file;
mod group;
mod many;
mod one;
mod rows;
mod statement;

pub(crate) use self::{file::File, many::many, one::one, rows::now};
