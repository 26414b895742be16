//! A command recorded to be counted, for `gate`: no run is kept, and what would differ from one recording to the next is
//! held still.
//!
//! Time goes by instructions and leaps while the guest waits. Addresses are not randomised. The command runs once ahead, so
//! that it waits for no file of the host. Pages lie in the order in which they are first touched: a shuffle of them,
//! as a machine in use has it, takes other sets for one page more, and the second level of `sort` then misses 10% more
//! or less.

use super::{Args, Clock, Kept, Subject, filter, not_recorded, recording, tap_config, warm};
use crate::interrupt;
use anyhow::Context;
use nearmiss_analysis::Counted;
use nearmiss_record::machine::{Machine, Placement};
use nearmiss_record::units::Bytes;
use nearmiss_tap::guest::{CommandStatus, GuestCommand};
use nearmiss_tap::session::{Recorded, Session};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

/// Bytes of the end of the command's standard error that an error message quotes from.
const LAST_WORDS: i64 = 2000;
/// Words for the guest's kernel, behind which those for the host's own setting of large pages have no effect.
///
/// `khugepaged` puts a large page in the place of a program's small ones while the program runs. It begins when the first
/// program that could have one enters its list, unless it has scanned within ten seconds: the run ahead has filled that
/// list, and on a slow host, where the guest's time leaps, the ten seconds are over now and then. A program then faults less
/// and misses other lines in one recording out of some. So only memory that a program requests large pages for gets any.
///
/// Without the second word, each system call's stack begins at a random distance.
const STILL: [&str; 2] = ["transparent_hugepage=madvise", "randomize_kstack_offset=off"];

/// Settings of the recordings.
pub struct Gauge {
    /// As cut down to the guest's CPUs.
    pub machine: Machine,
    /// Memory of the guest.
    pub memory: Option<Bytes>,
    /// The command is ended after this time.
    pub timeout: Option<Duration>,
    /// Run the command once ahead.
    pub warm: bool,
    /// The command's environment.
    pub environment: Vec<(OsString, OsString)>,
}

impl Gauge {
    /// Records a command, with these variables set. Errors: it failed, so that its figures mean nothing.
    pub fn record(&self, variables: &[(String, String)], words: &[OsString]) -> anyhow::Result<Counted> {
        let mut machine = self.machine.clone();
        machine.memory.placement = Placement::Sequential;
        let args = self.args(words)?;
        let subject = &Subject::of(&args);
        let config = tap_config(subject, &machine, filter(subject, &machine), Clock::Instructions)?;
        let session = Session::new(config)?.on_progress(recording::shown(None, Kept::Figures));
        let errors = tempfile::tempfile().context("a file for the command's errors")?;
        let command = self.command(&args, variables, errors.try_clone()?)?;
        let whole = |recorded: &Recorded| whole(recorded, errors);
        nearmiss_analysis::count(session, command, &machine, whole).map_err(not_recorded)
    }

    fn args(&self, words: &[OsString]) -> anyhow::Result<Args> {
        let mut args = Args::quiet(&self.machine.name, Path::new(""), words);
        (args.no_trace, args.no_curve, args.no_heap, args.deterministic) = (true, true, true, true);
        args.record.cpus = self.machine.topology.cpus();
        (args.record.memory, args.record.timeout) = (self.memory, self.timeout);
        args.record.kernel_arg = STILL.iter().map(|word| word.parse()).collect::<Result<_, _>>()?;
        if self.warm {
            args.record.warm = warm::WarmArgs::ahead();
        }
        Ok(args)
    }

    /// The command with nothing to read. Its output stays in a file of the guest's: a process that passed it on would
    /// do so at other times in each recording, and its system calls would have to be separated from the command's.
    fn command(&self, args: &Args, variables: &[(String, String)], errors: File) -> anyhow::Result<GuestCommand> {
        let mut command = GuestCommand::inherit(&args.command)?;
        command.env = self.environment.clone();
        command.env.extend(variables.iter().map(|(name, value)| (name.into(), value.into())));
        command.streams = [Some(File::open("/dev/null")?.into()), None, Some(errors.into())];
        command.output_stays = true;
        Ok(command)
    }
}

/// Refuses a recording that does not reach the command's end, or one of a failed command.
fn whole(recorded: &Recorded, mut errors: File) -> Result<(), String> {
    if interrupt::received().is_some() {
        return Err("the recording was interrupted".to_owned());
    }
    if let Some(cut) = &recorded.cut {
        return Err(format!("a recording is not whole: {cut}"));
    }
    let ended = match recorded.exit.status {
        Some(CommandStatus::Exited(0)) => return Ok(()),
        Some(CommandStatus::Exited(status)) => format!("exited with status {status}"),
        Some(CommandStatus::Signaled(signal)) => format!("was killed by signal {signal}"),
        None => "did not come to its end".to_owned(),
    };
    let mut last = String::new();
    let from = errors.seek(SeekFrom::End(0)).map_or(0, |end| end.saturating_sub(LAST_WORDS as u64));
    // Without its words the command still failed.
    let _ = errors.seek(SeekFrom::Start(from)).and_then(|_| errors.read_to_string(&mut last));
    let last_line =
        last.lines().rfind(|line| !line.trim().is_empty()).map(|line| format!(": {line}")).unwrap_or_default();
    Err(format!("a recorded command {ended}{last_line}; a gate compares commands that end with status 0"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use nearmiss_machine::describe::{cut, preset};

    #[test]
    fn every_recording_runs_in_a_guest_without_chance() {
        let machine = cut(&preset("zen4-genoa").unwrap().machine().unwrap(), 1);
        let gauge = Gauge { machine, memory: None, timeout: None, warm: true, environment: Vec::new() };
        let args = gauge.args(&["true".into()]).unwrap();
        let words: Vec<_> = args.record.kernel_arg.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["transparent_hugepage=madvise", "randomize_kstack_offset=off"]);
        assert!(args.deterministic && args.record.cpus == 1);
    }
}
