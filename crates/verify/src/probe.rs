//! Figures of a run beside its times.

use crate::{Error, Sample};

/// Measures a run by other means than its times, such as hardware counters.
pub trait Probe {
    /// Attaches to a process that has not begun yet.
    fn attach(&mut self, pid: i32) -> Result<(), Error>;
    /// Discards the counts so far: a server runs, and its load begins.
    fn begin(&mut self) -> Result<(), Error>;
    /// Returns the counts since then, by metric; the process, or its load, has ended.
    fn read(&mut self) -> Result<Sample, Error>;
}
