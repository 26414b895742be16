//! Taking a snapshot: the process stands still while its memory is copied, and runs on.

use crate::criu::Criu;
use crate::error::complaint;
use crate::functions::Chosen;
use crate::images::Images;
use crate::narrow::{Replacements, TUNABLE};
use crate::process::inode_of;
use crate::sizes::forget_sizes;
use crate::stand_ins::held;
use crate::stats::pause;
use crate::{Obstacle, Process, SnapshotError, files_in_memory, memory, numbers, obstacles};
use rustix::thread::CapabilitySet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// More than CRIU's dump takes besides its copy of the memory: 0.02 s for a program of 8 MB.
const LEAST_PAUSE: Duration = Duration::from_millis(50);
/// Written to learn how fast memory is copied here.
const TRIED: usize = 32 << 20;
const LOG: &str = "dump.log";
/// A shell's status of a program that SIGKILL ended.
const KILLED: i32 = 128 + 9;
/// Snapshots of a process that is inside a function to be replaced at each of them: so many at least ...
const LEAST_TRIES: u32 = 5;
/// ... and so many at most: of a program that spends four fifths of its time there, one snapshot in a hundred fails.
const MOST_TRIES: u32 = 20;
/// No further snapshot than the least is taken of a process that stood still for so long in all.
const LONG_PAUSES: Duration = Duration::from_secs(1);
/// Starts CRIU ahead of all others, since the process stands still for as long: at a load of 14 on two CPUs it then
/// paused for 0.15 s instead of 0.9 s (measured, 74 MiB of redis). And out of the reach of a lack of memory: a process
/// may die with a CRIU that is killed in the middle. Then takes away what CRIU leaves on the host: what it learned of
/// the kernel, unless that was there before, its unfinished file, which serves no other CRIU, and the processes of its
/// own on which it tried the kernel when it was killed.
/// Both happen no matter what else is killed.
const GUARDED: &str = "echo -1000 2>/dev/null >/proc/self/oom_score_adj
left=/run/criu.kdat.tmp
[ -e /run/criu.kdat ] || left=\"$left /run/criu.kdat\"
setsid nice -n -20 \"$@\" &
wait $!
status=$?
kill -KILL -$! 2>/dev/null
rm -f $left
exit $status";

/// A request for a snapshot.
#[derive(Clone, Debug)]
pub struct SnapshotRequest {
    /// Processes; each is taken with all that descend from it.
    pub pids: Vec<i32>,
    /// A snapshot with a longer predicted pause is refused.
    pub most_pause: Option<Duration>,
}

/// A snapshot of one or more processes, each with its descendants.
#[derive(Debug)]
pub struct Snapshot {
    images: Images,
    /// CRIU.
    pub criu: Criu,
    /// The processes named by the user.
    pub roots: Vec<Process>,
    /// The numbers of all processes, with descendants.
    pub pids: Vec<u32>,
    /// How long the processes stood still, one after the other, *measured*.
    pub pauses: Vec<Duration>,
    /// Pipes with the other end in another process: inode, and whether this one writes to it.
    pub pipes: Vec<(u64, bool)>,
    /// Whether a process has a terminal.
    pub terminal: bool,
    /// Files of control groups that a process holds, with their contents.
    pub group_files: Vec<(PathBuf, String)>,
    /// Functions for AVX-512 that were replaced by others.
    pub narrowed: usize,
}

impl Snapshot {
    /// Takes a snapshot of running processes, which run on, unless `objection` to all of them is raised. Errors name what
    /// stands in the way and the way out; then nothing was stopped, or what was runs on.
    pub fn take(
        request: &SnapshotRequest,
        objection: impl FnOnce(&[Process]) -> Result<(), SnapshotError>,
    ) -> Result<Snapshot, SnapshotError> {
        let families = families(request)?;
        let (criu, _) = Criu::fitting()?;
        objection(&families.concat())?;
        let replacements = families.iter().map(|family| replacements(family)).collect::<Result<Vec<_>, _>>()?;
        let images = Images::new()?;
        check_room(&families)?;
        if let Some(most) = request.most_pause {
            check_pause(&families, &images, most)?;
        }
        let all: Vec<&Process> = families.iter().flatten().collect();
        let (pipes, terminal) = (loose_pipes(&all), all.iter().any(|process| has_terminal(process)));
        let group_files = held(&all);
        let dump = |family: &[Process]| {
            let place = images.path().join(family[0].pid.to_string());
            dump(&criu, &place, family).map(|pause| (pause, place))
        };
        let each = families.iter().zip(&replacements);
        let pauses = each.map(|(family, narrow)| runnable(narrow, &family[0], || dump(family)));
        let pauses = pauses.collect::<Result<Vec<_>, _>>()?;
        for family in &families {
            files_in_memory::list(family, &images.path().join(family[0].pid.to_string()))?;
        }
        let pids = all.iter().map(|process| process.pid.unsigned_abs()).collect();
        let roots = families.into_iter().filter_map(|family| family.into_iter().next()).collect();
        let narrowed = replacements.iter().map(Replacements::count).sum();
        Ok(Snapshot { images, criu, roots, pids, pauses, pipes, terminal, group_files, narrowed })
    }

    /// Whether snapshots can be taken here. Errors: no rights, or no CRIU that fits.
    pub fn is_possible() -> Result<(), SnapshotError> {
        has_rights()?;
        Criu::fitting().map(drop)
    }

    /// The place at which guests see the images, once they are shown: a directory of its number for each root.
    pub fn place(&self) -> PathBuf {
        Images::place()
    }

    /// Shows the images to the guests that this thread starts from now on, in the place of another snapshot's.
    pub fn show_to_guests(&self) -> Result<(), SnapshotError> {
        self.images.show_to_guests()
    }

    /// Whether the guest may have given one of the processes' numbers away, so that they get others there.
    pub fn numbers_may_be_taken(&self) -> bool {
        let images: Vec<PathBuf> =
            self.roots.iter().map(|root| self.images.path().join(root.pid.to_string())).collect();
        numbers::may_be_taken(&images)
    }

    /// Bytes of the images.
    pub fn bytes(&self) -> u64 {
        let directories =
            self.roots.iter().filter_map(|root| fs::read_dir(self.images.path().join(root.pid.to_string())).ok());
        directories.flatten().flatten().filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
    }
}

/// Checks that this process may freeze another one, read its memory, and mount a file system. Errors: it may not.
pub fn has_rights() -> Result<(), SnapshotError> {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::SYS_PTRACE;
    let has = rustix::thread::capabilities(None).is_ok_and(|own| own.effective.contains(needed));
    if rustix::process::geteuid().is_root() && has { Ok(()) } else { Err(SnapshotError::NoRights) }
}

/// Returns the processes named by the user with their descendants, each once. Errors: an obstacle.
fn families(request: &SnapshotRequest) -> Result<Vec<Vec<Process>>, SnapshotError> {
    let mut families: Vec<Vec<Process>> = Vec::new();
    for pid in &request.pids {
        let process = Process::of(*pid)?;
        has_rights()?;
        let (name, family) = (process.name.clone(), process.with_descendants());
        if family.iter().any(|process| process.pid == std::process::id() as i32) {
            return Err(SnapshotError::Obstacle { pid: *pid, name, what: Obstacle::Ours.to_string() });
        }
        families.retain(|other| family.iter().all(|process| process.pid != other[0].pid));
        if !families.iter().flatten().any(|process| process.pid == *pid) {
            families.push(family);
        }
    }
    for process in families.iter().flatten() {
        if let Some(what) = obstacles(process) {
            let (pid, name) = (process.pid, process.name.clone());
            return Err(SnapshotError::Obstacle { pid, name, what: what.to_string() });
        }
    }
    Ok(families)
}

/// Functions that take the place of those that the guest's CPU cannot run. Errors: none are known.
fn replacements(family: &[Process]) -> Result<Replacements, SnapshotError> {
    let chosen: Vec<Chosen> = family.iter().filter_map(|process| Chosen::by(process.pid)).collect();
    Replacements::of(&chosen).map_err(|what| {
        let (pid, name) = (family[0].pid, family[0].name.clone());
        SnapshotError::Obstacle { pid, name, what }
    })
}

/// Takes snapshots until no thread stands inside a function that is to be replaced, and replaces them.
fn runnable(
    narrow: &Replacements,
    root: &Process,
    take: impl Fn() -> Result<(Duration, PathBuf), SnapshotError>,
) -> Result<Duration, SnapshotError> {
    let read = SnapshotError::io("read the snapshot");
    let (mut paused, mut tries) = (Duration::ZERO, 0);
    while tries < LEAST_TRIES || tries < MOST_TRIES && paused < LONG_PAUSES {
        tries += 1;
        let (pause, images) = take()?;
        paused += pause;
        if !narrow.is_inside_one(&images).map_err(&read)? {
            narrow.put_into(&images).map_err(&read)?;
            return Ok(paused);
        }
        fs::remove_dir_all(&images).map_err(&read)?;
    }
    let what = format!(
        "stood inside a string function of AVX-512 in each of {tries} snapshots: start it with \
         GLIBC_TUNABLES={TUNABLE}"
    );
    Err(SnapshotError::Obstacle { pid: root.pid, name: root.name.clone(), what })
}

/// Images and guest hold the memory once each.
fn check_room(families: &[Vec<Process>]) -> Result<(), SnapshotError> {
    let needed: u64 = families.iter().flatten().map(|process| process.resident).sum();
    let free = memory::available().unwrap_or(u64::MAX);
    if needed.saturating_mul(2) < free {
        return Ok(());
    }
    Err(SnapshotError::NoRoom { pid: families[0][0].pid, needed_mib: needed >> 20, free_mib: free >> 20 })
}

/// Predicts each pause from the resident memory and from how fast memory is written to the images here.
fn check_pause(families: &[Vec<Process>], images: &Images, most: Duration) -> Result<(), SnapshotError> {
    let (file, begun) = (images.path().join("tried"), Instant::now());
    let tried = fs::write(&file, vec![1; TRIED]).and_then(|()| fs::remove_file(&file));
    tried.map_err(SnapshotError::io("write to the place of the images"))?;
    let pace = begun.elapsed().as_secs_f64() / TRIED as f64;
    for family in families {
        let resident: u64 = family.iter().map(|process| process.resident).sum();
        let predicted = LEAST_PAUSE + Duration::from_secs_f64(pace * resident as f64);
        if predicted > most {
            return Err(SnapshotError::LongPause { pid: family[0].pid, mib: resident >> 20, predicted, allowed: most });
        }
    }
    Ok(())
}

/// Pipes that lead out of the processes, by inode.
fn loose_pipes(processes: &[&Process]) -> Vec<(u64, bool)> {
    let mut ends: Vec<(u64, bool)> = Vec::new();
    for process in processes {
        let pipes =
            process.descriptors().into_iter().filter_map(|(fd, to)| Some((inode_of(&to, "pipe")?, process.writes(fd))));
        ends.extend(pipes);
    }
    ends.sort_unstable();
    ends.dedup();
    let both = |inode| ends.contains(&(inode, true)) && ends.contains(&(inode, false));
    ends.iter().copied().filter(|(inode, _)| !both(*inode)).collect()
}

fn has_terminal(process: &Process) -> bool {
    process.descriptors().iter().any(|(_, to)| to.starts_with("/dev/pts") || to == Path::new("/dev/tty"))
}

/// Mappings of all these processes that live.
fn mappings(family: &[Process]) -> usize {
    let maps = family.iter().filter_map(|process| fs::read_to_string(format!("/proc/{}/maps", process.pid)).ok());
    maps.map(|text| text.lines().count()).sum()
}

/// The processes behind a CRIU that was killed in the middle; they had so many mappings before.
fn behind_killed(family: &[Process], before: usize) -> SnapshotError {
    let ended = family.iter().filter(|process| !Path::new(&format!("/proc/{}/maps", process.pid)).exists()).count();
    let more = mappings(family).saturating_sub(before);
    let (pid, name) = (family[0].pid, family[0].name.clone());
    SnapshotError::Killed { pid, name, of: family.len(), ended, more }
}

/// Lets CRIU copy one process with its descendants. CRIU has a process group of its own and needs nothing of this
/// process once it has begun: a dump that was begun comes to its end whoever is killed, and the process runs on.
fn dump(criu: &Criu, images: &Path, family: &[Process]) -> Result<Duration, SnapshotError> {
    let (root, before) = (&family[0], mappings(family));
    fs::create_dir(images).map_err(SnapshotError::io("make a directory for the snapshot"))?;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", GUARDED, "sh"]).args(criu.words());
    command.args(["dump", "--leave-running", "--shell-job", "--skip-in-flight", "--file-locks", "--ext-unix-sk"]);
    command.args(["--manage-cgroups=ignore", "-v2", "-o", LOG, "-t", &root.pid.to_string(), "-D"]).arg(images);
    command.args(match criu.leaves_connections() {
        true => ["--tcp-close", "--network-lock=skip"].as_slice(),
        false => ["--tcp-established"].as_slice(),
    });
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().map_err(SnapshotError::io("start CRIU"))?;
    if !status.success() {
        let log = fs::read_to_string(images.join(LOG)).unwrap_or_default();
        if status.code() == Some(KILLED) {
            return Err(behind_killed(family, before));
        }
        return Err(SnapshotError::Dump { pid: root.pid, name: root.name.clone(), why: complaint(&log) });
    }
    let files = images.join("files.img");
    fs::read(&files)
        .and_then(|image| fs::write(&files, forget_sizes(&image)))
        .map_err(SnapshotError::io("read the snapshot"))?;
    let stats = fs::read(images.join("stats-dump")).map_err(SnapshotError::io("read CRIU's figures"))?;
    Ok(pause(&stats).unwrap_or_default())
}
