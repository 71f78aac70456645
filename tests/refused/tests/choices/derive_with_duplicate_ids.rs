//! Two options cannot have one id, given or by default.

use kortyx_contracts::ChoiceOptions;

#[derive(ChoiceOptions)]
enum Decision {
    SendBack,
    #[choice(id = "send_back")]
    Revise,
}

fn main() {}
