//! `nearmiss apply bypass --copies`: the command with the copies of chosen call sites past the caches, by a preloaded
//! library.

mod options;
mod report;
mod threshold;

pub use options::{MOST_SITES, Options};
pub(in crate::bypass) use report::RECORD;
pub use report::{Report, SiteReport};
pub(in crate::bypass) use threshold::RECORD as RECORD_OF_EVERY_COPY;
pub use threshold::engage as engage_every_copy;

use crate::preload::{Library, Preload, Refusals, try_on_true};
use nearmiss_analysis::{Ability, Acts, Applied, CannotEngage, Engaged, Engagement, NotEngaged};
use nearmiss_workload::Workload;

pub(super) const LEFT: &str = "left";
pub(super) const LEFT_BYTES: &str = "left bytes";
pub(super) const OVERLAPPING: &str = "overlapping";
pub(super) const NO_STORES: &str = "no stores";
/// Counters of each site, behind the four above.
pub(super) const OF_A_SITE: usize = 3;

macro_rules! counters {
    ($($site:literal)*) => {
        &[LEFT, LEFT_BYTES, OVERLAPPING, NO_STORES,
          $(concat!("calls ", $site), concat!("bytes ", $site), concat!("places ", $site)),*]
    };
}

/// The library, with the counters of `native/preload/bypass/copies.c`.
static LIBRARY: Library = Library {
    name: "copies",
    file: "nearmiss-bypass-copies.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/bypass-copies.so")),
    counters: counters!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19),
};

const _: () = assert!(LIBRARY.counters.len() == 4 + MOST_SITES * OF_A_SITE);

const REFUSALS: Refusals = Refusals {
    go: "its copies are Go's own, which no preloaded library sees",
    statically_linked: "or use nearmiss-bypass.h for its copies",
};

/// The remedy in place around a command. Nothing of it persists.
#[derive(Debug)]
pub struct Copies {
    options: Options,
    preload: Preload,
}

/// Puts a command under the remedy.
pub fn apply(workload: Workload, options: &Options) -> Result<(Workload, Copies), CannotEngage> {
    options.check()?;
    let preload = Preload::new(&workload, vec![&LIBRARY], &REFUSALS)?;
    let sites: Vec<String> = options.sites.iter().map(ToString::to_string).collect();
    let workload = workload.env("NEARMISS_BYPASS_SITES", sites.join("\n"));
    let workload = preload.around(workload, "NEARMISS_BYPASS_PRELOAD", &format!("least={}", options.least_bytes));
    Ok((workload, Copies { options: options.clone(), preload }))
}

/// Puts a command under the remedy for the registry.
pub fn engage(workload: Workload, options: &Options) -> Result<Applied, CannotEngage> {
    apply(workload, options).map(Applied::from)
}

/// Whether a program's copies can be reached here: those of `true` can.
pub fn abilities() -> Vec<Ability> {
    vec![try_on_true("preloaded library for copies", |workload| apply(workload, &Options::default()))]
}

impl Copies {
    /// Reports the copies since the last report, provided that the launched process `pid` was under the remedy.
    pub fn report(&self, pid: i32) -> Result<Report, NotEngaged> {
        let part = self.preload.confirm_only(pid)?;
        Ok(Report::new(&self.options, &part))
    }
}

impl Engagement for Copies {
    fn confirm(&mut self, pid: i32) -> Result<Engaged, NotEngaged> {
        self.report(pid).map(|report| Engaged::reported(&report, Acts::Counted(report.calls())))
    }
}
