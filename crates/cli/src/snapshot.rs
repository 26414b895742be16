//! Running processes as the subject of `trace` and `diagnose`: a snapshot here, which is restored in the guest.

use crate::Remedies;
use crate::exit::{CannotHere, print_message};
use crate::load::LoadArgs;
use anyhow::ensure;
use nearmiss_record::finding::Findings;
use nearmiss_snapshot::{Process, Restoration, Snapshot, SnapshotError, SnapshotRequest, waits_only};
use nearmiss_tap::guest::KernelImage;
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

/// Who is taken a snapshot of.
#[derive(Clone, Default, clap::Args)]
pub struct SnapshotArgs {
    /// Instead of a command: a process that runs, with all that descend from it. A snapshot is taken of it, which runs on
    /// in the guest; the process itself runs on here. Needs root. Again for another one
    #[arg(
        short,
        long = "pid",
        value_name = "PID",
        value_parser = nearmiss_usage::pid,
        group = "subject",
        conflicts_with = "warm",
        help_heading = "Running processes"
    )]
    pub pid: Vec<i32>,
    /// Take no snapshot with a longer predicted pause
    #[arg(long, value_name = "TIME", value_parser = nearmiss_usage::some_time, requires = "pid", help_heading = "Running processes")]
    pause_at_most: Option<Duration>,
}

impl SnapshotArgs {
    /// Whether a running process is the subject.
    pub fn is_given(&self) -> bool {
        !self.pid.is_empty()
    }

    /// Takes the snapshot, if one is requested, and reports how long the process stood still. Errors: the process only
    /// waits, and no load is given that it would work for; something in it cannot be restored.
    pub fn take(&self, load: &LoadArgs) -> anyhow::Result<Option<Rc<Snapshot>>> {
        if !self.is_given() {
            return Ok(None);
        }
        let request = SnapshotRequest { pids: self.pid.clone(), most_pause: self.pause_at_most };
        let snapshot = Snapshot::take(&request, |processes| match load.is_given() {
            true => Ok(()),
            false => waits_only(processes).map_or(Ok(()), |waits| Err(SnapshotError::Waits(waits))),
        });
        let snapshot = snapshot.map_err(classified)?;
        snapshot.show_to_guests()?;
        print_message(&paused(&snapshot));
        Ok(Some(Rc::new(snapshot)))
    }
}

/// Takes a snapshot of a command that runs here; `None` while it only waits.
pub fn of_running_command(pid: i32) -> Result<Option<Snapshot>, SnapshotError> {
    let wanted = SnapshotRequest { pids: vec![pid], most_pause: None };
    let works = |processes: &[Process]| waits_only(processes).map_or(Ok(()), |waits| Err(SnapshotError::Waits(waits)));
    match Snapshot::take(&wanted, works) {
        Err(SnapshotError::Waits(_)) => Ok(None),
        taken => taken.map(Some),
    }
}

/// A status of its own marks an inability of this machine.
fn classified(error: SnapshotError) -> anyhow::Error {
    use SnapshotError as E;
    match error {
        E::NoCriu | E::BadCriu(..) | E::TooOld { .. } | E::NoRights | E::NoRoom { .. } => {
            CannotHere(error.to_string()).into()
        }
        error => error.into(),
    }
}

fn paused(snapshot: &Snapshot) -> String {
    let of = |(process, pause): (&Process, &Duration)| {
        format!("process {} ({}) paused {:.2} s (measured)", process.pid, process.name, pause.as_secs_f64())
    };
    let each: Vec<String> = snapshot.roots.iter().zip(&snapshot.pauses).map(of).collect();
    let mib = snapshot.bytes().div_ceil(1 << 20);
    let all = if snapshot.pids.len() > 1 { format!("{} processes, ", snapshot.pids.len()) } else { String::new() };
    format!("{} for its snapshot of {all}{mib} MiB, and runs on", each.join(", "))
}

/// The command line of the first process, as a run names its command.
pub fn command_of(snapshot: &Snapshot) -> Vec<OsString> {
    snapshot.roots.first().map(|process| process.command.clone()).unwrap_or_default()
}

/// A note for the head of a report.
pub fn note(snapshot: &Snapshot) -> String {
    let pids: Vec<String> = snapshot.roots.iter().map(|process| process.pid.to_string()).collect();
    let pauses: Vec<String> = snapshot.pauses.iter().map(|pause| format!("{:.2} s", pause.as_secs_f64())).collect();
    let narrowed = match snapshot.narrowed {
        0 => String::new(),
        count => format!(
            " {count} functions of its C library that were chosen for AVX-512 were replaced by those for AVX2, which a CPU \
             without AVX-512 runs."
        ),
    };
    let renumbered = match snapshot.numbers_may_be_taken() {
        true => " It had other numbers there: its own are small, and the guest's first programs have them.",
        false => "",
    };
    format!(
        "Process {} ran on in the guest from a snapshot, for which it paused {} (measured). What it allocated before has no \
         names: objects of the heap are distinguished by their addresses alone.{narrowed}{renumbered}",
        pids.join(", "),
        pauses.join(", ")
    )
}

/// Makes findings those of a process that runs: a remedy that can act on it gives the command; the others are noted to
/// act from the next start on. A comparison of two runs of a command has no command to run.
pub fn of_running(findings: &mut Findings, snapshot: &Snapshot, remedies: Remedies) {
    let Some(pid) = snapshot.roots.first().map(|process| process.pid.to_string()) else { return };
    let mut later: Vec<String> = Vec::new();
    for finding in &mut findings.findings {
        let attaches = remedies.iter().any(|remedy| remedy.name == finding.remedy && remedy.attach.is_some());
        let Some(apply) = finding.apply.as_mut() else { continue };
        finding.verify = None;
        if attaches {
            let options = apply.iter().position(|word| word == "--").unwrap_or(apply.len());
            apply.truncate(options);
            apply.extend(["-p".to_owned(), pid.clone()]);
        } else if !later.contains(&finding.remedy) {
            later.push(finding.remedy.clone());
        }
    }
    if !later.is_empty() {
        let act = if later.len() == 1 { "acts" } else { "act" };
        findings
            .notes
            .push(format!("A process that runs stays as it is: {} {act} from the next start on.", later.join(", ")));
    }
}

/// Options of the conductor's own: all that the guest restores.
#[derive(clap::Args)]
pub struct RestoreArgs {
    #[arg(long)]
    images: Option<PathBuf>,
    #[arg(long = "restored", requires = "images")]
    pids: Vec<i32>,
    #[arg(long)]
    module: Option<PathBuf>,
    #[arg(long)]
    written_pipe: Vec<u64>,
    #[arg(long)]
    read_pipe: Vec<u64>,
    #[arg(long)]
    terminal: bool,
    /// Path and content, in turn
    #[arg(long, num_args = 2, allow_hyphen_values = true)]
    group_file: Vec<String>,
}

impl RestoreArgs {
    /// The restoration with the program's words, if `-p` was given.
    pub fn restoration(&self, criu: &[OsString]) -> Option<Restoration> {
        let pipes = |inodes: &[u64], writes| inodes.iter().map(|inode| (*inode, writes)).collect::<Vec<_>>();
        Some(Restoration {
            criu: criu.to_vec(),
            images: self.images.clone()?,
            pids: self.pids.clone(),
            module: self.module.clone(),
            pipes: [pipes(&self.written_pipe, true), pipes(&self.read_pipe, false)].concat(),
            terminal: self.terminal,
            group_files: self
                .group_file
                .chunks_exact(2)
                .map(|pair| (pair[0].clone().into(), pair[1].clone()))
                .collect(),
        })
    }
}

/// Returns the snapshot as words for the guest. Errors: its kernel lacks a module.
pub fn words(snapshot: &Snapshot, kernel: &KernelImage) -> anyhow::Result<Vec<OsString>> {
    let module = kernel.netlink_module();
    let builtin =
        "the guest's kernel was unpacked without nfnetlink.ko, which CRIU needs: run `nearmiss kernel --unpack`";
    let has_modules = kernel.directory().join("overlay.ko").exists();
    ensure!(module.is_some() || !has_modules, CannotHere(builtin.to_owned()));
    let mut words: Vec<OsString> = vec!["--images".into(), snapshot.place().into()];
    let mut put = |name: &str, value: OsString| words.extend([name.into(), value]);
    module.into_iter().for_each(|module| put("--module", module.into()));
    snapshot.roots.iter().for_each(|process| put("--restored", process.pid.to_string().into()));
    for (inode, writes) in &snapshot.pipes {
        put(if *writes { "--written-pipe" } else { "--read-pipe" }, inode.to_string().into());
    }
    for (path, content) in &snapshot.group_files {
        words.extend(["--group-file".into(), path.clone().into(), content.into()]);
    }
    if snapshot.terminal {
        words.push("--terminal".into());
    }
    Ok(words)
}
