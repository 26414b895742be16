//! The command line of `nearmiss`: one verb a stage. All printing and exit codes are here; the stages are libraries.
//!
//! [`run`] takes the remedies that it offers, so that a program with one remedy more is this command line with one
//! remedy more.

mod apply;
mod by_remedy;
mod case;
mod command_line;
mod compared_report;
mod conductor;
mod counting;
mod destination;
mod diagnose;
mod doctor;
mod exit;
mod explain;
mod gate;
mod generate;
mod interrupt;
mod kept_findings;
mod kernel;
mod lab;
mod load;
mod machine;
mod mcp;
mod measuring;
mod observe;
mod observed_report;
mod order;
mod output;
mod paper;
mod phases;
mod progress;
mod rehearse;
mod report;
mod report_form;
mod run_name;
mod schema;
mod snapshot;
mod table;
mod top;
mod trace;
mod verbs;
mod verified_report;
mod verify;
mod window;

use clap::error::ErrorKind;
use nearmiss_analysis::Remedy;
use std::ffi::OsString;
use std::process::ExitCode;

/// The remedies that are offered.
pub type Remedies = &'static [&'static Remedy];

/// Reads the command line of this process and executes it.
pub fn run(remedies: Remedies) -> ExitCode {
    if let Some(conducted) = conductor::run_if_requested() {
        return conducted;
    }
    let mut command = verbs::command(remedies);
    let words: Vec<OsString> = std::env::args_os().collect();
    let given = match command.try_get_matches_from_mut(without_help_of_help(words.clone())) {
        Ok(_) if lacks_its_command(&words) => {
            let error = command.error(ErrorKind::MissingRequiredArgument, "no command follows `--`");
            return explain::wrong_use(&command, &error);
        }
        Ok(given) => given,
        Err(error) => return explain::wrong_use(&command, &error),
    };
    let Some((verb, given)) = given.subcommand().and_then(|(name, given)| Some((verbs::by_name(name)?, given))) else {
        return ExitCode::from(exit::BAD_INPUT);
    };
    let done = interrupt::listen().and_then(|()| (verb.run)(given, remedies));
    done.unwrap_or_else(|error| explain::explain(&error, verb.is_wrapper))
}

/// Drops `--help` behind `help`: the `help` of clap has no such option.
fn without_help_of_help(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|verb| verb == "help") {
        words.retain(|word| word != "--help" && word != "-h");
    }
    words
}

/// Whether the words end with the `--` that a command should follow.
fn lacks_its_command(words: &[OsString]) -> bool {
    words.iter().position(|word| word == "--").is_some_and(|at| at + 1 == words.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn help_of_help_is_help() {
        let shown = |line| without_help_of_help(words(line));
        assert_eq!(shown("nearmiss help --help"), words("nearmiss help"));
        assert_eq!(shown("nearmiss help trace -h"), words("nearmiss help trace"));
        assert_eq!(shown("nearmiss trace --help"), words("nearmiss trace --help"));
    }

    #[test]
    fn dashes_at_the_end_lack_a_command() {
        assert!(lacks_its_command(&words("nearmiss diagnose --")));
        assert!(!lacks_its_command(&words("nearmiss diagnose")));
        assert!(!lacks_its_command(&words("nearmiss trace -- grep --")));
    }
}
