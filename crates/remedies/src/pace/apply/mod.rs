//! `nearmiss apply pace`: the command with a least interval between each thread's waits, by a preloaded library.

mod options;
mod report;

pub(super) use report::RECORD;

pub(super) use options::checked;
pub use options::{Args, Options};
pub use report::{Awake, Report};

use crate::command_line::args;
use crate::command_line::command_line;
use crate::preload::{Library, LibraryCounts, Preload, Refusals, try_on_true};
use clap::ArgMatches;
use nearmiss_analysis::{Ability, Acts, Applied, CannotEngage, Engaged, Engagement, NotEngaged};
use nearmiss_workload::Workload;
use std::time::Duration;

/// The library, with the counters of `native/preload/pace/nap.h`: every call counts under one of the first nine.
static LIBRARY: Library = Library {
    name: "pace",
    file: "nearmiss-pace.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/pace.so")),
    counters: &[SLEEPS, AT_ONCE, FIRST, LATE, SPARSE, DEAR, NO_GAIN, LEFT_OVER, NOT_KNOWN, EVENTS, SLEPT_NS],
};

const SLEEPS: &str = "sleeps";
const AT_ONCE: &str = "at once";
const FIRST: &str = "first";
const LATE: &str = "late";
const SPARSE: &str = "sparse";
const DEAR: &str = "dear";
const NO_GAIN: &str = "no gain";
const LEFT_OVER: &str = "left over";
const NOT_KNOWN: &str = "not known";
const EVENTS: &str = "events";
const SLEPT_NS: &str = "slept";

const REFUSALS: Refusals = Refusals {
    go: "it makes its system calls itself, which no preloaded library sees",
    statically_linked: "or sleep between the waits in the program",
};

/// The remedy in place around a command. Nothing of it persists.
#[derive(Debug)]
pub struct Paced {
    options: Options,
    preload: Preload,
}

/// Puts a command under the remedy.
pub fn apply(workload: Workload, options: &Options) -> Result<(Workload, Paced), CannotEngage> {
    options.check()?;
    let preload = Preload::new(&workload, vec![&LIBRARY], &REFUSALS)?;
    let workload = preload.around(workload, "NEARMISS_PACE_PRELOAD", &options.parameter());
    Ok((workload, Paced { options: options.clone(), preload }))
}

/// Puts a command under the remedy for the registry, with the options as they were given.
pub(super) fn engage(workload: Workload, given: &ArgMatches) -> Result<Applied, CannotEngage> {
    apply(workload, &args::<Args>(given)?.into()).map(Applied::from)
}

/// `pace, every 1ms`.
pub(super) fn title(given: &ArgMatches) -> String {
    let aim = args::<Args>(given).map(|args| format!(", {}", options::in_words(Options::from(args).aim)));
    format!("{}{}", super::NAME, aim.unwrap_or_default())
}

/// The argument vector of a verb of nearmiss on the command.
pub(super) fn arguments(verb: &str, interval_ns: u64, command: &[String]) -> Vec<String> {
    let interval = humantime::format_duration(Duration::from_nanos(interval_ns)).to_string();
    command_line(verb, super::NAME, &["--interval".to_owned(), interval], command)
}

/// Whether a program's waits can be paced here: `true` loads the library.
pub(super) fn abilities() -> Vec<Ability> {
    vec![try_on_true("preloaded library for waits", |workload| apply(workload, &Options::default()))]
}

impl Paced {
    /// Reports the acts since the last report, provided that the launched process `pid` was under the remedy.
    pub fn report(&self, pid: i32) -> Result<Report, NotEngaged> {
        self.preload.confirm_only(pid).map(|counts| self.of(&counts))
    }

    fn of(&self, part: &LibraryCounts) -> Report {
        let awake = Awake {
            at_once: part.counter(AT_ONCE),
            first: part.counter(FIRST),
            late: part.counter(LATE),
            sparse: part.counter(SPARSE),
            dear: part.counter(DEAR),
            no_gain: part.counter(NO_GAIN),
            left_over: part.counter(LEFT_OVER),
            not_known: part.counter(NOT_KNOWN),
        };
        let sleeps = part.counter(SLEEPS);
        Report {
            schema: report::SCHEMA.to_owned(),
            aim: options::in_words(self.options.aim),
            programs: part.programs,
            calls: sleeps + awake.total(),
            sleeps,
            slept_ns: part.counter(SLEPT_NS),
            events: part.counter(EVENTS),
            awake,
        }
    }
}

impl Engagement for Paced {
    fn confirm(&mut self, pid: i32) -> Result<Engaged, NotEngaged> {
        self.report(pid).map(|report| Engaged::reported(&report, Acts::Counted(report.sleeps)))
    }
}
