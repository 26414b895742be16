//! `nearmiss apply apart`: the command with small blocks of `malloc` on cache lines of their own, by a preloaded library.

mod options;
mod report;

pub(super) use report::RECORD;

pub use options::{Args, MOST_BLOCK_BYTES, Options};
pub use report::Report;

use crate::command_line::args;
use crate::preload::{Library, Preload, Refusals, try_on_true};
use clap::ArgMatches;
use nearmiss_analysis::{Ability, Acts, Applied, CannotEngage, Engaged, Engagement, NotEngaged};
use nearmiss_workload::Workload;

const MOVED: &str = "moved";
const LEFT: &str = "left";
const ADDED_BYTES: &str = "added bytes";
const MALLOC_ELSEWHERE: &str = "malloc elsewhere";

/// The library, with the counters of `native/preload/apart/apart.c`.
static LIBRARY: Library = Library {
    name: "apart",
    file: "nearmiss-apart.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/apart.so")),
    counters: &[MOVED, LEFT, ADDED_BYTES, MALLOC_ELSEWHERE],
};

const REFUSALS: Refusals = Refusals {
    go: "its heap comes from Go's own runtime, which no preloaded library sees",
    statically_linked: "or align the blocks in the program",
};

/// The remedy in place around a command. Nothing of it persists.
#[derive(Debug)]
pub struct LinesOfTheirOwn {
    options: Options,
    preload: Preload,
}

/// Puts a command under the remedy.
pub fn apply(workload: Workload, options: &Options) -> Result<(Workload, LinesOfTheirOwn), CannotEngage> {
    options.check()?;
    let preload = Preload::new(&workload, vec![&LIBRARY], &REFUSALS)?;
    let (least, most) = options.sizes;
    let parameters = format!("line={},least={least},most={most}", options.line_bytes);
    let workload = preload.around(workload, "NEARMISS_APART_PRELOAD", &parameters);
    Ok((workload, LinesOfTheirOwn { options: options.clone(), preload }))
}

/// Puts a command under the remedy for the registry, with the options as they were given.
pub(super) fn engage(workload: Workload, given: &ArgMatches) -> Result<Applied, CannotEngage> {
    apply(workload, &Options::from(&args::<Args>(given)?)).map(Applied::from)
}

/// `apart, blocks of 1 to 128 bytes`.
pub(super) fn title(given: &ArgMatches) -> String {
    let (least, most) = args::<Args>(given).map_or((0, 0), |args| args.sizes);
    format!("{}, blocks of {least} to {most} bytes", super::NAME)
}

/// Whether a program's blocks can be moved here: those of `true` can.
pub(super) fn abilities() -> Vec<Ability> {
    vec![try_on_true("preloaded library for blocks", |workload| apply(workload, &Options::default()))]
}

impl LinesOfTheirOwn {
    /// Reports the moves since the last report, provided that the launched process `pid` was under the remedy.
    pub fn report(&self, pid: i32) -> Result<Report, NotEngaged> {
        let counts = self.preload.confirm_only(pid)?;
        Ok(Report {
            schema: report::SCHEMA,
            line_bytes: self.options.line_bytes,
            least_bytes: self.options.sizes.0,
            most_bytes: self.options.sizes.1,
            programs: counts.programs,
            programs_with_own_malloc: counts.counter(MALLOC_ELSEWHERE),
            moved: counts.counter(MOVED),
            left: counts.counter(LEFT),
            added_bytes: counts.counter(ADDED_BYTES),
        })
    }
}

impl Engagement for LinesOfTheirOwn {
    fn confirm(&mut self, pid: i32) -> Result<Engaged, NotEngaged> {
        self.report(pid).map(|report| Engaged::reported(&report, Acts::Counted(report.moved)))
    }
}
