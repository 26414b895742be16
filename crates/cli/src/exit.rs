//! Exit codes, as the command-line contract has them.

use std::process::ExitCode;

/// Done, and a condition that the user asked for failed.
pub const CONDITION_FAILED: u8 = 1;
/// Wrong use or bad input.
pub const BAD_INPUT: u8 = 2;
/// Ended by Ctrl-C, as a shell says it.
pub const INTERRUPTED: u8 = 130;
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

/// Ctrl-C ended what was asked for.
#[derive(Debug)]
pub struct Interrupted(pub String);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Interrupted {}

/// Prints help or what is wrong with the arguments. A wrapper's status 2 is its command's: its own is 125.
pub fn wrong_use(error: &clap::Error) -> ExitCode {
    // A closed stream must not change the status.
    let _ = error.print();
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    let wrapper = std::env::args().nth(1).is_some_and(|verb| ["trace", "observe", "apply"].contains(&verb.as_str()));
    ExitCode::from(if wrapper { WRAPPER_FAILED } else { BAD_INPUT })
}

/// Prints one line and picks the exit code: 130 for [`Interrupted`]; for wrappers 127 and 126 where the command cannot
/// be found or executed, else 125; 3 for [`CannotHere`], else 2.
pub fn explain(error: &anyhow::Error, wrapper: bool) -> ExitCode {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Most of ours tell their cause themselves.
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    eprintln!("nearmiss: {text}");
    ExitCode::from(if error.downcast_ref::<Interrupted>().is_some() {
        INTERRUPTED
    } else if wrapper {
        error.chain().find_map(|cause| cause.downcast_ref()).map_or(WRAPPER_FAILED, nearmiss_workload::Error::exit_code)
    } else if error.downcast_ref::<CannotHere>().is_some() {
        3
    } else {
        BAD_INPUT
    })
}
