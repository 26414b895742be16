//! The parent of a command of which nothing may be left, such as a server: its processes leave its group and lose their
//! parents as they like.
//!
//! The keeper is between the launcher and the command. Any of the command's descendants that loses its parent becomes
//! the keeper's child (`PR_SET_CHILD_SUBREAPER`), so the keeper can always end all of them, and does when the launcher
//! requests that or is no longer there.

use crate::{Error, ProcessGroup};
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

/// The launcher's order to end the command (SIGTERM).
const TERMINATE: u8 = b't';
/// The launcher's order to kill the command and all that it started.
const KILL: u8 = b'k';
/// How often the keeper looks whether what it killed has ended, and how long a pause is.
const LOOKS: usize = 1000;
const PAUSE_MS: libc::c_int = 10;

/// How the command ended.
#[derive(Clone, Copy)]
#[repr(C)]
struct Report {
    status: libc::c_int,
    usage: libc::rusage,
}

/// A keeper at work. Dropping it ends what is left of the command.
pub(crate) struct Keeper {
    pid: libc::pid_t,
    orders: Option<OwnedFd>,
    reports: File,
}

impl Keeper {
    /// Forks a keeper, which forks the command; `command` is what the command's process does, and never returns.
    /// The caller has blocked all signals.
    pub(crate) fn fork(group: ProcessGroup, command: impl FnOnce()) -> Result<(Self, libc::pid_t), Error> {
        let pipe =
            || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|e| Error::system("make a pipe", e));
        let ((orders_in, orders), (reports, reports_in)) = (pipe()?, pipe()?);
        // SAFETY: the child calls only async-signal-safe functions and never returns.
        let pid = match unsafe { libc::fork() } {
            -1 => return Err(Error::last_os("fork the keeper")),
            0 => keep(orders_in.as_raw_fd(), reports_in.as_raw_fd(), group, command),
            pid => pid,
        };
        drop(reports_in);
        let mut keeper = Keeper { pid, orders: Some(orders), reports: reports.into() };
        let mut number = [0; 4];
        let reported = keeper.reports.read_exact(&mut number);
        reported.map_err(|e| Error::system("fork the command", e))?;
        Ok((keeper, libc::pid_t::from_ne_bytes(number)))
    }

    /// The keeper's own process: the command, and all that it started, descend from it.
    pub(crate) fn pid(&self) -> libc::pid_t {
        self.pid
    }

    /// Ends the command (SIGTERM), or all of its processes (any other signal).
    pub(crate) fn signal(&self, signal: i32) {
        let order = if signal == libc::SIGTERM { TERMINATE } else { KILL };
        if let Some(orders) = &self.orders {
            // A keeper that is gone has left nothing to be signalled.
            let _ = rustix::io::write(orders, &[order]);
        }
    }

    /// Waits for the command's own process to end.
    pub(crate) fn reap(&mut self) -> io::Result<(libc::c_int, libc::rusage)> {
        let mut bytes = [0; size_of::<Report>()];
        self.reports.read_exact(&mut bytes)?;
        // SAFETY: the keeper wrote a whole report, and every pattern of bits is one.
        let report = unsafe { ptr::read_unaligned(bytes.as_ptr().cast::<Report>()) };
        Ok((report.status, report.usage))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.orders = None;
        // SAFETY: waits for a child of our own; a null status is allowed.
        unsafe {
            while libc::waitpid(self.pid, ptr::null_mut(), 0) < 0
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
    }
}

/// Runs the keeper's process: no allocation, no locks.
fn keep(orders: i32, reports: i32, group: ProcessGroup, command: impl FnOnce()) -> ! {
    // SAFETY: plain system calls on memory of this process alone.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_NAME, c"nearmiss-keeper".as_ptr());
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        let main = libc::fork();
        if main == 0 {
            command();
            libc::_exit(125);
        }
        if main < 0 {
            libc::_exit(1);
        }
        // A launcher that ignores its children's ends must not make the kernel reap the keeper's.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        if group == ProcessGroup::Own {
            libc::setpgid(main, main);
        }
        close_all_but(orders, reports);
        let mut children = Children { main, group: group != ProcessGroup::Launcher, reports, ends: sigchld() };
        write_all(reports, &main.to_ne_bytes());
        children.look_after(orders);
        children.clear();
        libc::_exit(0)
    }
}

/// The command's processes, as the keeper has them.
struct Children {
    /// The command's own process; 0 once it is reaped.
    main: libc::pid_t,
    group: bool,
    reports: i32,
    /// Readable when a child has ended.
    ends: i32,
}

impl Children {
    /// Reaps who ends and follows orders, until the launcher is gone or wants no more.
    fn look_after(&mut self, orders: i32) {
        loop {
            let mut waits = [self.ends, orders].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
            // SAFETY: the array has as many entries as given.
            unsafe { libc::poll(waits.as_mut_ptr(), waits.len() as libc::nfds_t, -1) };
            self.reap();
            if waits[1].revents == 0 {
                continue;
            }
            let mut order = 0u8;
            // SAFETY: reads a byte into a local.
            let read = unsafe { libc::read(orders, (&raw mut order).cast(), 1) };
            match (read, order) {
                (1, TERMINATE) => self.signal_main(libc::SIGTERM),
                (1, _) => self.clear(),
                _ => return,
            }
        }
    }

    fn signal_main(&self, signal: i32) {
        if self.main > 0 {
            // SAFETY: the process has not been reaped, so its number and its group's are still its own.
            unsafe { libc::kill(if self.group { -self.main } else { self.main }, signal) };
        }
    }

    /// Reaps all that have ended. False: there is no child any more.
    fn reap(&mut self) -> bool {
        let mut drained = MaybeUninit::<[u8; 1024]>::uninit();
        // SAFETY: the reads stay within the buffer; a zeroed rusage is valid, and `wait4` fills both out-parameters.
        unsafe {
            while libc::read(self.ends, drained.as_mut_ptr().cast(), 1024) > 0 {}
            loop {
                let mut report = Report { status: 0, usage: std::mem::zeroed() };
                match libc::wait4(-1, &mut report.status, libc::WNOHANG, &mut report.usage) {
                    0 => return true,
                    -1 => return false,
                    pid if pid == self.main => {
                        self.main = 0;
                        let bytes = std::slice::from_raw_parts((&raw const report).cast(), size_of::<Report>());
                        write_all(self.reports, bytes);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Kills all, again and again: the children of a killed process become the keeper's.
    fn clear(&mut self) {
        self.signal_main(libc::SIGKILL);
        for _ in 0..LOOKS {
            kill_children();
            if !self.reap() {
                return;
            }
            let mut wait = libc::pollfd { fd: self.ends, events: libc::POLLIN, revents: 0 };
            // SAFETY: one entry, as given.
            unsafe { libc::poll(&mut wait, 1, PAUSE_MS) };
        }
    }
}

/// Kills the children that the kernel lists; none of them has been reaped, so that the numbers are theirs.
fn kill_children() {
    let mut list = [0u8; 4096];
    // SAFETY: the read stays within the buffer.
    let length = unsafe {
        let file = libc::open(c"/proc/thread-self/children".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let length = libc::read(file, list.as_mut_ptr().cast(), list.len());
        libc::close(file);
        usize::try_from(length).unwrap_or(0)
    };
    let mut pid: libc::pid_t = 0;
    for byte in &list[..length] {
        match byte {
            b'0'..=b'9' => pid = pid.wrapping_mul(10).wrapping_add(i32::from(byte - b'0')),
            _ => {
                if pid > 1 {
                    // SAFETY: a signal to a child that has not been reaped.
                    unsafe { libc::kill(pid, libc::SIGKILL) };
                }
                pid = 0;
            }
        }
    }
}

/// Returns a descriptor that is readable once children have ended.
fn sigchld() -> i32 {
    // SAFETY: the set is a local that the calls fill and read.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        libc::signalfd(-1, &set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC)
    }
}

/// Holding the launcher's pipes open would keep their readers waiting.
fn close_all_but(one: i32, other: i32) {
    let (low, high) = (one.min(other), one.max(other));
    for (first, last) in [(0, low - 1), (low + 1, high - 1), (high + 1, i32::MAX)] {
        if first <= last {
            // SAFETY: closes descriptors of this process, which uses none of them.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    }
}

fn write_all(fd: i32, bytes: &[u8]) {
    // SAFETY: writes a slice; a pipe takes so little at once.
    unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
}
