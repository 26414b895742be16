//! A process that outlives the launcher just long enough to kill the command, or to remove
//! what the launcher would have removed. `PR_SET_PDEATHSIG` will not do: it follows the
//! launching thread rather than the process, spares the command's children and is dropped
//! by setuid programs.

use crate::Error;
use crate::mask_table::{self, Table};
use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A file that a killed launcher leaves to its guardian to restore, and what the file is to hold.
#[derive(Clone, Debug)]
pub(crate) struct Restore(pub(crate) PathBuf, pub(crate) Vec<u8>);

/// Duty of a guardian that is not dismissed, ready for a process that may not allocate.
struct Duty {
    /// Argument for `kill`; `None` kills nobody.
    kill: Option<libc::pid_t>,
    restore: Vec<(CString, Vec<u8>)>,
    /// Files, and empty directories, in this order.
    remove: Vec<CString>,
    /// Shared with the launcher, which goes on changing it.
    masks: Option<*const Table>,
}

/// A guardian at work. Dropping it dismisses it.
#[derive(Debug)]
pub(crate) struct Guardian {
    pid: libc::pid_t,
    dismissal: Option<OwnedFd>,
}

impl Guardian {
    /// Kills `target`, a process or a negated group, and restores files, if the launcher is killed. The caller has
    /// blocked all signals.
    pub(crate) fn of_command(target: Option<libc::pid_t>, restore: &[Restore]) -> Result<Self, Error> {
        let restore = restore.iter().filter_map(|Restore(path, content)| Some((c_path(path)?, content.clone())));
        Self::start(&Duty { kill: target, restore: restore.collect(), remove: Vec::new(), masks: None })
    }

    /// Removes these files and empty directories if the launcher is killed. The caller has blocked all signals.
    pub(crate) fn of_files(remove: &[&Path]) -> Result<Self, Error> {
        let remove = remove.iter().filter_map(|path| c_path(path)).collect();
        Self::start(&Duty { kill: None, restore: Vec::new(), remove, masks: None })
    }

    /// Gives the affinity masks of a shared table back if the launcher is killed. The caller has blocked all signals.
    pub(crate) fn of_masks(masks: &Table) -> Result<Self, Error> {
        Self::start(&Duty { kill: None, restore: Vec::new(), remove: Vec::new(), masks: Some(masks) })
    }

    fn start(duty: &Duty) -> Result<Self, Error> {
        let pipe_flags = rustix::pipe::PipeFlags::CLOEXEC;
        let (reader, writer) = rustix::pipe::pipe_with(pipe_flags).map_err(|e| Error::system("make a pipe", e))?;
        // SAFETY: the child calls only async-signal-safe functions and never returns.
        match unsafe { libc::fork() } {
            -1 => Err(Error::last_os("fork the guardian")),
            0 => watch(reader.as_raw_fd(), duty),
            guardian => Ok(Guardian { pid: guardian, dismissal: Some(writer) }),
        }
    }
}

fn c_path(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}

impl Drop for Guardian {
    fn drop(&mut self) {
        if let Some(writer) = self.dismissal.take() {
            // A failed write leaves the guardian gone already; reaping is all that is left.
            let _ = rustix::io::write(&writer, &[1]);
        }
        // SAFETY: waits for a child of our own; a null status is allowed.
        unsafe { while libc::waitpid(self.pid, std::ptr::null_mut(), 0) < 0 && interrupted() {} }
    }
}

fn interrupted() -> bool {
    std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
}

fn watch(reader: i32, duty: &Duty) -> ! {
    // SAFETY: plain system calls on memory prepared before the fork.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_NAME, c"nearmiss-guard".as_ptr());
        // Holding the launcher's pipes open would keep their readers waiting.
        if reader > 0 {
            libc::syscall(libc::SYS_close_range, 0, reader - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, reader + 1, u32::MAX, 0);
        let mut byte = 0u8;
        let dismissed = loop {
            match libc::read(reader, (&raw mut byte).cast(), 1) {
                -1 if *libc::__errno_location() == libc::EINTR => {}
                n => break n == 1,
            }
        };
        if !dismissed {
            if let Some(target) = duty.kill {
                libc::kill(target, libc::SIGKILL);
            }
            for (path, content) in &duty.restore {
                restore(path, content);
            }
            if let Some(masks) = duty.masks {
                mask_table::restore(&*masks);
            }
            for path in &duty.remove {
                if libc::unlink(path.as_ptr()) < 0 {
                    libc::rmdir(path.as_ptr());
                }
            }
        }
        libc::_exit(0)
    }
}

/// Writes a file at once: settings of the kernel take what one call brings.
///
/// # Safety
/// None beyond that of system calls: the path ends with a NUL and the content has its length.
unsafe fn restore(path: &CString, content: &[u8]) {
    // SAFETY: plain system calls on memory prepared before the fork.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_TRUNC | libc::O_CLOEXEC);
        if file >= 0 {
            libc::write(file, content.as_ptr().cast(), content.len());
            libc::close(file);
        }
    }
}
