//! Exit codes, as the command-line contract has them.

use nearmiss_report::name::plain;
use std::io::Write;

/// Done, and a condition that the user set failed.
pub const CONDITION_FAILED: u8 = 1;
/// Wrong use or bad input.
pub const BAD_INPUT: u8 = 2;
/// This machine cannot do what was requested.
pub const CANNOT_HERE: u8 = 3;
/// A wrapper's own failure, as `env` and `timeout` do.
pub const WRAPPER_FAILED: u8 = 125;

/// This machine cannot do what was requested; the text names what would help.
#[derive(Debug)]
pub struct CannotHere(pub String);

impl std::fmt::Display for CannotHere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotHere {}

/// A signal ended the request; the text describes what is left of it.
#[derive(Debug)]
pub struct Interrupted(pub String);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Interrupted {}

/// Returns the status by which a shell reports a program that a signal ended.
pub fn of_signal(signal: i32) -> u8 {
    128u8.wrapping_add(signal as u8)
}

/// Prints one line on standard error, without the system's numbers of errors. Text from files and arguments cannot steer
/// the terminal.
pub fn print_message(what: &str) {
    // A closed stream must not change the status.
    let _ = writeln!(std::io::stderr(), "nearmiss: {}", plain(&without_numbers(what)));
}

/// Removes ` (os error 28)`, which adds nothing to the words before it.
pub fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(')').map_or(part, |(_, rest)| rest))
}

/// Prints a report of one line and more on standard error, as safe as [`print_message`].
pub fn report(what: &str) {
    let lines: Vec<String> = what.lines().map(plain).collect();
    // A closed stream must not change the status.
    let _ = writeln!(std::io::stderr(), "nearmiss: {}", lines.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_errors_are_left_out() {
        assert_eq!(without_numbers("a (os error 2), b (os error 3); c"), "a, b; c");
    }
}
