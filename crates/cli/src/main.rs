//! `nearmiss`: one verb a stage. All printing and exit codes are here; the stages are libraries.

mod apply;
mod case;
mod compared_report;
mod counting;
mod diagnose;
mod doctor;
mod exit;
mod json_file;
mod machine;
mod modelling;
mod observe;
mod observed_report;
mod paper;
mod progress;
mod rehearse;
mod report;
mod reserve;
mod run_name;
mod table;
mod top;
mod trace;
mod verified_report;
mod verify;
mod window;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Finds the cache misses, lock waits and wake-ups that hold a Linux program back.
#[derive(Parser)]
#[command(name = "nearmiss", version, about, max_term_width = 100, propagate_version = true)]
#[command(after_help = "Examples:
  nearmiss trace -- sort words.txt     every memory access, on this machine's caches
  nearmiss diagnose                    what is wrong with the newest run, and what would remedy it
  nearmiss doctor                      what works here

Exit status: 0 done; 1 done, and what was asked for was not met; 2 wrong use or bad input; 3 this machine cannot do it.
trace, observe and apply end as their command does; 125: they failed themselves, 126 and 127: the command cannot be
executed or found.")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// What this machine can observe and remedy, and how to enable the rest
    Doctor(doctor::Args),
    /// Machine descriptions: list them, show one, read this machine
    Machine(machine::Args),
    /// Run a command unchanged in a throw-away guest, see every memory access, model its caches
    Trace(trace::Args),
    /// Record what a live program does: samples, lock waits, polls, block I/O, scheduling
    Observe(observe::Args),
    /// Say what is wrong with a run, what would remedy it, and what that would gain
    Diagnose(diagnose::Args),
    /// Replay a run as if a remedy had been in place
    Rehearse(rehearse::Args),
    /// Run a command under a remedy, from outside
    Apply(apply::Args),
    /// Measure whether a remedy helps, or which of two commands is better: interleaved runs, and a verdict
    Verify(verify::Args),
    /// A paper's tables: its figures and ours side by side
    Paper(paper::Args),
    /// Show what a run's misses are and where they come from
    Report(report::Args),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::wrong_use(&error),
    };
    let wrapper = matches!(cli.verb, Verb::Trace(_) | Verb::Observe(_) | Verb::Apply(_));
    let result = match cli.verb {
        Verb::Doctor(args) => doctor::run(args),
        Verb::Machine(args) => machine::run(args),
        Verb::Trace(args) => trace::run(args),
        Verb::Observe(args) => observe::run(args),
        Verb::Diagnose(args) => diagnose::run(args),
        Verb::Rehearse(args) => rehearse::run(args),
        Verb::Apply(args) => apply::run(args),
        Verb::Verify(args) => verify::run(args),
        Verb::Paper(args) => paper::run(args),
        Verb::Report(args) => report::run(args),
    };
    result.unwrap_or_else(|error| exit::explain(&error, wrapper))
}
