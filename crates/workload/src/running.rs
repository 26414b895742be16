use crate::guardian::{Guardian, Restore};
use crate::keeper::Keeper;
use crate::{Error, Finished, Tree};
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// A forked process that has not been reaped. Dropping it kills and reaps it.
pub(crate) struct Process {
    pid: libc::pid_t,
    leads_group: bool,
    pidfd: Option<OwnedFd>,
    reaped: bool,
    keeper: Option<Keeper>,
    _guardian: Option<Guardian>,
}

impl Process {
    pub(crate) fn new(pid: libc::pid_t, leads_group: bool, keeper: Option<Keeper>) -> Result<Self, Error> {
        let mut process = Process { pid, leads_group, pidfd: None, reaped: false, keeper, _guardian: None };
        let handle = rustix::process::Pid::from_raw(pid)
            .ok_or(rustix::io::Errno::SRCH)
            .and_then(|pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()))
            .map_err(|e| Error::system("open a handle on the command", e))?;
        process.pidfd = Some(handle);
        Ok(process)
    }

    /// Makes the guardian, which acts should the launcher be killed; the caller has blocked all signals. A keeper kills
    /// by itself.
    pub(crate) fn guardian(&self, restore: &[Restore]) -> Result<Guardian, Error> {
        Guardian::of_command(self.keeper.is_none().then_some(self.target()), restore)
    }

    pub(crate) fn guarded_by(mut self, guardian: Guardian) -> Self {
        self._guardian = Some(guardian);
        self
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    pub(crate) fn tree(&self) -> Tree {
        Tree::new(self.pid, self.keeper.as_ref().map(Keeper::pid))
    }

    /// Returns the argument for `kill` that reaches all of it.
    fn target(&self) -> libc::pid_t {
        if self.leads_group { -self.pid } else { self.pid }
    }

    fn signal(&self, signal: i32) {
        match &self.keeper {
            Some(keeper) => keeper.signal(signal),
            // SAFETY: the process has not been reaped, so its number is still its own. A group
            // that is gone already needs no signal.
            None => unsafe {
                libc::kill(self.target(), signal);
            },
        }
    }

    /// Whether it ended within the time.
    fn ended_within(&self, limit: Duration) -> Result<bool, Error> {
        let Some(pidfd) = &self.pidfd else {
            return Ok(false);
        };
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = rustix::event::Timespec::try_from(left).ok();
            match poll(&mut [PollFd::new(pidfd, PollFlags::IN)], timeout.as_ref()) {
                Ok(n) => return Ok(n > 0),
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(Error::system("wait for the command", e)),
            }
        }
    }

    fn reap(&mut self) -> Result<(i32, libc::rusage), Error> {
        if let Some(keeper) = &mut self.keeper {
            let ended = keeper.reap().map_err(|e| Error::system("wait for the command", e))?;
            self.reaped = true;
            return Ok(ended);
        }
        loop {
            let mut status = 0;
            // SAFETY: a zeroed rusage is valid, and the call fills both out-parameters.
            let (got, usage) = unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                (libc::wait4(self.pid, &mut status, 0, &mut usage), usage)
            };
            if got == self.pid {
                self.reaped = true;
                return Ok((status, usage));
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(Error::system("wait for the command", error));
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.reaped {
            self.signal(libc::SIGKILL);
            // Nothing is to be done about a process that cannot be waited for.
            let _ = self.reap();
        }
    }
}

/// A command that runs, and that a drop kills.
pub struct Running {
    process: Process,
    started: Instant,
    /// Our end of the command's input, if that is a pipe. Drop it to end the input.
    pub stdin: Option<File>,
    /// Our end of the command's output, if that is a pipe.
    pub stdout: Option<File>,
    /// Our end of the command's error output, if that is a pipe.
    pub stderr: Option<File>,
}

impl Running {
    pub(crate) fn new(process: Process, started: Instant, ends: [Option<OwnedFd>; 3]) -> Self {
        let [stdin, stdout, stderr] = ends.map(|end| end.map(File::from));
        Running { process, started, stdin, stdout, stderr }
    }

    /// A child that another process started on our behalf, and that came to us when that one ended. Errors: it is gone.
    pub fn adopt(pid: i32) -> Result<Self, Error> {
        Ok(Running::new(Process::new(pid, false, None)?, Instant::now(), [None, None, None]))
    }

    /// Returns the process number of the command.
    pub fn pid(&self) -> i32 {
        self.process.pid()
    }

    /// Waits until the command ends. Its input, if a pipe, is closed first.
    pub fn wait(mut self) -> Result<Finished, Error> {
        self.stdin = None;
        let (status, usage) = self.process.reap()?;
        Ok(self.finished(status, &usage))
    }

    /// Waits for at most this long; gives the running command back if it has not ended.
    pub fn wait_for(self, limit: Duration) -> Result<Result<Finished, Running>, Error> {
        if self.process.ended_within(limit)? { Ok(Ok(self.wait()?)) } else { Ok(Err(self)) }
    }

    /// Signals it to end (SIGTERM), and kills it (SIGKILL) if it has not after `grace`.
    pub fn terminate(mut self, grace: Duration) -> Result<Finished, Error> {
        self.stdin = None;
        self.process.signal(libc::SIGTERM);
        self.process.ended_within(grace)?;
        // Also when it ended in time: what it started may still be there.
        self.process.signal(libc::SIGKILL);
        let (status, usage) = self.process.reap()?;
        Ok(self.finished(status, &usage))
    }

    /// Returns the argument for `kill(2)` that reaches it: its number, or its group's, negated.
    pub(crate) fn kill_target(&self) -> i32 {
        self.process.target()
    }

    fn finished(&self, status: i32, usage: &libc::rusage) -> Finished {
        let wall_ns = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Finished::from_usage(status, wall_ns, usage)
    }
}
