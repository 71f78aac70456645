//! What must not compile: the promises of the API that the compiler keeps.

#[path = "compile_fail/fine.rs"]
mod fine;

#[test]
fn what_the_refused_programs_are_made_of_compiles() {
    fine::build();
}

#[test]
fn b053_the_compiler_refuses_what_replay_could_not_repeat() {
    // Only refusals: for a program that must compile all dependencies would be built, where to check them is enough.
    trybuild::TestCases::new().compile_fail("tests/compile_fail/refused/*.rs");
}
