//! `nearmiss apply apart`: the command with small blocks of `malloc` on cache lines of their own, by a preloaded library.

mod options;
mod report;

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
    put_around(workload, &Options::from(&args::<Args>(given)?))
}

fn put_around(workload: Workload, options: &Options) -> Result<Applied, CannotEngage> {
    let (workload, engagement) = apply(workload, options)?;
    Ok(Applied { workload, engagement: Box::new(engagement) })
}

/// `apart, blocks of 1 to 128 bytes`.
pub(super) fn title(given: &ArgMatches) -> String {
    let (least, most) = args::<Args>(given).map_or((0, 0), |args| args.sizes);
    format!("{}, blocks of {least} to {most} bytes", super::NAME)
}

/// Whether a program's blocks can be moved here: those of `true` can.
pub(super) fn abilities() -> Vec<Ability> {
    vec![try_on_true("preloaded library for blocks", |workload| put_around(workload, &Options::default()))]
}

impl LinesOfTheirOwn {
    /// Reports the moves since the last report, provided that the launched process `pid` was under the remedy.
    pub fn report(&self, pid: i32) -> Result<Report, NotEngaged> {
        let parts = self.preload.confirm(pid)?;
        let part = parts.iter().find(|part| part.library == LIBRARY.name);
        let counter = |name| part.map_or(0, |part| part.counter(name));
        Ok(Report {
            schema: report::SCHEMA,
            line_bytes: self.options.line_bytes,
            least_bytes: self.options.sizes.0,
            most_bytes: self.options.sizes.1,
            programs: part.map_or(0, |part| part.programs),
            programs_with_own_malloc: counter(MALLOC_ELSEWHERE),
            moved: counter(MOVED),
            left: counter(LEFT),
            added_bytes: counter(ADDED_BYTES),
        })
    }
}

impl Engagement for LinesOfTheirOwn {
    fn confirm(&mut self, pid: i32) -> Result<Engaged, NotEngaged> {
        self.report(pid).map(|report| Engaged {
            text: report.to_string(),
            acts: Acts::Counted(report.moved),
            // Plain numbers: it cannot fail.
            record: serde_json::to_value(&report).unwrap_or_default(),
        })
    }
}
