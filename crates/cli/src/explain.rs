//! From an error to one line and an exit code.

use crate::exit::{
    BAD_INPUT, CANNOT_HERE, CannotHere, Interrupted, WRAPPER_FAILED, of_signal, print_message, without_numbers,
};
use crate::interrupt;
use crate::output::print;
use clap::Command;
use clap::error::ErrorKind;
use signal_hook::consts::SIGINT;
use std::process::ExitCode;

/// Prints help, or in one line what is wrong with the arguments. A wrapper's status 2 is its command's: its own is 125.
pub fn wrong_use(command: &Command, error: &clap::Error) -> ExitCode {
    let wrapper = std::env::args().nth(1).is_some_and(|verb| ["trace", "observe", "apply"].contains(&verb.as_str()));
    let failed = ExitCode::from(if wrapper { WRAPPER_FAILED } else { BAD_INPUT });
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // A closed stream must not change the status.
        let _closed = error.print().is_err();
        return failed;
    }
    if error.use_stderr() {
        print_message(&nearmiss_usage::in_one_line(command, std::env::args_os(), error));
        return failed;
    }
    match print(&error.render().ansi().to_string()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_message(&in_words(&error));
            failed
        }
    }
}

/// An error with its causes, each once and without the system's number.
pub fn in_words(error: &anyhow::Error) -> String {
    let mut causes = error.chain().map(|cause| without_numbers(&cause.to_string()));
    let mut text = causes.next().unwrap_or_default();
    for cause in causes {
        // Most of our errors contain their cause.
        if !text.to_lowercase().contains(&cause.to_lowercase()) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Prints one line and picks the exit code: for wrappers 127 and 126 where the command cannot be found or executed,
/// else 125; 3 for [`CannotHere`], else 2. After a signal, any failure has that of the signal.
pub fn explain(error: &anyhow::Error, wrapper: bool) -> ExitCode {
    let signal =
        if error.is::<Interrupted>() { Some(interrupt::awaited().unwrap_or(SIGINT)) } else { interrupt::received() };
    print_message(&if signal.is_some() && !error.is::<Interrupted>() {
        "interrupted".to_owned()
    } else {
        in_words(error)
    });
    ExitCode::from(if let Some(signal) = signal {
        of_signal(signal)
    } else if wrapper {
        error.chain().find_map(|cause| cause.downcast_ref()).map_or(WRAPPER_FAILED, nearmiss_workload::Error::exit_code)
    } else if error.is::<CannotHere>() {
        CANNOT_HERE
    } else {
        BAD_INPUT
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_cause_is_printed_once() {
        let full = || std::io::Error::from_raw_os_error(28);
        let words = |error: anyhow::Error| in_words(&error);
        assert_eq!(words(full().into()), "No space left on device");
        let with_context = Err::<(), _>(full()).context("x: no space left on device; make room");
        assert_eq!(words(with_context.unwrap_err()), "x: no space left on device; make room");
        assert_eq!(words(Err::<(), _>(full()).context("x").unwrap_err()), "x: No space left on device");
    }
}
