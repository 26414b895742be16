//! Time of a traced command on this machine without the recorder, beside the model's.

use crate::exit::print_message;
use anyhow::{Context, bail};
use nearmiss_analysis::{Case, Traced, spread};
use nearmiss_record::finding::Measured;
use nearmiss_record::run::Manifest;
use nearmiss_workload::{CpuClock, CpuSet, Finished, Status, Stdio, Workload};
use std::time::{Duration, Instant};

/// A command runs so often.
const RUNS: usize = 5;
/// No further run begins after this time.
const LONG_ENOUGH: Duration = Duration::from_secs(30);

/// Runs the command of a traced run here, as it was recorded: in its directory, on as many CPUs. `None`, and a line
/// that gives the reason, where only parts of the command were recorded: its whole time is no measure of those.
pub fn measure(case: &Case) -> anyhow::Result<Option<Measured>> {
    let traced = case.traced.as_ref().context(
        "--measure compares a model with the clock, and an observed run has no model; trace the command: nearmiss trace -- CMD",
    )?;
    comparable(traced)?;
    let manifest = &traced.manifest;
    if manifest.covered.as_ref().is_some_and(|covered| covered.sentence().is_some()) {
        print_message(
            "--measure is left out: parts of the command were recorded, and the clock takes all of it; --within 0 records it whole",
        );
        return Ok(None);
    }
    let workload = workload(manifest)?;
    print_message(&format!("running the command on this machine, {RUNS} times at most, without input"));
    let begun = Instant::now();
    let mut runs = Vec::new();
    while runs.is_empty() || runs.len() < RUNS && begun.elapsed() < LONG_ENOUGH {
        let (finished, from_exec_ns) = run(&workload)?;
        ended_as_recorded(&finished, manifest)?;
        runs.push(cpu_ns(&finished, from_exec_ns, manifest.only_user));
    }
    Ok(Some(beside_the_model(traced, &runs)))
}

/// Runs it once. Also its CPU time from `exec` on, where the kernel gives such a clock: its accounts have the fork of this
/// process as well, which is larger than most commands.
fn run(workload: &Workload) -> anyhow::Result<(Finished, Option<u64>)> {
    let suspended = workload.launch_suspended()?;
    let mut clock = CpuClock::from_exec(&suspended);
    let finished = suspended.resume()?.wait()?;
    let from_exec_ns = clock.as_mut().and_then(|clock| clock.read().ok());
    Ok((finished, from_exec_ns))
}

/// Checks that the clock of this machine can measure the run.
fn comparable(traced: &Traced) -> anyhow::Result<()> {
    let (run, manifest) = (traced.run.path().display(), &traced.manifest);
    let machine = traced.machine();
    if !nearmiss_host::NAMES.contains(&machine.name.as_str()) {
        let name = &machine.name;
        bail!("--measure: {run} is modelled on {name}, and no clock here measures its time; add -m host");
    }
    if manifest.cut.is_some() || manifest.records_left_out > 0 {
        bail!(
            "--measure: {run} is a part of what its command did, and the time of that part is unknown; leave --measure out"
        );
    }
    if manifest.command.is_empty() {
        bail!("--measure: {run} does not name its command; leave --measure out");
    }
    Ok(())
}

fn workload(manifest: &Manifest) -> anyhow::Result<Workload> {
    let quiet = Workload::new(manifest.command.iter().map(String::as_str)).cwd(&manifest.cwd);
    let quiet = quiet.stdin(Stdio::Null).stdout(Stdio::Null).stderr(Stdio::Null);
    let allowed = CpuSet::allowed()?;
    let recorded = manifest.cpus as usize;
    // The first CPUs have the interrupts of most devices.
    let others = allowed.len().saturating_sub(recorded);
    Ok(if recorded > 0 && others > 0 { quiet.pin(allowed.iter().skip(others).collect()) } else { quiet })
}

/// A command that does something else here takes another time.
fn ended_as_recorded(finished: &Finished, manifest: &Manifest) -> anyhow::Result<()> {
    let recorded = match (manifest.exit_status, manifest.signal) {
        (Some(code), _) => Status::Exited(code as u8),
        (None, Some(signal)) => Status::Signaled(signal),
        (None, None) => return Ok(()),
    };
    if finished.status != recorded {
        let (here, there) = (finished.status.in_words(), recorded.in_words());
        bail!("--measure: the command {here} on this machine, and {there} in the guest; leave --measure out");
    }
    Ok(())
}

fn cpu_ns(finished: &Finished, from_exec_ns: Option<u64>, only_user: bool) -> u64 {
    match from_exec_ns {
        // The accounts of user mode are the whole by the timer's ticks, and are no more than the whole.
        Some(whole) if only_user => finished.user_ns.min(whole),
        Some(whole) => whole,
        None => finished.user_ns + if only_user { 0 } else { finished.system_ns },
    }
}

fn beside_the_model(traced: &Traced, runs: &[u64]) -> Measured {
    let (median, least, most) = spread(runs.iter().map(|ns| *ns as f64));
    Measured {
        cpu_ns: median as u64,
        least_ns: least as u64,
        most_ns: most as u64,
        runs: runs.len() as u32,
        only_user: traced.manifest.only_user,
        cycles: (median * f64::from(traced.machine().clock_mhz) / 1e3).round() as u64,
        modelled_cycles: traced.model.totals.cycles,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn manifest(command: &[&str], exit_status: i32) -> Manifest {
        Manifest {
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            cwd: "/".to_owned(),
            cpus: 1,
            exit_status: Some(exit_status),
            ..Manifest::default()
        }
    }

    fn ran(manifest: &Manifest) -> Finished {
        workload(manifest).unwrap().launch_suspended().unwrap().resume().unwrap().wait().unwrap()
    }

    #[test]
    fn a_command_that_ends_otherwise_here_is_not_compared() {
        let recorded = manifest(&["sh", "-c", "exit 3"], 3);
        ended_as_recorded(&ran(&recorded), &recorded).unwrap();
        let other = manifest(&["sh", "-c", "exit 3"], 0);
        let message = ended_as_recorded(&ran(&other), &other).unwrap_err().to_string();
        let wanted = "the command exited with status 3 on this machine, and exited with status 0 in the guest";
        assert!(message.contains(wanted), "{message}");
    }

    #[test]
    fn a_command_runs_in_its_directory_and_on_as_many_cpus_as_in_the_guest() {
        let one = manifest(&["sh", "-c", "test $(pwd) = / && test $(nproc) = 1"], 0);
        assert!(ran(&one).status.success());
    }

    #[test]
    fn the_time_of_user_mode_leaves_the_kernel_out() {
        let used = Finished { user_ns: 5, system_ns: 3, ..ran(&manifest(&["true"], 0)) };
        assert_eq!((cpu_ns(&used, None, false), cpu_ns(&used, None, true)), (8, 5));
        assert_eq!((cpu_ns(&used, Some(6), false), cpu_ns(&used, Some(6), true)), (6, 5));
    }

    /// The time before exec is the difference of two clocks of one run, so that a busy machine cancels out.
    #[test]
    fn counts_are_the_commands_from_exec_on() {
        // A fork copies the tables of these pages, and its end takes them down.
        let ballast = vec![1u8; 256 << 20];
        for turns in ["20000", "400000"] {
            let command = ["/bin/sh", "-c", "i=0; while [ $i -lt $0 ]; do i=$((i+1)); done", turns];
            let workload = workload(&manifest(&command, 0)).unwrap();
            for _ in 0..5 {
                let (finished, from_exec) = super::run(&workload).unwrap();
                let Some(from_exec) = from_exec else {
                    eprintln!("skipped: the kernel gives no clock from exec on");
                    return;
                };
                let whole = finished.user_ns + finished.system_ns;
                // The clock runs on to the last instruction of the exit, a little after the accounts are closed, and
                // counts what a host took from the CPU meanwhile, which the accounts leave out.
                let most = whole + (whole / 20).max(1_000_000);
                assert!(from_exec < most, "{from_exec} ns from exec on, {whole} ns in all, {turns} turns");
                // The loop of half a second takes far longer than any fork.
                let least = if turns == "400000" { whole / 2 } else { 0 };
                assert!(from_exec > least, "{from_exec} ns from exec on, {whole} ns in all, {turns} turns");
            }
        }
        assert_eq!(ballast[12345], 1);
    }
}
