//! Verbs with a subcommand a remedy.

use crate::Remedies;
use clap::{ArgMatches, Command};
use nearmiss_analysis::{Help, Remedy};

/// A verb's command with a subcommand a remedy. `help` returns the remedy's help for the verb, `arguments` adds those of
/// the remedy and the verb. The examples of the verb's own help are the first of each remedy that name the verb and the
/// remedy; a remedy that is left to the program's author has none.
pub fn of_remedies(
    command: Command,
    remedies: Remedies,
    help: fn(&Remedy) -> Help,
    arguments: impl Fn(Command, &'static Remedy) -> Command,
) -> Command {
    let verb = command.get_name();
    let first = |remedy: &&Remedy| {
        let begins = format!("  nearmiss {verb} {} ", remedy.name);
        help(remedy).after.lines().find(|line| line.starts_with(&begins)).map(str::to_owned)
    };
    let examples: Vec<String> = ["Examples:".to_owned()].into_iter().chain(remedies.iter().filter_map(first)).collect();
    let one = |remedy: &&'static Remedy| {
        let help = help(remedy);
        arguments(Command::new(remedy.name), remedy).about(help.about).after_help(help.after)
    };
    command
        .after_help(examples.join("\n"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(remedies.iter().map(one))
}

/// Returns the remedy that was typed after a verb, with its arguments. Errors: none was typed.
pub fn chosen_remedy(given: &ArgMatches, remedies: Remedies) -> anyhow::Result<(&'static Remedy, &ArgMatches)> {
    let chosen = given
        .subcommand()
        .and_then(|(name, given)| Some((remedies.iter().copied().find(|remedy| remedy.name == name)?, given)));
    chosen.ok_or_else(|| anyhow::anyhow!("which remedy? see --help"))
}
