//! The whole of `nearmiss apply color`, as a program of its own:
//! `apply-color [--colors N] [--stacks] [--blocks SIZE] -- CMD`.

use clap::Parser;
use nearmiss_remedy::color::apply::{Args, Options, apply};
use nearmiss_remedy::wrap;
use nearmiss_workload::Workload;
use std::ffi::OsString;
use std::process::ExitCode;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    color: Args,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let complain = |what: &dyn std::fmt::Display| eprintln!("apply-color: {what}");
    let (workload, coloring) = match apply(Workload::new(cli.command), &Options::from(&cli.color)) {
        Ok(applied) => applied,
        Err(error) => {
            complain(&error);
            return ExitCode::from(error.exit_code());
        }
    };
    match wrap(workload, &coloring) {
        Ok(wrapped) => {
            match &wrapped.engaged {
                Ok(engaged) => complain(&engaged.text),
                Err(error) => complain(error),
            }
            ExitCode::from(wrapped.exit_code())
        }
        Err(error) => {
            complain(&error);
            ExitCode::from(error.exit_code())
        }
    }
}
