//! Only an enum has options.

use kortyx_contracts::ChoiceOptions;

#[derive(ChoiceOptions)]
struct Decision {
    approve: bool,
}

fn main() {}
