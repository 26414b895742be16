//! Warm-up of a trace ahead of its window, as options, facts and notes.

use nearmiss_record::words::bytes;
use nearmiss_tap::guest::{CommandStatus, GuestCommand, GuestError, WarmEnd, WarmUp};
use nearmiss_tap::session::Recorded;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::time::Duration;

/// A run ahead ends after this time, unless another is given: as the help has it.
const AHEAD: Duration = Duration::from_secs(60);

/// Options of the run ahead.
#[derive(Clone, Default, clap::Args)]
pub struct WarmArgs {
    /// Run the whole command once ahead of the recorded run, so that all its files are in memory. Its writes and its
    /// output are thrown away
    #[arg(long)]
    warm: bool,
    /// End the run ahead after this time, and go on
    #[arg(long, value_name = "TIME", value_parser = nearmiss_usage::some_time, default_value = "60s", requires = "warm")]
    warm_limit: Duration,
}

impl WarmArgs {
    /// As if `--warm` were given.
    pub(super) fn ahead() -> Self {
        WarmArgs { warm: true, warm_limit: AHEAD }
    }

    /// Returns the warm-up in the guest.
    pub(super) fn warm_up(&self) -> WarmUp {
        if self.warm { WarmUp::Run(self.warm_limit) } else { WarmUp::Files }
    }

    /// The command, its input kept for two runs if there will be two.
    pub(super) fn command(&self, words: &[OsString]) -> Result<GuestCommand, GuestError> {
        let mut command = GuestCommand::inherit(words)?;
        if self.warm {
            command.spool_input(self.warm_limit)?;
        }
        Ok(command)
    }
}

/// Returns the notes for the reader.
pub(super) fn notes(recorded: &Recorded) -> Vec<String> {
    let warmth = &recorded.warmth;
    let mut notes = Vec::new();
    if !warmth.files.whole {
        notes.push(format!(
            "the time for reading ahead (a tenth of the boot) was over after {} in {} files: --warm takes the time that \
             the command needs",
            bytes(warmth.files.bytes),
            warmth.files.files
        ));
    }
    notes.extend(warmth.run.as_ref().and_then(|end| of_run(end, recorded.exit.status)));
    if warmth.run.is_some() && std::io::stdin().is_terminal() {
        notes.push("the run ahead had an empty input, because the standard input is a terminal".to_owned());
    }
    notes
}

fn of_run(end: &WarmEnd, recorded: Option<CommandStatus>) -> Option<String> {
    match (end, recorded) {
        (WarmEnd::Failed(what), _) => Some(format!("the guest could not run the command ahead: {what}")),
        (WarmEnd::CutShort, _) => Some("the run ahead was ended by --warm-limit before it was complete".to_owned()),
        (WarmEnd::Ended(ahead), Some(status)) if *ahead != status => Some(format!(
            "the run ahead {}, the recorded run {}: what the second one needs may not be in memory",
            words(*ahead),
            words(status)
        )),
        (WarmEnd::Ended(_), _) => None,
    }
}

fn words(status: CommandStatus) -> String {
    match status {
        CommandStatus::Exited(code) => format!("exited with status {code}"),
        CommandStatus::Signaled(number) => format!("was killed by signal {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ahead_that_ended_otherwise_is_reported() {
        let (fine, failed) = (CommandStatus::Exited(0), CommandStatus::Exited(3));
        assert_eq!(of_run(&WarmEnd::Ended(fine), Some(fine)), None);
        assert_eq!(of_run(&WarmEnd::Ended(fine), None), None, "the recorded run has no end to compare");
        let note = of_run(&WarmEnd::Ended(failed), Some(fine));
        assert!(
            note.is_some_and(|note| note.contains("ahead exited with status 3, the recorded run exited with status 0"))
        );
        assert!(of_run(&WarmEnd::CutShort, Some(fine)).is_some_and(|note| note.contains("--warm-limit")));
        assert!(
            of_run(&WarmEnd::Failed("/run: no".into()), None).is_some_and(|note| note.ends_with("ahead: /run: no"))
        );
    }
}
