//! Product code of a source text: modules of tests are left out, wherever they stand.

use regex::Regex;

/// A module of tests at the margin, to its closing brace.
const TESTS: &str =
    r"(?ms)^#\[cfg\(test\)\]\n(?:#\[[^\n]*\]\n)*(?:pub(?:\([a-z]+\))? )?mod \w+ \{(?:[^\n]*\}$|$.*?^\}$)";

/// Returns a source text without its modules of tests.
pub fn product(text: &str) -> String {
    Regex::new(TESTS).expect("a pattern").replace_all(text, "").into_owned()
}

#[test]
fn only_modules_of_tests_are_left_out() {
    let text = "fn before() {}\n#[cfg(test)]\n#[allow(clippy::unwrap_used)]\npub(crate) mod tests {\n    fn test() {}\n}\n\
                #[cfg(test)]\nmod one { fn line() {} }\n#[cfg(test)]\nmod other;\nfn behind() {}\n";
    assert_eq!(product(text), "fn before() {}\n\n\n#[cfg(test)]\nmod other;\nfn behind() {}\n");
}
