use crate::blocked_signals::BlockedSignals;
use crate::child::{self, Descriptors, Step};
use crate::keeper::Keeper;
use crate::running::{Process, Running};
use crate::{Error, ProcessGroup, Stdio, Tree, Workload};
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Instant;

/// A forked command that waits just before `exec`. Dropping it ends it.
pub struct Suspended {
    process: Process,
    release: OwnedFd,
    failure: File,
    program: PathBuf,
    ends: [Option<OwnedFd>; 3],
}

impl Workload {
    /// Forks the command and holds it just before `exec`, so that counters can be attached.
    pub fn launch_suspended(&self) -> Result<Suspended, Error> {
        launch(self)
    }
}

fn launch(workload: &Workload) -> Result<Suspended, Error> {
    let plan = workload.plan()?;
    let program = PathBuf::from(std::ffi::OsStr::from_bytes(plan.program().to_bytes()));
    let (release_reader, release) = pipe()?;
    let (failure, failure_writer) = pipe()?;
    let (stdin_source, stdin_end) = open(&workload.stdin, true)?;
    let (stdout_source, stdout_end) = open(&workload.stdout, false)?;
    let (stderr_source, stderr_end) = open(&workload.stderr, false)?;
    let kept: Vec<RawFd> = workload.kept.iter().map(|fd| fd.as_raw_fd()).collect();
    let descriptors = Descriptors {
        stdio: [&stdin_source, &stdout_source, &stderr_source].map(|s| s.as_ref().map(Source::raw)),
        release: release_reader.as_raw_fd(),
        release_writer: release.as_raw_fd(),
        failure: failure_writer.as_raw_fd(),
        kept: &kept,
    };

    // Blocked signals keep the launcher's handlers from running in the children.
    let blocked = BlockedSignals::new();
    let child = || child::run(&plan, &descriptors, workload.group, &blocked.before);
    let process = match workload.whole_tree {
        true => kept_child(workload.group, child)?,
        false => own_child(workload.group, child)?,
    };
    let guardian = process.guardian(&workload.restore_if_killed)?;
    drop(blocked);
    Ok(Suspended {
        process: process.guarded_by(guardian),
        release,
        failure: failure.into(),
        program,
        ends: [stdin_end, stdout_end, stderr_end],
    })
}

fn own_child(group: ProcessGroup, child: impl FnOnce()) -> Result<Process, Error> {
    // SAFETY: the child calls only async-signal-safe functions and never returns.
    let pid = match unsafe { libc::fork() } {
        -1 => return Err(Error::last_os("fork")),
        0 => {
            child();
            // SAFETY: ends a child that has no command, which `child` does itself.
            unsafe { libc::_exit(125) }
        }
        pid => pid,
    };
    if group == ProcessGroup::Own {
        // SAFETY: both sides set the group, so it is set whoever runs first.
        unsafe { libc::setpgid(pid, pid) };
    }
    Process::new(pid, group != ProcessGroup::Launcher, None)
}

fn kept_child(group: ProcessGroup, child: impl FnOnce()) -> Result<Process, Error> {
    let (keeper, pid) = Keeper::fork(group, child)?;
    Process::new(pid, group != ProcessGroup::Launcher, Some(keeper))
}

impl Suspended {
    /// The process to attach counters to; it keeps this number across `exec`.
    pub fn pid(&self) -> i32 {
        self.process.pid()
    }

    /// Returns the tree of it, and of all that it will start.
    pub fn tree(&self) -> Tree {
        self.process.tree()
    }

    /// Lets the command go; the clock starts. Returns once `exec` has succeeded or failed.
    pub fn resume(mut self) -> Result<Running, Error> {
        let started = Instant::now();
        // A command that failed before it waited gives the reason in its report.
        let released = rustix::io::write(&self.release, &[1]);
        let mut report = [0u8; 8];
        match self.failure.read_exact(&mut report) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                released.map_err(|e| Error::system("release the command", e))?;
                Ok(Running::new(self.process, started, self.ends))
            }
            Err(e) => Err(Error::system("learn whether the command has started", e)),
            Ok(()) => {
                let [a, b, c, d, e, f, g, h] = report;
                let source = io::Error::from_raw_os_error(i32::from_ne_bytes([e, f, g, h]));
                Err(match Step::from_raw(i32::from_ne_bytes([a, b, c, d])) {
                    Step::Stdio => Error::system("connect the command's streams", source),
                    Step::Directory => Error::system("enter the command's directory", source),
                    Step::Memory => Error::system("set the command's memory policy", source),
                    Step::Affinity => Error::system("pin the command to its CPUs", source),
                    Step::Exec => Error::NotExecutable { path: self.program, source },
                })
            }
        }
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Error> {
    pipe_with(PipeFlags::CLOEXEC).map_err(|e| Error::system("make a pipe", e))
}

/// The child's side of a stream, alive until the fork.
enum Source {
    Owned(OwnedFd),
    Shared(std::sync::Arc<OwnedFd>),
}

impl Source {
    fn raw(&self) -> RawFd {
        match self {
            Source::Owned(fd) => fd.as_raw_fd(),
            Source::Shared(fd) => fd.as_raw_fd(),
        }
    }
}

fn open(stdio: &Stdio, input: bool) -> Result<(Option<Source>, Option<OwnedFd>), Error> {
    Ok(match stdio {
        Stdio::Inherit => (None, None),
        Stdio::Null => {
            let null = File::options().read(true).write(true).open("/dev/null");
            let null = null.map_err(|e| Error::system("open /dev/null", e))?;
            (Some(Source::Owned(null.into())), None)
        }
        Stdio::File(fd) => (Some(Source::Shared(fd.clone())), None),
        Stdio::Pipe => {
            let (reader, writer) = pipe()?;
            let (theirs, ours) = if input { (reader, writer) } else { (writer, reader) };
            (Some(Source::Owned(theirs)), Some(ours))
        }
    })
}
