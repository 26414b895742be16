//! The verb `verify`: two sides, interleaved, and a verdict.

mod commands;
mod how;
mod in_guests;
mod load;
mod remedies;
mod share;
mod sides;

use crate::Remedies;
use crate::by_remedy::of_remedies;
use clap::{ArgMatches, Args as _, Command, FromArgMatches};
use std::process::ExitCode;

/// The subcommand that is about no remedy.
const COMMANDS: &str = "commands";

const AFTER: &str = "
  nearmiss verify commands './old' './new'     is the second command better than the first?
  nearmiss verify commands --load './load' './old-server' './new-server'   the same of two servers
  nearmiss report                              the newest run's verdict again

With --load, the CPU time of the server by the load's requests decides. A load that waits for each answer before it sends \
again (a closed loop) slows down with the server: compare a remedy that adds latency by a load of a fixed rate.";

/// A subcommand a remedy, and one for two commands.
pub fn arguments(command: Command, remedies: Remedies) -> Command {
    let commands = commands::Args::augment_args(Command::new(COMMANDS));
    let command = of_remedies(command, remedies, |remedy| remedy.verify_help, remedies::arguments);
    let examples = format!("{}{AFTER}", command.get_after_help().map(ToString::to_string).unwrap_or_default());
    command.after_help(examples).subcommand(commands.about("Is the second of two commands better than the first?"))
}

/// Runs the verb.
pub fn run(given: &ArgMatches, remedies: Remedies) -> anyhow::Result<ExitCode> {
    match given.subcommand() {
        Some((COMMANDS, given)) => commands::run(&commands::Args::from_arg_matches(given)?),
        _ => remedies::run(given, remedies),
    }
}
