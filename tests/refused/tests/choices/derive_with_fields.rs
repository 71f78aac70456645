//! Options carry no data; every variant with fields is named.

use kortyx_contracts::ChoiceOptions;

#[derive(ChoiceOptions)]
enum Decision {
    Approve,
    Revise(String),
    Later { days: u8 },
}

fn main() {}
