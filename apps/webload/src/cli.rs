//! The command line: reading it, printing, exit codes.

use crate::outcome::{self, Outcome, Problem};
use crate::{files, origin, rate, web};
use clap::{CommandFactory as _, Parser, Subcommand};
use nearmiss_usage::GeneratedText;
use std::process::ExitCode;

const EXIT_CODES: &str = "Exit codes: 0 the rate was held and every answer was right; 1 no run; 2 bad input; \
3 the rate was missed, and no answer was wrong; 4 some requests have no right answer.";

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
    /// Write man pages and shell completions
    #[command(subcommand)]
    Generate(GeneratedText),
}

/// Runs the program.
pub fn run() -> ExitCode {
    let arguments: Arguments = match nearmiss_usage::read() {
        Ok(arguments) => arguments,
        Err(status) => return status,
    };
    let done = match arguments.verb {
        Verb::Rate(arguments) => rate::run(&arguments),
        Verb::Web(arguments) => web::run(&arguments),
        Verb::Origin(arguments) => origin::run(&arguments),
        Verb::Files(arguments) => files::run(&arguments),
        Verb::Generate(what) => generate(&what),
    };
    explain(&done);
    outcome::code(&done)
}

fn generate(what: &GeneratedText) -> Result<Outcome, Problem> {
    let version = concat!("nearmiss ", env!("CARGO_PKG_VERSION"));
    let text = nearmiss_usage::generate(what, Arguments::command(), version);
    outcome::print(text.map_err(|error| Problem::Input(error.to_string()))?)?;
    Ok(Outcome::Good)
}

fn explain(done: &Result<Outcome, Problem>) {
    if let Err(problem) = done {
        nearmiss_usage::report("nearmiss-webload", problem);
    }
}
