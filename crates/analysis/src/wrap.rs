use crate::{Applied, CannotEngage, Engaged, NotEngaged};
use nearmiss_workload::{Finished, ForwardSignals, ProcessGroup};

/// A command that ran to its end under a remedy.
#[derive(Debug)]
pub struct Wrapped {
    /// How it ended, and what it used.
    pub finished: Finished,
    /// Acts of the remedy, or why it was not in place.
    pub engaged: Result<Engaged, NotEngaged>,
}

impl Wrapped {
    /// The wrapper's exit status: the command's own; 125 when the remedy was not in place.
    pub fn exit_code(&self) -> u8 {
        match self.engaged {
            Ok(_) => self.finished.status.wrapper_code(),
            Err(_) => 125,
        }
    }
}

/// Runs a command under a remedy as `env` and `timeout` run theirs: it has the terminal and
/// the standard streams, and signals sent to us reach it.
pub fn wrap(applied: Applied) -> Result<Wrapped, CannotEngage> {
    let Applied { workload, mut engagement } = applied;
    let suspended = workload.group(ProcessGroup::Launcher).launch_suspended()?;
    let pid = suspended.pid();
    engagement.started(pid)?;
    let running = suspended.resume()?;
    let forwarding = ForwardSignals::to(&running);
    let finished = running.wait()?;
    drop(forwarding);
    let engaged = engagement.confirm(pid);
    engagement.end()?;
    Ok(Wrapped { finished, engaged })
}
