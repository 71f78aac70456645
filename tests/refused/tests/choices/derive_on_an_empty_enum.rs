//! A choice needs an option.

use kortyx_contracts::ChoiceOptions;

#[derive(ChoiceOptions)]
enum Decision {}

fn main() {}
