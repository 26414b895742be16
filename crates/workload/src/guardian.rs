//! A process that outlives the launcher just long enough to kill the command and to remove
//! what the launcher would have removed. `PR_SET_PDEATHSIG` will not do: it follows the
//! launching thread rather than the process, spares the command's children and is dropped
//! by setuid programs.

use crate::Error;
use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// What a killed launcher leaves to its guardian.
#[derive(Clone, Debug)]
pub(crate) enum Undo {
    /// A file, or an empty directory.
    Remove(PathBuf),
    /// A file and what it is to hold.
    Restore(PathBuf, Vec<u8>),
}

/// The same, ready for a process that may not allocate: a path, and what the file there is to hold, if it stays.
type Prepared = (CString, Option<Vec<u8>>);

impl Undo {
    fn prepare(&self) -> Option<Prepared> {
        let (path, content) = match self {
            Undo::Remove(path) => (path, None),
            Undo::Restore(path, content) => (path, Some(content.clone())),
        };
        Some((CString::new(path.as_os_str().as_bytes()).ok()?, content))
    }
}

/// A guardian at work. Dropping it dismisses it.
pub(crate) struct Guardian {
    pid: libc::pid_t,
    dismissal: Option<OwnedFd>,
}

impl Guardian {
    /// Watches over `pid`, and over the process group that it leads if `group`. The caller
    /// has blocked all signals.
    pub(crate) fn start(pid: libc::pid_t, group: bool, undo: &[Undo]) -> Result<Self, Error> {
        let pipe_flags = rustix::pipe::PipeFlags::CLOEXEC;
        let (reader, writer) = rustix::pipe::pipe_with(pipe_flags).map_err(|e| Error::system("make a pipe", e))?;
        let undo: Vec<Prepared> = undo.iter().filter_map(Undo::prepare).collect();
        // SAFETY: the child calls only async-signal-safe functions and never returns.
        match unsafe { libc::fork() } {
            -1 => Err(Error::last_os("fork the guardian")),
            0 => watch(reader.as_raw_fd(), pid, group, &undo),
            guardian => Ok(Guardian { pid: guardian, dismissal: Some(writer) }),
        }
    }
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

fn watch(reader: i32, pid: libc::pid_t, group: bool, undo: &[Prepared]) -> ! {
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
            libc::kill(if group { -pid } else { pid }, libc::SIGKILL);
            for (path, content) in undo {
                match content {
                    Some(content) => restore(path, content),
                    None if libc::unlink(path.as_ptr()) < 0 => _ = libc::rmdir(path.as_ptr()),
                    None => {}
                }
            }
        }
        libc::_exit(0)
    }
}

/// Writes a file at once: settings of the kernel take what one call brings.
///
/// # Safety
/// None beyond that of system calls: the path ends with a NUL and the content is as long as it says.
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
