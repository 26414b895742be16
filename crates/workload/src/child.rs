//! Steps of the forked child until `exec`: only calls that are safe between `fork` and `exec` of a process with
//! threads, and no allocation.

use crate::ProcessGroup;
use crate::memory::RawPolicy;
use std::ffi::{CStr, CString, c_char, c_int};
use std::os::fd::RawFd;
use std::ptr;

/// The step at which a child failed, as it reports it through its pipe.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Step {
    Stdio = 1,
    Directory = 2,
    Affinity = 3,
    Exec = 4,
    Memory = 5,
}

impl Step {
    pub(crate) fn from_raw(raw: i32) -> Self {
        match raw {
            1 => Step::Stdio,
            2 => Step::Directory,
            3 => Step::Affinity,
            5 => Step::Memory,
            _ => Step::Exec,
        }
    }
}

/// Everything a child needs, made ready before the fork.
pub(crate) struct Plan {
    program: CString,
    argv: Pointers,
    shell_argv: Pointers,
    environment: Pointers,
    directory: Option<CString>,
    cpus: Option<rustix::thread::CpuSet>,
    memory: Option<RawPolicy>,
}

/// A NULL-terminated vector of C strings.
struct Pointers {
    _strings: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Pointers {
    fn new(strings: Vec<CString>) -> Self {
        let pointers = strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect();
        Pointers { _strings: strings, pointers }
    }
}

impl Plan {
    pub(crate) fn new(
        program: CString,
        argv: Vec<CString>,
        environment: Vec<CString>,
        directory: Option<CString>,
        cpus: Option<rustix::thread::CpuSet>,
        memory: Option<RawPolicy>,
    ) -> Self {
        // A script without `#!` is run by the shell, as execvp does.
        let shell_argv = [c"/bin/sh".to_owned(), program.clone()].into_iter().chain(argv.iter().skip(1).cloned());
        Plan {
            shell_argv: Pointers::new(shell_argv.collect()),
            program,
            argv: Pointers::new(argv),
            environment: Pointers::new(environment),
            directory,
            cpus,
            memory,
        }
    }

    pub(crate) fn program(&self) -> &CStr {
        &self.program
    }
}

/// The descriptors of one child.
pub(crate) struct Descriptors<'a> {
    /// Sources of standard input, output and error; `None` keeps the launcher's.
    pub(crate) stdio: [Option<RawFd>; 3],
    /// Read: a byte releases the child, end of file ends it.
    pub(crate) release: RawFd,
    /// The launcher's end of that pipe.
    pub(crate) release_writer: RawFd,
    /// Written: the failed step and its error number; closed by a successful `exec`.
    pub(crate) failure: RawFd,
    /// Descriptors that stay open across `exec`.
    pub(crate) kept: &'a [RawFd],
}

/// Runs in the child; all signals are blocked on entry, `mask` is what the command gets.
pub(crate) fn run(plan: &Plan, d: &Descriptors<'_>, group: ProcessGroup, mask: &libc::sigset_t) -> ! {
    // SAFETY: plain system calls on memory prepared before the fork; no allocation, no locks.
    unsafe {
        match group {
            ProcessGroup::Own => _ = libc::setpgid(0, 0),
            ProcessGroup::Session => _ = libc::setsid(),
            ProcessGroup::Launcher => {}
        }
        reset_signals();
        libc::close(d.release_writer);
        for (target, source) in d.stdio.iter().enumerate() {
            let target = target as c_int;
            let connected = match *source {
                None => 0,
                // Already in place: only its close-on-exec flag is in the way.
                Some(source) if source == target => libc::fcntl(target, libc::F_SETFD, 0),
                Some(source) => libc::dup2(source, target),
            };
            if connected < 0 {
                fail(d.failure, Step::Stdio);
            }
        }
        if let Some(directory) = &plan.directory
            && libc::chdir(directory.as_ptr()) < 0
        {
            fail(d.failure, Step::Directory);
        }
        if let Some(cpus) = &plan.cpus
            && rustix::thread::sched_setaffinity(None, cpus)
                .map_err(|e| *libc::__errno_location() = e.raw_os_error())
                .is_err()
        {
            fail(d.failure, Step::Affinity);
        }
        if let Some(memory) = &plan.memory
            && !memory.set()
        {
            fail(d.failure, Step::Memory);
        }
        libc::sigprocmask(libc::SIG_SETMASK, mask, ptr::null_mut());
        let mut byte = 0u8;
        loop {
            match libc::read(d.release, (&raw mut byte).cast(), 1) {
                1 => break,
                -1 if *libc::__errno_location() == libc::EINTR => {}
                _ => libc::_exit(125),
            }
        }
        for &fd in d.kept {
            libc::fcntl(fd, libc::F_SETFD, 0);
        }
        let environment = plan.environment.pointers.as_ptr();
        libc::execve(plan.program.as_ptr(), plan.argv.pointers.as_ptr(), environment);
        if *libc::__errno_location() == libc::ENOEXEC {
            libc::execve(c"/bin/sh".as_ptr(), plan.shell_argv.pointers.as_ptr(), environment);
            *libc::__errno_location() = libc::ENOEXEC;
        }
        fail(d.failure, Step::Exec)
    }
}

/// Gives every signal that the launcher handles its default action; ignored ones stay ignored, but for SIGPIPE, which
/// Rust's runtime ignores by itself.
unsafe fn reset_signals() {
    for signal in 1..=64 {
        // SAFETY: zeroed `sigaction` is a valid value; invalid signals are refused by the call.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, ptr::null(), &mut action) == 0
                && (action.sa_sigaction != libc::SIG_IGN || signal == libc::SIGPIPE)
                && action.sa_sigaction != libc::SIG_DFL
            {
                action = std::mem::zeroed();
                libc::sigaction(signal, &action, ptr::null_mut());
            }
        }
    }
}

unsafe fn fail(pipe: RawFd, step: Step) -> ! {
    // SAFETY: writes eight bytes of a local array; a pipe takes them at once.
    unsafe {
        let report = [step as i32, *libc::__errno_location()];
        libc::write(pipe, report.as_ptr().cast(), size_of_val(&report));
        libc::_exit(125)
    }
}
