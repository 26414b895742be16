//! Wrong use in one line: what, where, why, what to do.

use crate::report;
use clap::error::ErrorKind;
use clap::{Command, Parser};
use std::ffi::OsString;
use std::process::ExitCode;

/// The status of wrong use.
const WRONG_USE: u8 = 2;

/// Reads this process's arguments. If they request help, or are wrong, prints that and returns the status to end with.
pub fn read<P: Parser>() -> Result<P, ExitCode> {
    P::try_parse().map_err(|error| {
        // A closed stream must not change the status.
        if !error.use_stderr() {
            let _closed = error.print().is_err();
            return ExitCode::SUCCESS;
        }
        let command = P::command();
        report(command.get_name(), in_one_line(&command, std::env::args_os(), &error));
        ExitCode::from(WRONG_USE)
    })
}

/// Describes the fault in the arguments of a command, the program's name first among them, in one line. clap leaves out
/// what could steer the terminal.
pub fn in_one_line(command: &Command, arguments: impl Iterator<Item = OsString>, error: &clap::Error) -> String {
    let text = error.render().to_string();
    let verb = verb(command, arguments);
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let usage = text.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or_default();
        return format!("the verb is missing: {usage}; see {verb} --help");
    }
    // Paragraphs: what is wrong, tips, usage, where to find help.
    let mut paragraphs = text.split("\n\n").map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    let wrong = paragraphs.next().unwrap_or_default();
    let tip = paragraphs.find_map(|paragraph| Some(paragraph.strip_prefix("tip: ")?.replace(" tip: ", "; ")));
    let parts = [wrong.trim_start_matches("error: ").trim_end_matches(['.', ':']).to_owned()];
    let parts: Vec<String> = parts.into_iter().chain(tip).collect();
    format!("{}; see {verb} --help", parts.join("; "))
}

/// The program and the verbs behind it, as far as there are such.
fn verb(command: &Command, arguments: impl Iterator<Item = OsString>) -> String {
    let (mut name, mut at) = (command.get_name().to_owned(), command);
    for word in arguments.skip(1) {
        let Some(inner) = at.find_subcommand(&word) else { break };
        name = format!("{name} {}", inner.get_name());
        at = inner;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[derive(Debug, clap::Parser)]
    #[command(name = "program")]
    enum Arguments {
        Send {
            #[arg(long, value_name = "RATE")]
            rate: f64,
            #[arg(long, value_parser = ["one", "two"], default_value = "one")]
            protocol: String,
        },
        Take,
    }

    fn message(arguments: &[&str]) -> String {
        let arguments: Vec<OsString> = ["program"].iter().chain(arguments).map(OsString::from).collect();
        let command = Arguments::command();
        let wrong = |error| in_one_line(&command, arguments.iter().cloned(), &error);
        Arguments::try_parse_from(&arguments).map_or_else(wrong, |taken| format!("{taken:?}"))
    }

    #[test]
    fn every_mistake_is_one_line() {
        let cases: [(&[&str], &str); 7] = [
            (&[], "the verb is missing: program <COMMAND>"),
            (&["sent"], "unrecognized subcommand 'sent'; a similar subcommand exists: 'send'"),
            (&["send"], "the following required arguments were not provided: --rate <RATE>"),
            (&["send", "--rate"], "a value is required for '--rate <RATE>' but none was supplied"),
            (&["send", "--rate", "x"], "invalid value 'x' for '--rate <RATE>': invalid float literal"),
            (&["send", "--rat", "1"], "unexpected argument '--rat' found; a similar argument exists: '--rate'"),
            (
                &["send", "--rate", "1", "--protocol", "three"],
                "invalid value 'three' for '--protocol <PROTOCOL>' [possible values: one, two]",
            ),
        ];
        for (arguments, wanted) in cases {
            let verb = if arguments.first() == Some(&"send") { "program send" } else { "program" };
            assert_eq!(message(arguments), format!("{wanted}; see {verb} --help"), "{arguments:?}");
        }
        assert_eq!(message(&["take"]), "Take");
    }
}
