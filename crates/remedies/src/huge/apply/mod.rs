//! `nearmiss apply huge`: the command with its memory in pages of 2 MiB.
//!
//! A preloaded library requests such pages for mappings and blocks; glibc does so for its heap, by a tunable. Whether
//! the kernel gave them is read from the processes: their `smaps_rollup` as they run, and in the library as they end.

mod libraries;
mod options;
mod report;
mod watch;

pub(super) use report::RECORD;

pub use options::{Args, CallOf};
pub use report::Report;

use crate::command_line::args;
use crate::follow::Follower;
use crate::preload::{Preload, try_on_true};
use clap::ArgMatches;
use libraries::{LARGE_BYTES, LIBRARY, OLD_LIBC, REFUSALS, REFUSED, REQUESTED, REQUESTED_BYTES};
use nearmiss_analysis::{Ability, Acts, Applied, CannotEngage, Engaged, Engagement, Inability, NotEngaged};
use nearmiss_workload::{LargePages, Workload};
use std::ffi::OsString;
use watch::Watch;

/// The tunable by which glibc's malloc requests large pages.
const TUNABLE: &str = "glibc.malloc.hugetlb";

/// The remedy in place around a command. Nothing of it persists.
#[derive(Debug)]
pub struct LargePagesAround {
    preload: Preload,
    setting: LargePages,
    watch: Option<Follower<Watch>>,
}

/// Puts a command under the remedy.
pub fn apply(workload: Workload, args: &Args) -> Result<(Workload, LargePagesAround), CannotEngage> {
    args.check()?;
    let setting = allowed().map_err(|no| CannotEngage::Parameters(format!("{}; {}", no.why, no.todo)))?;
    let preload = Preload::new(&workload, vec![&LIBRARY], &REFUSALS)?;
    let workload = if args.sites.is_empty() {
        let tunables = with_tunable(workload.variable("GLIBC_TUNABLES"));
        workload.env("GLIBC_TUNABLES", tunables)
    } else {
        workload.env("NEARMISS_HUGE_SITES", args.for_library())
    };
    let workload = preload.around(workload, "NEARMISS_HUGE_PRELOAD", &format!("sites={}", args.sites.len()));
    Ok((workload, LargePagesAround { preload, setting, watch: None }))
}

/// The kernel's setting, unless it refuses large pages.
fn allowed() -> Result<LargePages, Inability> {
    match LargePages::with_its_file() {
        Some((LargePages::Never, file)) => Err(Inability {
            why: format!("the kernel gives no large pages: {} is `never`", file.display()),
            todo: format!("echo madvise > {}", file.display()),
        }),
        None => Err(Inability {
            why: format!("the kernel has no large pages: there is no {}", LargePages::FILE),
            todo: "start a kernel with CONFIG_TRANSPARENT_HUGEPAGE".to_owned(),
        }),
        Some((setting, _)) => Ok(setting),
    }
}

/// The user's tunables with ours behind them, unless one of theirs is the same.
fn with_tunable(present: Option<OsString>) -> OsString {
    let present = present.unwrap_or_default();
    if present.to_string_lossy().split(':').any(|tunable| tunable.split('=').next() == Some(TUNABLE)) {
        return present;
    }
    let mut tunables = present;
    if !tunables.is_empty() {
        tunables.push(":");
    }
    tunables.push(format!("{TUNABLE}=1"));
    tunables
}

/// Puts a command under the remedy for the registry, with the options as they were given.
pub(super) fn engage(workload: Workload, given: &ArgMatches) -> Result<Applied, CannotEngage> {
    apply(workload, &args::<Args>(given)?).map(Applied::from)
}

/// `huge, 2 sites`.
pub(super) fn title(given: &ArgMatches) -> String {
    let sites = args::<Args>(given).map_or(0, |args| args.sites.len());
    match sites {
        0 => format!("{}, all memory", super::NAME),
        1 => format!("{}, 1 site", super::NAME),
        more => format!("{}, {more} sites", super::NAME),
    }
}

/// The kernel's setting, and whether a program's memory can be reached here: that of `true` can.
pub(super) fn abilities() -> Vec<Ability> {
    let setting = allowed().map(|setting| format!("{setting}; defrag {}", watch::defrag()));
    vec![
        Ability { name: "large pages", state: setting },
        try_on_true("preloaded library for large pages", |workload| apply(workload, &Args::default())),
    ]
}

impl LargePagesAround {
    /// Reports the large pages since the last report, provided that the launched process `pid` was under the remedy.
    pub fn report(&mut self, pid: i32) -> Result<Report, NotEngaged> {
        let watched = self.watch.take().and_then(Follower::end).map_or(0, |watch| watch.most_bytes());
        let counts = self.preload.confirm_only(pid)?;
        Ok(Report {
            schema: report::SCHEMA,
            setting: self.setting.to_string(),
            // The library counts the launched process as well, as it ends.
            large_bytes: counts.counter(LARGE_BYTES).max(watched),
            requested: counts.counter(REQUESTED),
            requested_bytes: counts.counter(REQUESTED_BYTES),
            refused: counts.counter(REFUSED),
            programs: counts.programs,
            old_libc: counts.counter(OLD_LIBC),
        })
    }
}

impl Engagement for LargePagesAround {
    fn started(&mut self, pid: i32) -> Result<(), CannotEngage> {
        self.watch = Some(Watch::start(pid));
        Ok(())
    }

    fn confirm(&mut self, pid: i32) -> Result<Engaged, NotEngaged> {
        self.report(pid).map(|report| Engaged::reported(&report, Acts::Counted(report.large_pages())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_s_tunables_stay() {
        let with = |present: &str| with_tunable(Some(present.into())).into_string().unwrap_or_default();
        assert_eq!(with(""), "glibc.malloc.hugetlb=1");
        assert_eq!(with("glibc.malloc.check=3"), "glibc.malloc.check=3:glibc.malloc.hugetlb=1");
        assert_eq!(with("glibc.malloc.hugetlb=2:a.b=1"), "glibc.malloc.hugetlb=2:a.b=1");
        assert_eq!(with_tunable(None), "glibc.malloc.hugetlb=1");
    }
}
