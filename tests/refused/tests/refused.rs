//! What must not compile: the promises of the API that the compiler keeps. Slow: it checks the dependencies.

mod fine;

#[test]
fn what_the_refused_programs_are_made_of_compiles() {
    fine::build();
}

// Only refusals: for a program that must compile all dependencies would be built, where to check them is enough.

#[test]
fn wrong_derives_and_a_match_that_forgets_an_option_are_errors_where_they_stand() {
    trybuild::TestCases::new().compile_fail("tests/choices/*.rs");
}

#[test]
fn b053_the_compiler_refuses_what_replay_could_not_repeat() {
    trybuild::TestCases::new().compile_fail("tests/nodes/*.rs");
}
