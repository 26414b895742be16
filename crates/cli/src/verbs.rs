//! Every verb: one line each. Parser, help, man pages and completions are made of this table and of the registry of
//! remedies.

use crate::{
    Remedies, apply, diagnose, doctor, gate, generate, kernel, lab, machine, mcp, observe, paper, rehearse, report,
    schema, trace, verify,
};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::process::ExitCode;

/// One verb.
pub struct Verb {
    /// Name of the verb, as typed.
    pub name: &'static str,
    about: &'static str,
    /// Whether the verb's exit status is its command's; 125 to 127 then stand for the verb's own failures.
    pub is_wrapper: bool,
    arguments: fn(Command, Remedies) -> Command,
    /// Runs the verb.
    pub run: fn(&ArgMatches, Remedies) -> anyhow::Result<ExitCode>,
}

/// A verb with a module that has `Args` and `run`, which may need the remedies too.
macro_rules! verb {
    ($name:literal, $module:ident, $about:literal) => {
        verb!($name, $module, $about, false, |args, _| $module::run(args))
    };
    ($name:literal, $module:ident, $about:literal, wrapper) => {
        verb!($name, $module, $about, true, |args, _| $module::run(args))
    };
    ($name:literal, $module:ident, $about:literal, remedies) => {
        verb!($name, $module, $about, false, $module::run)
    };
    ($name:literal, $module:ident, $about:literal, $wrapper:literal, $run:expr) => {
        Verb {
            name: $name,
            about: $about,
            is_wrapper: $wrapper,
            arguments: |command, _| <$module::Args as Args>::augment_args(command),
            run: |given, remedies| {
                let run: fn($module::Args, Remedies) -> anyhow::Result<ExitCode> = $run;
                run($module::Args::from_arg_matches(given)?, remedies)
            },
        }
    };
}

/// A verb with a subcommand a remedy.
macro_rules! verb_of_remedies {
    ($name:literal, $module:ident, $about:literal, $wrapper:literal) => {
        Verb { name: $name, about: $about, is_wrapper: $wrapper, arguments: $module::arguments, run: $module::run }
    };
}

const VERBS: &[Verb] = &[
    verb!("doctor", doctor, "What this machine can observe and remedy, and how to enable the rest", remedies),
    verb!("machine", machine, "Machine descriptions: list them, show one, read this machine"),
    verb!("kernel", kernel, "The guest's kernel: which one boots, and how to get one"),
    verb!(
        "trace",
        trace,
        "Run a command unchanged in a throw-away guest, see every memory access, model its caches",
        wrapper
    ),
    verb!(
        "observe",
        observe,
        "Record what a live program does: samples, lock waits, polls, block I/O, scheduling",
        wrapper
    ),
    verb!(
        "diagnose",
        diagnose,
        "Find what is wrong with a run, what would remedy it, and what that would gain",
        remedies
    ),
    verb_of_remedies!("rehearse", rehearse, "Replay a run as if a remedy had been in place", false),
    verb_of_remedies!("apply", apply, "Run a command under a remedy, from outside", true),
    verb_of_remedies!(
        "verify",
        verify,
        "Measure whether a remedy helps, or which of two commands is better: interleaved runs, and a verdict",
        false
    ),
    verb!(
        "gate",
        gate,
        "Fail if a command does more than it did: instructions, misses, system calls, exactly and with the cause"
    ),
    verb!("lab", lab, "Run an experiment: workloads by conditions by repetitions, resumable after any interruption"),
    verb!("paper", paper, "The papers' figures and ours side by side: nearmiss-papers has them"),
    verb!("report", report, "Show what a run's misses are and where they come from"),
    verb!("mcp", mcp, "Serve agents: the Model Context Protocol over standard input and output", remedies),
    verb!("schema", schema, "Print the JSON Schema of a record", remedies),
    verb!("generate", generate, "Write man pages and shell completions", false, |args, remedies| {
        generate::run(&args, command(remedies))
    }),
];

const ABOUT: &str = "Finds the cache misses, lock waits and wake-ups that hold a Linux program back";

const AFTER: &str = "Examples:
  nearmiss trace -- sort words.txt     every memory access, on this machine's caches
  nearmiss diagnose                    what is wrong with the newest run, and what would remedy it
  nearmiss doctor                      what works here

Exit status: 0 done; 1 done, and a required condition failed; 2 wrong use or bad input; 3 this machine cannot do it; \
130 interrupted; 143 ended by SIGTERM. trace, observe and apply end as their command does; 125: they failed \
themselves, 126 and 127: the command cannot be executed or found.";

/// The whole command line.
pub fn command(remedies: Remedies) -> Command {
    let command = Command::new("nearmiss")
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .about(ABOUT)
        .after_help(AFTER)
        .max_term_width(100)
        .subcommand_required(true)
        .arg_required_else_help(true);
    let verb = |verb: &Verb| (verb.arguments)(Command::new(verb.name), remedies).about(verb.about);
    command.subcommands(VERBS.iter().map(verb))
}

/// The verb of this name.
pub fn by_name(name: &str) -> Option<&'static Verb> {
    VERBS.iter().find(|verb| verb.name == name)
}
