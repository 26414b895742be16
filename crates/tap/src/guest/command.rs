//! The command as it would run outside: arguments, environment, place, identity, limits, streams.

use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FileType, OFlags, fstat};

use super::error::{GuestError, Tried};
use super::spool::{Spooled, spool};

/// A command and all that it would inherit.
#[derive(Debug)]
pub struct GuestCommand {
    /// The program, looked up as `execvp` does, and its arguments.
    pub argv: Vec<OsString>,
    /// The environment.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory.
    pub directory: PathBuf,
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Further groups.
    pub groups: Vec<u32>,
    /// File mode mask.
    pub umask: u32,
    /// Resource limits: number, soft, hard (`u64::MAX`: none).
    pub limits: Vec<(u32, u64, u64)>,
    /// Signals that it ignores from the start; bit `n - 1` is signal `n`.
    pub ignored_signals: u64,
    /// Standard input, output and error; `None`: closed.
    pub streams: [Option<OwnedFd>; 3],
    /// The standard output is a file of the guest's own, which ends with the guest: nobody in the guest passes it on.
    pub output_stays: bool,
    /// The standard input, for a run ahead of this one, where it can be read only once.
    pub(super) spooled: Option<Vec<u8>>,
}

impl GuestCommand {
    /// A command that inherits everything from this process.
    pub fn inherit(argv: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Self, GuestError> {
        let status = fs::read_to_string("/proc/self/status").tried("/proc/self/status")?;
        Ok(Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: std::env::vars_os().collect(),
            directory: std::env::current_dir().tried("the working directory")?,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            groups: rustix::process::getgroups().tried("getgroups")?.iter().map(|group| group.as_raw()).collect(),
            umask: status_field(&status, "Umask:", 8).unwrap_or(0o022) as u32,
            limits: limits(),
            // The Rust runtime ignores SIGPIPE; the parent of this process did not request it.
            ignored_signals: status_field(&status, "SigIgn:", 16).unwrap_or(0) & !(1 << (libc::SIGPIPE - 1)),
            streams: [0, 1, 2].map(duplicate),
            output_stays: false,
            spooled: None,
        })
    }

    /// Keeps an input that can be read only once, so that a run ahead of the command ([`WarmUp::Run`]) and the command
    /// itself both read it. Errors: it is neither a pipe nor a file, too long, or does not end in time.
    ///
    /// [`WarmUp::Run`]: super::WarmUp::Run
    pub fn spool_input(&mut self, within: Duration) -> Result<(), GuestError> {
        if let [StreamKind::Port, ..] = stream_kinds(&self.streams)
            && let Some(input) = &self.streams[0]
        {
            let Spooled { content, stream } = spool(input, within)?;
            (self.streams[0], self.spooled) = (Some(stream), Some(content));
        }
        Ok(())
    }
}

fn status_field(status: &str, name: &str, radix: u32) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with(name))?;
    u64::from_str_radix(line.split_whitespace().nth(1)?, radix).ok()
}

fn duplicate(number: i32) -> Option<OwnedFd> {
    // SAFETY: borrowed for the call only; a closed descriptor gives an error, which is the answer.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_dupfd_cloexec(borrowed, 3).ok()
}

fn limits() -> Vec<(u32, u64, u64)> {
    const KINDS: u32 = 16;
    (0..KINDS)
        .filter_map(|kind| {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: `limit` is a valid place for the answer; an unknown kind is refused.
            let result = unsafe { libc::getrlimit(kind as _, &raw mut limit) };
            (result == 0).then_some((kind, limit.rlim_cur, limit.rlim_max))
        })
        .collect()
}

/// How a standard stream is made inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StreamKind {
    Closed,
    Null,
    Port,
    Terminal,
    /// A file, opened inside from an offset: the command can seek in it and map it. For output, a file of the guest's
    /// own.
    File(PathBuf, u64),
    /// As the standard output, so that the order of writes to both is kept.
    SameAsOutput,
}

impl StreamKind {
    pub(super) fn to_config(&self) -> Vec<u8> {
        match self {
            Self::Closed => b"closed".to_vec(),
            Self::Null => b"null".to_vec(),
            Self::Port => b"port".to_vec(),
            Self::Terminal => b"tty".to_vec(),
            Self::SameAsOutput => b"same".to_vec(),
            Self::File(path, offset) => [format!("file:{offset}:").as_bytes(), path.as_os_str().as_bytes()].concat(),
        }
    }
}

/// Directories of the host that the guest has its own of.
const OWN: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];

/// Returns whether a path of the host is the same file inside.
pub(super) fn visible_inside(path: &Path) -> bool {
    !OWN.iter().any(|own| path.starts_with(own))
}

/// Decides how each stream is made inside.
pub(super) fn stream_kinds(streams: &[Option<OwnedFd>; 3]) -> [StreamKind; 3] {
    let mut kinds = [0, 1, 2].map(|number| kind_of(streams[number].as_ref(), number == 0));
    if kinds[1] == StreamKind::Port
        && kinds[2] == StreamKind::Port
        && let (Some(output), Some(error)) = (&streams[1], &streams[2])
        && same_file(output.as_fd(), error.as_fd())
    {
        kinds[2] = StreamKind::SameAsOutput;
    }
    kinds
}

fn same_file(left: BorrowedFd<'_>, right: BorrowedFd<'_>) -> bool {
    match (fstat(left), fstat(right)) {
        (Ok(left), Ok(right)) => (left.st_dev, left.st_ino) == (right.st_dev, right.st_ino),
        _ => false,
    }
}

fn kind_of(stream: Option<&OwnedFd>, is_input: bool) -> StreamKind {
    let Some(stream) = stream else {
        return StreamKind::Closed;
    };
    if rustix::termios::isatty(stream) {
        return StreamKind::Terminal;
    }
    let Ok(status) = fstat(stream) else {
        return StreamKind::Port;
    };
    match FileType::from_raw_mode(status.st_mode) {
        FileType::CharacterDevice if status.st_rdev == libc::makedev(1, 3) => StreamKind::Null,
        FileType::RegularFile if is_input => openable_inside(stream, status.st_dev, status.st_ino),
        _ => StreamKind::Port,
    }
}

fn openable_inside(stream: &OwnedFd, device: u64, inode: u64) -> StreamKind {
    let path = fs::read_link(super::memory_file::inherited_path(stream));
    let read_only = rustix::fs::fcntl_getfl(stream).is_ok_and(|flags| flags & OFlags::ACCMODE == OFlags::RDONLY);
    match path {
        Ok(path)
            if read_only
                && visible_inside(&path)
                && fs::metadata(&path).is_ok_and(|found| (found.dev(), found.ino()) == (device, inode)) =>
        {
            let offset = rustix::fs::tell(stream).unwrap_or(0);
            StreamKind::File(path, offset)
        }
        _ => StreamKind::Port,
    }
}
