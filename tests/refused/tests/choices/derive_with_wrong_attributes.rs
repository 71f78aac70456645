//! Unknown keys, keys given twice, empty and non-text values.

use kortyx_contracts::ChoiceOptions;

#[derive(ChoiceOptions)]
#[choice(rename_all = "kebab-case")]
enum Container {
    Approve,
}

#[derive(ChoiceOptions)]
enum Variants {
    #[choice(name = "approve")]
    Approve,
    #[choice(id = "a", id = "b")]
    Twice,
    #[choice(id = "")]
    Empty,
    #[choice(label = 3)]
    Number,
}

fn main() {}
