//! `nearmiss apply keep`: the command with a malloc that keeps what is freed.
//!
//! A preloaded library sets two parameters of glibc's malloc as the program starts, and counts the page faults as it
//! ends.

mod libraries;
mod report;

pub(super) use report::RECORD;

pub use report::Report;

use crate::command_line::args;
use crate::preload::{Preload, try_on_true};
use crate::size::parse_size;
use clap::ArgMatches;
use libraries::{KEEPS, LIBRARY, MALLOC_ELSEWHERE, PAGE_FAULTS, REFUSALS};
use nearmiss_analysis::{Ability, Acts, Applied, CannotEngage, Engaged, Engagement, NotEngaged};
use nearmiss_record::units::Bytes;
use nearmiss_workload::Workload;

/// Largest limit that mallopt takes.
const MOST: u64 = i32::MAX as u64;

/// `nearmiss apply keep`'s arguments, shared with the other verbs that take the remedy.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Args {
    /// Give the top of the heap back when it is larger, such as 64M [default: never]
    #[arg(long, value_name = "SIZE", value_parser = limit)]
    pub at_most: Option<u64>,
}

fn limit(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        bytes @ 1..=MOST => Ok(bytes),
        _ => Err("malloc takes 1 byte to 2047M; leave the option out to keep all".to_owned()),
    }
}

/// The remedy in place around a command. Nothing of it persists.
#[derive(Debug)]
pub struct KeepingMalloc {
    preload: Preload,
}

/// Puts a command under the remedy.
pub fn apply(workload: Workload, args: &Args) -> Result<(Workload, KeepingMalloc), CannotEngage> {
    let preload = Preload::new(&workload, vec![&LIBRARY], &REFUSALS)?;
    let most = args.at_most.unwrap_or(0);
    let workload = preload.around(workload, "NEARMISS_KEEP_PRELOAD", &format!("most={most}"));
    Ok((workload, KeepingMalloc { preload }))
}

/// Puts a command under the remedy for the registry, with the options as they were given.
pub(super) fn engage(workload: Workload, given: &ArgMatches) -> Result<Applied, CannotEngage> {
    apply(workload, &args::<Args>(given)?).map(Applied::from)
}

/// `keep, all freed memory`.
pub(super) fn title(given: &ArgMatches) -> String {
    let limit = args::<Args>(given).ok().and_then(|args| args.at_most);
    let what = limit.map_or("all freed memory".to_owned(), |limit| format!("at most {}", Bytes(limit)));
    format!("{}, {what}", super::NAME)
}

/// Whether a program's malloc can be reached here: that of `true` can.
pub(super) fn abilities() -> Vec<Ability> {
    vec![try_on_true("preloaded library for malloc", |workload| apply(workload, &Args::default()))]
}

impl KeepingMalloc {
    /// Reports the acts since the last report, provided that the launched process `pid` was under the remedy.
    pub fn report(&self, pid: i32) -> Result<Report, NotEngaged> {
        let counts = self.preload.confirm_only(pid)?;
        Ok(Report {
            schema: report::SCHEMA,
            programs: counts.programs,
            keeping: counts.counter(KEEPS),
            programs_with_own_malloc: counts.counter(MALLOC_ELSEWHERE),
            page_faults: counts.counter(PAGE_FAULTS),
        })
    }
}

impl Engagement for KeepingMalloc {
    fn confirm(&mut self, pid: i32) -> Result<Engaged, NotEngaged> {
        self.report(pid).map(|report| Engaged::reported(&report, Acts::Counted(report.keeping)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_one_that_malloc_takes() {
        assert_eq!(limit("64M"), Ok(64 << 20));
        for wrong in ["0", "2048M", "x"] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }
}
