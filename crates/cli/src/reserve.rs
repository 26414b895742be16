//! Room for what a run writes last: a disk that fills up while tracing must not cost the run its report.

use crate::exit::CannotHere;
use nearmiss_record::run::RunDir;
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use std::path::PathBuf;

/// Names, model and manifest of a large run.
const BYTES: u64 = 16 << 20;

/// A file that holds the room until it is dropped.
pub struct Reserve(PathBuf);

impl Reserve {
    /// Errors: the disk has less than that to begin with. A file system that cannot promise room is taken as it is.
    pub fn hold(run: &RunDir) -> anyhow::Result<Self> {
        let path = run.file("reserve.tmp");
        let file = rustix::fs::open(&path, OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)?;
        let reserve = Reserve(path);
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, BYTES) {
            Err(Errno::NOSPC | Errno::DQUOT) => Err(CannotHere(format!(
                "{}: less than {} MiB are free there: make room, or name another directory with --runs",
                run.path().display(),
                BYTES >> 20
            ))
            .into()),
            _ => Ok(reserve),
        }
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        // It holds nothing that could be lost.
        let _ = std::fs::remove_file(&self.0);
    }
}
