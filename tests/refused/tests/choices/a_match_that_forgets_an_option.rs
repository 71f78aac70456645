//! The answer is the enum, so a match on it must be exhaustive.

use kortyx_contracts::{Ask, Choice, ChoiceOptions};
use kortyx_protocol::ResumeResponse;

#[derive(ChoiceOptions)]
enum Decision {
    Approve,
    Revise,
}

fn main() {
    let ask = Choice::of::<Decision>("Approve?");
    match ask.decode(&ResumeResponse::Cancel).unwrap() {
        Decision::Approve => {}
    }
}
