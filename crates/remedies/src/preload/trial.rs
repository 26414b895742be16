//! Whether preloaded libraries work on this machine: a row of doctor.

use nearmiss_analysis::{Ability, CannotEngage, Engagement, Inability};
use nearmiss_workload::{Stdio, Workload};

/// Runs `true` under a remedy: the row reports whether the remedy's libraries were loaded and answered.
pub fn try_on_true<E: Engagement>(
    name: &'static str,
    apply: impl FnOnce(Workload) -> Result<(Workload, E), CannotEngage>,
) -> Ability {
    let todo = "export TMPDIR=DIR, a directory that is not mounted noexec".to_owned();
    let state = match run(apply) {
        Ok(()) => Ok("tried on `true`: loaded, and answers".to_owned()),
        Err(why) => Err(Inability { why, todo }),
    };
    Ability { name, state }
}

fn run<E: Engagement>(apply: impl FnOnce(Workload) -> Result<(Workload, E), CannotEngage>) -> Result<(), String> {
    let quiet = Workload::new(["true"]).stdin(Stdio::Null).stdout(Stdio::Null).stderr(Stdio::Null);
    let (workload, mut engagement) = apply(quiet).map_err(|error| error.to_string())?;
    let suspended = workload.launch_suspended().map_err(|error| error.to_string())?;
    let pid = suspended.pid();
    suspended.resume().and_then(|running| running.wait()).map_err(|error| error.to_string())?;
    engagement.confirm(pid).map(|_| ()).map_err(|error| error.to_string())
}
