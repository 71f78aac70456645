//! What must not compile: the promises of the API that the compiler keeps.

#[test]
fn b053_the_compiler_refuses_what_replay_could_not_repeat() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/compile_fail/fine.rs");
    cases.compile_fail("tests/compile_fail/refused/*.rs");
}
