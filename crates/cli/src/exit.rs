//! Exit codes, as the command-line contract has them.

use std::process::ExitCode;

/// Done, and a condition that the user asked for failed.
pub const CONDITION_FAILED: u8 = 1;
/// Wrong use or bad input.
pub const BAD_INPUT: u8 = 2;
/// A wrapper's own failure, as `env` and `timeout` do.
pub const WRAPPER_FAILED: u8 = 125;

/// This machine cannot do it; the text says what would.
#[derive(Debug)]
pub struct CannotHere(pub String);

impl std::fmt::Display for CannotHere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotHere {}

/// Prints one line and picks the exit code: 125 for wrappers, 3 for [`CannotHere`], else 2.
pub fn explain(error: &anyhow::Error, wrapper: bool) -> ExitCode {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Most of ours tell their cause themselves.
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    eprintln!("nearmiss: {text}");
    ExitCode::from(if wrapper {
        WRAPPER_FAILED
    } else if error.downcast_ref::<CannotHere>().is_some() {
        3
    } else {
        BAD_INPUT
    })
}
