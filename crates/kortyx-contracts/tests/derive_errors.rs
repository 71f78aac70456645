//! What the compiler refuses: wrong derives, and a match that forgets an option. Slow: it builds the dependencies.

#[test]
fn mistakes_are_compile_errors_where_they_stand() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
