//! The verb `gate`: a performance test with counted figures, with limits and with causes.

mod commands;
mod outputs;
mod recordings;
mod rounds;

use crate::destination::json_file;
use crate::exit::CONDITION_FAILED;
use anyhow::bail;
use clap::ArgGroup;
use commands::Gated;
use nearmiss_gate::{LimitError, Limits};
use nearmiss_record::gate::{GateRecord, Recorder};
use nearmiss_record::units::Bytes;
use outputs::Outputs;
use rounds::Rounds;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Figures are of this machine, unless another is named.
const MACHINE: &str = "zen4-genoa";

/// Most recordings of a side.
const AT_MOST: u16 = 10;

/// Arguments of `nearmiss gate`.
#[derive(clap::Args)]
#[command(group = ArgGroup::new("subject").args(["old", "command"]).required(true), after_help = "Examples:
  nearmiss gate './old words' './new words'           two builds: exit code 1 if the new does more
  nearmiss gate --write base.json -- ./program        keep figures, for the repository
  nearmiss gate --against base.json -- ./program      compare with them, in CI
  nearmiss gate --max-worse instructions=0.5%,syscalls=0 './old' './new'
  nearmiss gate --markdown './old' './new' > gate.md  for a pull request
  nearmiss gate --junit gate.xml --sarif gate.sarif './old' './new'

Figures are modelled: counted in a guest of a described machine, so that they do not depend on the \
host. Each side is recorded at least 3 times (--recordings), with the same addresses, page placement \
and clock. More recordings are made, 10 at most (--at-most), while a mean is beyond its limit and \
they could make that certain. A gate fails only after 5 recordings of the new side, unless \
--at-most is less. A difference inside the noise is no difference.

A limit is a share (2%) or a number of events (0). It is for one of these figures: instructions, \
loads, stores, l1 to l4, misses (of all levels), coherence (lines from other CPUs), cycles, each \
also with user. or kernel. ahead; walks, syscalls, syscalls.NAME, faults, switches; or for all \
figures of a mode: user, kernel. The narrowest name decides.

The command has an empty input, its output is thrown away, and of the environment it has PATH, \
HOME, USER, LOGNAME, TMPDIR, TZ, LANG, LC_*, LD_LIBRARY_PATH and what --env names.

Exit status: 0 no figure is beyond its limit; 1 one is; 2 wrong use or bad input, also a command \
that fails. docs/guide/ci.md has workflows for GitHub and GitLab.")]
pub struct Args {
    /// The command as it was
    #[arg(value_name = "OLD", value_parser = commands::text, requires = "new", conflicts_with_all = ["against", "write"])]
    old: Option<String>,
    /// The command as it is now
    #[arg(value_name = "NEW", value_parser = commands::text)]
    new: Option<String>,
    /// Compare with the figures in this file
    #[arg(long, value_name = "FILE", requires = "command", conflicts_with = "write")]
    against: Option<PathBuf>,
    /// Record the command, and write its figures to this file
    #[arg(long, value_name = "FILE", requires = "command", value_parser = json_file)]
    write: Option<PathBuf>,
    /// How much worse a figure may be: LIMIT for all, FIGURE=LIMIT for one; several with commas between them [default: 2%]
    #[arg(long, value_name = "[FIGURE=]LIMIT", value_parser = a_limit)]
    max_worse: Vec<String>,
    /// Machine to model: a preset (`nearmiss machine list`), or a machine file [default: zen4-genoa, or the baseline's]
    #[arg(short, long, value_name = "MACHINE", value_parser = named_machine)]
    machine: Option<String>,
    /// CPUs of the guest, at most [default: 1, of a command with threads 2; or the
    /// baseline's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    cpus: Option<u32>,
    /// Record each side at least so often
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(2..=100))]
    recordings: u16,
    /// Record each side at most so often [default: 10, or --recordings where that is more]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=100))]
    at_most: Option<u16>,
    /// Pass this variable of the environment on to the command (repeatable)
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// Do not run the command once ahead: reads of its files then count, and are noisier
    #[arg(long)]
    cold: bool,
    /// Memory of the guest, all nodes together [default: half of what is available, at most 12 GiB, rounded down]
    #[arg(long, value_name = "SIZE", value_parser = Bytes::parse)]
    memory: Option<Bytes>,
    /// End a recording when its command has run for this time, such as 90s or 10m
    #[arg(long, value_name = "TIME", value_parser = nearmiss_usage::some_time)]
    timeout: Option<Duration>,
    #[command(flatten)]
    outputs: Outputs,
    /// The command and its arguments, with --against or --write
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut limits = Limits::default();
    args.max_worse.iter().try_for_each(|text| limits.add(text))?;
    let [old, new] = [&args.old, &args.new].map(|text| text.as_deref());
    if let Some((old, new)) = old.zip(new) {
        let [old, new] = commands::both(old, new)?;
        let rounds = Rounds::new(&args, MACHINE, None)?;
        return written(&args.outputs, rounds.compare(&old, &new, &limits)?);
    }
    let command = Gated::of(&args.command)?;
    match (&args.against, &args.write) {
        (Some(file), _) => {
            let baseline = outputs::read_baseline(file)?;
            args.is_comparable(file, &baseline.recorder)?;
            let rounds = Rounds::new(&args, &baseline.recorder.machine, Some(baseline.recorder.cpus))?;
            written(&args.outputs, rounds.compare_with(&baseline, &command, &limits)?)
        }
        (None, Some(file)) => {
            let baseline = Rounds::new(&args, MACHINE, None)?.baseline(&command)?;
            outputs::write_baseline(file, &baseline)?;
            Ok(ExitCode::SUCCESS)
        }
        (None, None) => bail!(
            "a command alone is compared with nothing: give --against FILE, or --write FILE first; or two commands, \
             `nearmiss gate './old' './new'`"
        ),
    }
}

impl Args {
    /// Returns the most recordings of a side. Errors: fewer than the least.
    fn most(&self) -> anyhow::Result<u16> {
        match self.at_most {
            Some(most) if most < self.recordings => {
                bail!("--at-most {most} is less than --recordings {}: raise one or lower the other", self.recordings)
            }
            most => Ok(most.unwrap_or(AT_MOST.max(self.recordings))),
        }
    }

    /// Errors: the machine is another one than the baseline's, so that the machines would be compared.
    fn is_comparable(&self, file: &Path, recorder: &Recorder) -> anyhow::Result<()> {
        // A preset and a copy of its file have one name.
        let named = |machine: &str| Path::new(machine).file_stem().map(OsString::from);
        match &self.machine {
            Some(machine) if named(machine) != named(&recorder.machine) => bail!(
                "-m {machine}: the figures of {} are of {}; leave -m away, or write a baseline of {machine} with --write",
                file.display(),
                recorder.machine
            ),
            _ => Ok(()),
        }
    }
}

fn written(outputs: &Outputs, record: GateRecord) -> anyhow::Result<ExitCode> {
    outputs.write(&record)?;
    Ok(if record.passed { ExitCode::SUCCESS } else { ExitCode::from(CONDITION_FAILED) })
}

/// A limit that is one, as typed.
fn a_limit(text: &str) -> Result<String, LimitError> {
    Limits::default().add(text).map(|()| text.to_owned())
}

/// A machine that is the same everywhere.
fn named_machine(name: &str) -> Result<String, String> {
    if nearmiss_host::NAMES.contains(&name) {
        return Err(format!(
            "this machine is another one on each host that runs CI, and so would the figures be; name one of `nearmiss \
             machine list`, such as {MACHINE}"
        ));
    }
    Ok(name.to_owned())
}
