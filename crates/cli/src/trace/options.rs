//! How a command is recorded in the guest, for every verb that records one.

use super::nodes::NodeArgs;
use super::warm;
use crate::load::LoadArgs;
use crate::window::WindowArgs;
use nearmiss_machine::describe;
use nearmiss_record::units::Bytes;
use nearmiss_tap::guest::KernelArgument;
use std::path::PathBuf;
use std::time::Duration;

/// Options of a recording. In `diagnose` they go with a command or a running process only.
#[derive(Clone, clap::Args)]
#[group(id = "recording", multiple = true, requires = "subject")]
pub(crate) struct RecordArgs {
    /// CPUs of the guest, at most
    #[arg(long, value_name = "N", default_value_t = describe::DEFAULT_CPUS, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cpus: u32,
    /// Record and model less than the whole machine
    #[arg(long, value_name = "PART", value_enum)]
    pub only: Option<Only>,
    /// Memory of the guest, all nodes together [default: half of what is available, at most 12 GiB, rounded down]
    #[arg(long, value_name = "SIZE", value_parser = Bytes::parse)]
    pub memory: Option<Bytes>,
    /// Clock of the guest while a CPU computes. By `instructions` (2 ns each) timers leave the command its time; by
    /// `host` the guest is slow, and programs with many timers may never end
    #[arg(long, value_enum, default_value_t = Clock::Instructions)]
    pub clock: Clock,
    #[command(flatten)]
    pub window: WindowArgs,
    /// Let the command run on to its end when its window closes before
    #[arg(long, help_heading = "Window")]
    pub go_on: bool,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub nodes: NodeArgs,
    #[command(flatten)]
    pub warm: warm::WarmArgs,
    /// End the run when the command has run for this time, such as 90s or 10m
    #[arg(long, value_name = "TIME", value_parser = nearmiss_usage::some_time)]
    pub timeout: Option<Duration>,
    /// Copy the files that the command wrote to this directory instead of throwing them away
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Kernel of the guest: a version in the cache, or the path of an unpacked one
    #[arg(long, value_name = "VERSION|PATH")]
    pub kernel: Option<String>,
    /// A further word for the guest's kernel, such as init_on_alloc=0 or maxcpus=1; again for another one
    #[arg(long, value_name = "ARG")]
    pub kernel_arg: Vec<KernelArgument>,
    /// Another QEMU, from 7.2 on; NEARMISS_QEMU names one for every verb
    #[arg(long, value_name = "PATH")]
    pub qemu: Option<PathBuf>,
    /// Boot the guest instead of restoring one that an earlier recording saved, and save none
    #[arg(long)]
    pub no_saved_boot: bool,
}

impl Default for RecordArgs {
    /// Options as if none were given.
    fn default() -> Self {
        RecordArgs {
            cpus: describe::DEFAULT_CPUS,
            only: None,
            memory: None,
            clock: Clock::Instructions,
            window: WindowArgs::default(),
            go_on: false,
            load: LoadArgs::default(),
            nodes: NodeArgs::default(),
            warm: warm::WarmArgs::default(),
            timeout: None,
            keep: None,
            kernel: None,
            kernel_arg: Vec::new(),
            qemu: None,
            no_saved_boot: false,
        }
    }
}

/// A part of the machine.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Only {
    /// The command's own user-mode references
    User,
}

/// The guest's clock.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Clock {
    /// This machine's
    Host,
    /// Two nanoseconds an instruction
    Instructions,
}

impl Clock {
    /// Name of the clock in records.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Host => "host",
            Clock::Instructions => "instructions",
        }
    }
}

/// A time for the whole answer: `--within`.
pub(crate) fn within(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { nearmiss_usage::time(text) }
}
