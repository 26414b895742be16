//! The command line: reading it, printing, exit codes.

use crate::outcome::{self, Outcome, Problem};
use crate::{files, origin, rate, web};
use clap::{Parser, Subcommand};
use std::process::ExitCode;

const EXIT_CODES: &str = "Exit codes: 0 the rate was held and every answer was right; 1 no run; 2 bad input; \
3 the rate was missed; 4 the rate was held, but some requests have no right answer.";

#[derive(Parser)]
#[command(
    name = "nearmiss-webload",
    version,
    about = "An open-loop load for servers, and an origin to stand behind them"
)]
#[command(after_help = EXIT_CODES, max_term_width = 120)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Rate(rate::Arguments),
    Web(web::Arguments),
    Origin(origin::Arguments),
    Files(files::Arguments),
}

/// Runs the program.
pub fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return wrong_use(&error),
    };
    let done = match arguments.verb {
        Verb::Rate(arguments) => rate::run(&arguments),
        Verb::Web(arguments) => web::run(&arguments),
        Verb::Origin(arguments) => origin::run(&arguments),
        Verb::Files(arguments) => files::run(&arguments),
    };
    explain(&done);
    outcome::code(&done)
}

fn explain(done: &Result<Outcome, Problem>) {
    if let Err(problem) = done {
        eprintln!("nearmiss-webload: {problem}");
    }
}

/// Help goes out whole; a mistake gets one line.
fn wrong_use(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return match error.print() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        eprintln!("nearmiss-webload: name what to do, such as rate, web or origin; see nearmiss-webload --help");
        return ExitCode::from(2);
    }
    let text = error.to_string();
    let lines = text.lines().take_while(|line| !line.starts_with("Usage")).map(str::trim);
    let line = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    eprintln!("nearmiss-webload: {}; see nearmiss-webload --help", line.trim_end_matches('.'));
    ExitCode::from(2)
}
