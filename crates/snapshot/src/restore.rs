//! Restoring a snapshot, in the guest.

use crate::SnapshotError;
use crate::criu::command;
use crate::error::complaint;
use crate::terminal::Terminal;
use crate::{files_in_memory, numbers, stand_ins};
use rustix::fs::{Mode, OFlags};
use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Directory in the guest's own memory.
const WORK: &str = "/run";
const LOG: &str = "restore.log";
/// The largest there is: a host's numbers may be beyond the guest's.
const PID_MAX: &str = "4194304";

/// All that the guest needs in order to restore processes.
#[derive(Clone, Debug)]
pub struct Restoration {
    /// The words that start CRIU.
    pub criu: Vec<OsString>,
    /// A directory of images of each process's number.
    pub images: PathBuf,
    /// The processes.
    pub pids: Vec<i32>,
    /// The kernel's module that CRIU needs.
    pub module: Option<PathBuf>,
    /// Pipes, as [`Snapshot::pipes`](crate::Snapshot::pipes).
    pub pipes: Vec<(u64, bool)>,
    /// Whether a process has a terminal.
    pub terminal: bool,
    /// Files, as [`Snapshot::group_files`](crate::Snapshot::group_files).
    pub group_files: Vec<(PathBuf, String)>,
}

impl Restoration {
    /// Whether the processes need a PID namespace, because the guest may have given their numbers away.
    pub fn needs_own_numbers(&self) -> bool {
        let images: Vec<PathBuf> = self.pids.iter().map(|pid| self.images.join(pid.to_string())).collect();
        numbers::may_be_taken(&images)
    }

    /// Runs a program, which restores, as the first process of a PID namespace. Returns its status as shells do.
    pub fn among_own_numbers(program: Command) -> Result<u8, SnapshotError> {
        numbers::run_first(program)
    }

    /// Restores all processes, as children of this one, and lets them run. This process must be the guest's own, or the
    /// first one of its PID namespace.
    pub fn restore(&self) -> Result<(), SnapshotError> {
        if let Some(module) = &self.module {
            load(module)?;
        }
        // An older kernel may refuse so many: then CRIU names the number that it could not have.
        let _ = fs::write("/proc/sys/kernel/pid_max", PID_MAX);
        if std::process::id() == 1 {
            numbers::enter()?;
        }
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(SnapshotError::system("adopt the restored process"))?;
        stand_ins::make(&self.group_files)?;
        let _terminal = self.terminal.then(Terminal::of_this_session).transpose()?;
        let pipes = self.pipes.iter().map(end_of_pipe).collect::<Result<Vec<_>, _>>()?;
        self.pids.iter().try_for_each(|pid| self.restore_one(*pid, &pipes))
    }

    fn restore_one(&self, pid: i32, pipes: &[Pipe]) -> Result<(), SnapshotError> {
        files_in_memory::read_ahead(&self.images.join(pid.to_string()));
        let mut criu = command(&self.criu);
        criu.args(["restore", "--restore-detached", "--shell-job", "--tcp-close", "--file-locks", "--ext-unix-sk"]);
        criu.args(["--manage-cgroups=ignore", "-v2", "-W", WORK, "-o", LOG, "-D"])
            .arg(self.images.join(pid.to_string()));
        for pipe in pipes {
            criu.args(["--inherit-fd", &format!("fd[{}]:pipe:[{}]", pipe.ours.as_raw_fd(), pipe.inode)]);
        }
        criu.stdin(Stdio::inherit()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = criu.status().map_err(SnapshotError::io("start CRIU"))?;
        if status.success() {
            return Ok(());
        }
        let log = fs::read_to_string(Path::new(WORK).join(LOG)).unwrap_or_default();
        Err(SnapshotError::Restore { pid, why: complaint(&log) })
    }
}

fn load(module: &Path) -> Result<(), SnapshotError> {
    let failed = SnapshotError::system("load the kernel's module nfnetlink");
    let file = rustix::fs::open(module, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(&failed)?;
    match rustix::system::finit_module(&file, c"", 0) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// A stand-in for the other end of a pipe.
struct Pipe {
    inode: u64,
    ours: OwnedFd,
    /// Held so that who reads waits, as outside.
    _other: Option<OwnedFd>,
}

/// All that is written goes nowhere; a reader waits.
fn end_of_pipe((inode, writes): &(u64, bool)) -> Result<Pipe, SnapshotError> {
    let failed = SnapshotError::system("stand in for a pipe");
    let (ours, other) = match writes {
        true => (rustix::fs::open("/dev/null", OFlags::WRONLY, Mode::empty()).map_err(&failed)?, None),
        false => {
            let (reader, writer) = rustix::pipe::pipe().map_err(&failed)?;
            rustix::io::fcntl_setfd(&writer, rustix::io::FdFlags::CLOEXEC).map_err(&failed)?;
            (reader, Some(writer))
        }
    };
    Ok(Pipe { inode: *inode, ours, _other: other })
}
