//! Command lines that findings propose, and the options that were given in one.

use clap::{ArgMatches, FromArgMatches};
use nearmiss_analysis::CannotEngage;

/// Returns the argument vector of `nearmiss VERB REMEDY OPTIONS -- COMMAND`.
pub(crate) fn command_line(verb: &str, remedy: &str, options: &[String], command: &[String]) -> Vec<String> {
    let begin = ["nearmiss", verb, remedy].map(str::to_owned);
    begin.iter().chain(options).chain(&["--".to_owned()]).chain(command).cloned().collect()
}

/// Reads a remedy's options as they were given. Errors: the parser's, where an option is missing.
pub(crate) fn args<A: FromArgMatches>(given: &ArgMatches) -> Result<A, CannotEngage> {
    A::from_arg_matches(given).map_err(|error| CannotEngage::Parameters(error.to_string()))
}
