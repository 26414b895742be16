//! Wrong use in one line: what, where, why, what to do.

use crate::say;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use std::process::ExitCode;

/// The status of wrong use.
const WRONG_USE: u8 = 2;

/// Reads this process's arguments. Where they ask for help, or are wrong, prints that and returns the status to end with.
pub fn read<P: Parser>() -> Result<P, ExitCode> {
    P::try_parse().map_err(|error| {
        // A closed stream must not change the status.
        if !error.use_stderr() {
            let _closed = error.print().is_err();
            return ExitCode::SUCCESS;
        }
        say(P::command().get_name(), line::<P>(&error));
        ExitCode::from(WRONG_USE)
    })
}

/// What is wrong, in one line. clap leaves out what could steer the terminal.
fn line<P: CommandFactory>(error: &clap::Error) -> String {
    let (command, text) = (P::command(), error.render().to_string());
    let name = command.get_name();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let usage = text.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or_default();
        return format!("the verb is missing: {usage}; see {name} --help");
    }
    // Paragraphs: what is wrong, tips, usage, where to find help.
    let mut paragraphs = text.split("\n\n").map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    let wrong = paragraphs.next().unwrap_or_default();
    let tip = paragraphs.find_map(|paragraph| Some(paragraph.strip_prefix("tip: ")?.replace(" tip: ", "; ")));
    let parts = [wrong.trim_start_matches("error: ").trim_end_matches(['.', ':']).to_owned()];
    let parts: Vec<String> = parts.into_iter().chain(tip).collect();
    format!("{}; see {name} --help", parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn said(arguments: &[&str]) -> String {
        let arguments = ["program"].iter().chain(arguments);
        Arguments::try_parse_from(arguments)
            .map_or_else(|error| line::<Arguments>(&error), |taken| format!("{taken:?}"))
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
            assert_eq!(said(arguments), format!("{wanted}; see program --help"), "{arguments:?}");
        }
        assert_eq!(said(&["take"]), "Take");
    }
}
