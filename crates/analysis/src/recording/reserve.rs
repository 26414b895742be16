//! Room for what a run writes last: a disk that fills up while tracing must not cost the run its report.

use super::error::RecordError;
use nearmiss_record::run::RunDir;
use rustix::fd::OwnedFd;
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

/// Names, model and manifest of a large run.
const BYTES: u64 = 16 << 20;

/// Holds the room until it is dropped: a file without a name, so that nothing is left however this process ends.
pub(crate) struct Reserve(#[expect(dead_code, reason = "closing it gives the room back")] Option<OwnedFd>);

impl Reserve {
    /// Errors: the disk has less than that to begin with. A file system that cannot promise room is taken as it is.
    pub fn hold(run: &RunDir) -> Result<Self, RecordError> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::open(run.path(), flags, Mode::RUSR | Mode::WUSR) else {
            return Ok(Reserve(None));
        };
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, BYTES) {
            Err(Errno::NOSPC | Errno::DQUOT) => Err(RecordError::NoRoom(format!(
                "{}: less than {} MiB are free there: make room, or name another directory with --runs",
                run.path().display(),
                BYTES >> 20
            ))),
            _ => Ok(Reserve(Some(file))),
        }
    }
}
