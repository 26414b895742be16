//! A server and its load inside the guest, which has no network to the host: nearmiss itself runs there, starts the
//! server, waits until the server answers, and opens and closes the window around the load by marks. Processes of a
//! snapshot are restored in the same way, in the place of the server's start.

use crate::explain;
use crate::load::LoadArgs;
use crate::snapshot::{self, RestoreArgs};
use crate::trace::Apart;
use clap::{Args as _, Command, FromArgMatches};
use nearmiss_snapshot::{Restoration, Snapshot};
use nearmiss_tap::guest::KernelImage;
use nearmiss_tap::window::{Mark, Start, Window};
use nearmiss_workload::{CpuSet, Load, ProcessGroup, Running, Serving, Stdio, Workload};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// First argument of this program when it conducts; no verb has this name.
const NAME: &str = "conduct-in-the-guest";
/// First argument where it only starts a command, as `apply` starts its own.
const LAUNCHER: &str = "launch-in-the-guest";
/// The marks around the load; programs seldom number theirs so high.
const OPENS: u16 = 4094;
const CLOSES: u16 = 4095;
/// A mark's instruction carries this and its number (`native/include/nearmiss_trigger.h`).
const MARK_BASE: u32 = 0x4e4d_1000;
/// How often the load is looked at: its end is noticed at once all the same.
const LOOK: Duration = Duration::from_secs(1);
/// Time that a server may take to end after the request, which is far longer than outside.
const STOPS_WITHIN: Duration = Duration::from_secs(60);

/// A server and its load.
#[derive(clap::Args)]
struct Args {
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    restore: RestoreArgs,
    /// CPUs of the server
    #[arg(long)]
    server_cpus: Option<CpuSet>,
    /// CPUs of the load
    #[arg(long)]
    load_cpus: Option<CpuSet>,
    /// Command that starts or restores the server
    #[arg(last = true, required = true)]
    server: Vec<OsString>,
}

/// The command that runs in the guest, and its window: that of the load. `apart`: CPUs of server and load.
pub fn conducted(
    load: &LoadArgs,
    apart: Option<Apart>,
    server: &[OsString],
) -> anyhow::Result<(Vec<OsString>, Window)> {
    let own = std::env::current_exe()?;
    let cpus = |range: std::ops::Range<u32>| OsString::from(format!("{}-{}", range.start, range.end - 1));
    let cpus =
        apart.map(|Apart { server, load }| ["--server-cpus".into(), cpus(server), "--load-cpus".into(), cpus(load)]);
    let options = load.words().into_iter().chain(cpus.into_iter().flatten()).chain(["--".into()]);
    let words = [own.into_os_string(), NAME.into()].into_iter().chain(options).chain(server.iter().cloned());
    let window = Window { from: Start::Mark(Mark(OPENS)), length: None, until: Some(Mark(CLOSES)) };
    Ok((words.collect(), window))
}

/// The command that restores a snapshot in the guest, and its window: from then on, or that of the load.
pub fn restored(
    load: &LoadArgs,
    apart: Option<Apart>,
    snapshot: &Snapshot,
    kernel: &KernelImage,
) -> anyhow::Result<(Vec<OsString>, Window)> {
    let (mut words, mut window) = conducted(load, apart, snapshot.criu.words())?;
    words.splice(2..2, snapshot::words(snapshot, kernel)?);
    // CRIU's work is several times as long when the tap follows it.
    window.from = Start::Near(Mark(OPENS));
    Ok((words, window))
}

/// The command that runs in the guest where the same command under a remedy is compared with it: both are started alike.
pub fn launched(command: &[OsString]) -> anyhow::Result<Vec<OsString>> {
    let own = std::env::current_exe()?.into_os_string();
    Ok([own, LAUNCHER.into()].into_iter().chain(command.iter().cloned()).collect())
}

/// Conducts or launches, if this process was started for that.
pub fn run_if_requested() -> Option<ExitCode> {
    let name = std::env::args_os().nth(1)?;
    let done = match name.to_str()? {
        NAME => conduct(),
        LAUNCHER => launch(),
        _ => return None,
    };
    Some(done.unwrap_or_else(|error| explain::explain(&error, true)))
}

/// The exit status is the command's.
fn launch() -> anyhow::Result<ExitCode> {
    let workload = Workload::new(std::env::args_os().skip(2)).group(ProcessGroup::Launcher);
    Ok(ExitCode::from(workload.launch_suspended()?.resume()?.wait()?.status.wrapper_code()))
}

/// The exit status is the load's.
fn conduct() -> anyhow::Result<ExitCode> {
    let given = Args::augment_args(Command::new(NAME)).try_get_matches_from(std::env::args_os().skip(1))?;
    let Args { load, restore, server_cpus, load_cpus, server } = Args::from_arg_matches(&given)?;
    if let Some(restoration) = restore.restoration(&server) {
        if restoration.needs_own_numbers() && std::process::id() != 1 {
            return resume_among_own_numbers();
        }
        return resume(&restoration, load.load()?);
    }
    let Some(mut load) = load.load()? else { anyhow::bail!("{NAME} needs a load") };
    load.workload = load.workload.stdin(Stdio::Null);
    let mut server = Workload::new(server).stdin(Stdio::Null).whole_tree();
    if let Some((server_cpus, load_cpus)) = server_cpus.zip(load_cpus) {
        server = server.pin(server_cpus);
        load.workload = load.workload.pin(load_cpus);
    }
    under_load(Serving::start(server.launch_suspended()?, &load)?, &load)
}

/// The exit status is the load's.
fn under_load(mut serving: Serving, load: &Load) -> anyhow::Result<ExitCode> {
    let never = AtomicBool::new(false);
    serving.wait_until_ready(load, &never)?;
    mark::<{ MARK_BASE | OPENS as u32 }>();
    let loaded = serving.under(load, &never, || LOOK);
    mark::<{ MARK_BASE | CLOSES as u32 }>();
    serving.stop(STOPS_WITHIN)?;
    Ok(ExitCode::from(loaded?.load.status.wrapper_code()))
}

/// Starts this program again as the first process of a PID namespace, in which it resumes the same processes.
fn resume_among_own_numbers() -> anyhow::Result<ExitCode> {
    let mut own = std::process::Command::new(std::env::current_exe()?);
    own.args(std::env::args_os().skip(1));
    Ok(ExitCode::from(Restoration::among_own_numbers(own)?))
}

/// Restores processes of a snapshot, and waits for the end of the first of them or of the load. The exit status is that
/// one's.
fn resume(restoration: &Restoration, load: Option<Load>) -> anyhow::Result<ExitCode> {
    restoration.restore()?;
    let Some(pid) = restoration.pids.first() else { anyhow::bail!("{NAME} restores nothing") };
    let restored = Running::adopt(*pid)?;
    let Some(mut load) = load else {
        mark::<{ MARK_BASE | OPENS as u32 }>();
        let finished = restored.wait()?;
        mark::<{ MARK_BASE | CLOSES as u32 }>();
        return Ok(ExitCode::from(finished.status.wrapper_code()));
    };
    load.workload = load.workload.stdin(Stdio::Null);
    under_load(Serving::of(restored), &load)
}

/// `nopl imm32(%rax,%rax,1)`, which the tap recognises.
fn mark<const IMMEDIATE: u32>() {
    // SAFETY: the instruction does nothing, and forms no address.
    unsafe { std::arch::asm!(".byte 0x0f, 0x1f, 0x84, 0x00", ".long {}", const IMMEDIATE) };
}
