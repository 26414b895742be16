//! The verb `apply`: a command under a remedy.

use crate::Remedies;
use crate::by_remedy::{chosen_remedy, of_remedies};
use crate::{exit, interrupt};
use anyhow::Context;
use clap::{ArgMatches, Args as _, Command, FromArgMatches};
use nearmiss_analysis::{Engaged, Remedy, wrap};
use nearmiss_record::run::write_whole;
use nearmiss_workload::{TaskId, Workload};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments that `apply` takes beside a remedy's own options.
#[derive(clap::Args)]
struct ApplyArgs {
    /// Write what was done here, as JSON
    #[arg(long, value_name = "FILE", value_parser = crate::destination::json_file)]
    json: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, required_unless_present = "pid", value_name = "CMD")]
    command: Vec<OsString>,
    /// A process that runs already, instead of a command: until it ends or you interrupt
    #[arg(short, long, value_name = "PID", conflicts_with = "command", value_parser = nearmiss_usage::pid)]
    pid: Option<i32>,
}

/// How often it is looked whether the process is still there.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A subcommand a remedy.
pub fn arguments(command: Command, remedies: Remedies) -> Command {
    let arguments = |command, remedy: &nearmiss_analysis::Remedy| {
        let has_attach = remedy.attach.is_some();
        let arguments = ApplyArgs::augment_args((remedy.options)(command));
        arguments.mut_arg("pid", |pid| pid.hide(!has_attach))
    };
    of_remedies(command, remedies, |remedy| remedy.apply_help, arguments)
}

/// Runs the verb. The command's exit status is ours.
pub fn run(given: &ArgMatches, remedies: Remedies) -> anyhow::Result<ExitCode> {
    let (remedy, given) = chosen_remedy(given, remedies)?;
    let own = ApplyArgs::from_arg_matches(given)?;
    let failed = |code: u8, what: &dyn std::fmt::Display| {
        exit::print_message(&what.to_string());
        Ok(ExitCode::from(code))
    };
    let reported = |code: u8, engaged: &Engaged| {
        exit::report(&engaged.text);
        Ok(ExitCode::from(code))
    };
    if let Some(pid) = own.pid {
        return match attached(remedy, pid, given) {
            Ok(engaged) => {
                record(own.json.as_deref(), &engaged)?;
                reported(0, &engaged)
            }
            Err(error) => failed(125, &error),
        };
    }
    let wrapped = match (remedy.apply)(Workload::new(own.command), given).and_then(wrap) {
        Ok(wrapped) => wrapped,
        Err(error) => return failed(error.exit_code(), &error),
    };
    match &wrapped.engaged {
        Ok(engaged) => {
            record(own.json.as_deref(), engaged)?;
            reported(wrapped.exit_code(), engaged)
        }
        Err(error) => failed(wrapped.exit_code(), error),
    }
}

fn record(file: Option<&Path>, engaged: &Engaged) -> anyhow::Result<()> {
    if let Some(file) = file {
        write_whole(file, engaged.record.to_string().as_bytes())?;
    }
    Ok(())
}

/// A process that runs, by a handle that no later process of the same number takes over.
fn process(number: i32) -> anyhow::Result<OwnedFd> {
    let none = || format!("process {number}: there is no such process; `ps -e` lists them");
    let process = TaskId::of(number).with_context(none)?.process;
    anyhow::ensure!(process == number, "process {number}: it is a thread of process {process}; give that one");
    anyhow::ensure!(number.unsigned_abs() != std::process::id(), "process {number}: it is nearmiss itself");
    let program = std::fs::read_link(format!("/proc/{number}/exe"));
    let is_the_kernels = program.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    anyhow::ensure!(!is_the_kernels, "process {number}: it runs no program; it is the kernel's own, or it has ended");
    let pid = Pid::from_raw(number).with_context(none)?;
    pidfd_open(pid, PidfdFlags::empty()).with_context(none)
}

/// Whether a process has ended, after a while.
fn has_ended(process: &OwnedFd) -> anyhow::Result<bool> {
    match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&LOOK)) {
        Ok(ended) => Ok(ended > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error).context("cannot wait for the process"),
    }
}

/// A process under a remedy, until it ends or a signal comes.
fn attached(remedy: &Remedy, pid: i32, given: &ArgMatches) -> anyhow::Result<Engaged> {
    let attach = remedy.attach.with_context(|| {
        format!("{} cannot be applied to a process that runs already: give its command after --", remedy.name)
    })?;
    let process = process(pid)?;
    // The signal ends the remedy, which then gives back what it changed.
    let signals = interrupt::for_others(1);
    let mut engagement = attach(pid, given)?;
    while interrupt::received().is_none() && !has_ended(&process)? {}
    let engaged = engagement.confirm(pid)?;
    engagement.end()?;
    interrupt::forget();
    drop(signals);
    Ok(engaged)
}
