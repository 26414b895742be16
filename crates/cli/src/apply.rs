//! The verb `apply`: a command under a remedy.

use crate::Remedies;
use crate::verbs::{asked, of_remedies};
use clap::{ArgMatches, Args as _, Command, FromArgMatches};
use nearmiss_record::run::write_whole;
use nearmiss_remedy::wrap;
use nearmiss_workload::Workload;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// What `apply` takes beside a remedy's own options.
#[derive(clap::Args)]
struct Own {
    /// Write what was done here, as JSON
    #[arg(long, value_name = "FILE", value_parser = crate::json_file::json_file)]
    json: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// A subcommand a remedy.
pub fn arguments(command: Command, remedies: Remedies) -> Command {
    let arguments = |command, remedy: &nearmiss_remedy::Remedy| Own::augment_args((remedy.options)(command));
    of_remedies(command, remedies, |remedy| remedy.apply_help, arguments)
}

/// Runs the verb. The command's exit status is ours.
pub fn run(given: &ArgMatches, remedies: Remedies) -> anyhow::Result<ExitCode> {
    let (remedy, given) = asked(given, remedies)?;
    let own = Own::from_arg_matches(given)?;
    let said = |code: u8, what: &dyn std::fmt::Display| {
        crate::exit::say(&what.to_string());
        Ok(ExitCode::from(code))
    };
    let wrapped = match (remedy.apply)(Workload::new(own.command), given).and_then(wrap) {
        Ok(wrapped) => wrapped,
        Err(error) => return said(error.exit_code(), &error),
    };
    match &wrapped.engaged {
        Ok(engaged) => {
            if let Some(file) = own.json {
                write_whole(&file, engaged.record.to_string().as_bytes())?;
            }
            said(wrapped.exit_code(), &engaged.text)
        }
        Err(error) => said(wrapped.exit_code(), error),
    }
}
