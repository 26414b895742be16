//! `nearmiss apply color`: the command with its thread stacks and large blocks colored by
//! preloaded libraries.
//!
//! ```no_run
//! use nearmiss_remedies::color::apply::{Options, apply};
//! use nearmiss_workload::Workload;
//!
//! let (workload, coloring) = apply(Workload::new(["python3", "x.py"]), &Options::default())?;
//! let running = workload.launch_suspended()?.resume()?;
//! let pid = running.pid();
//! running.wait()?;
//! eprintln!("{}", coloring.report(pid)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod libraries;
mod options;
mod report;

pub(super) use report::RECORD;

pub use options::{Args, LEAST_BLOCK_BYTES, MOST_COLORS, Options};
pub use report::{Blocks, Report, Stacks};

use super::colors::step;
use super::program::command_reads_variable;
use crate::command_line::args;
use crate::preload::{Preload, Refusals, try_on_true};
use clap::ArgMatches;
use nearmiss_analysis::{Ability, Acts, Applied, CannotEngage, Engaged, Engagement, NotEngaged};
use nearmiss_workload::Workload;
use std::cell::OnceCell;

const REFUSALS: Refusals = Refusals {
    go: "its stacks and its heap come from Go's own runtime, which no preloaded library sees",
    statically_linked: "or use nearmiss-color.h in its allocator",
};

/// Coloring in place around a command. Nothing of it persists.
#[derive(Debug)]
pub struct Coloring {
    options: Options,
    preload: Preload,
    /// The command without coloring, to check whether its program colors itself.
    plain: Workload,
    colors_itself: OnceCell<bool>,
}

/// Puts a command under coloring.
///
/// The environment variable `NEARMISS_COLOR` gives programs built with `nearmiss-color.h` or the crate `nearmiss-color`
/// the number of colors to use.
pub fn apply(workload: Workload, options: &Options) -> Result<(Workload, Coloring), CannotEngage> {
    options.check()?;
    let stacks = options.stacks.then_some(&libraries::STACKS);
    let blocks = options.block_bytes.map(|_| &libraries::BLOCKS);
    let preload = Preload::new(&workload, stacks.into_iter().chain(blocks).collect(), &REFUSALS)?;
    let plain = workload.clone();
    let workload = workload.env("NEARMISS_COLOR", options.colors.to_string());
    let workload = preload.around(workload, "NEARMISS_COLOR_PRELOAD", &parameters(options));
    Ok((workload, Coloring { options: options.clone(), preload, plain, colors_itself: OnceCell::new() }))
}

fn parameters(options: &Options) -> String {
    format!(
        "colors={},step={},line={},least={}",
        options.colors,
        step(options.colors.into()),
        options.line_bytes,
        options.block_bytes.unwrap_or(0)
    )
}

/// Puts a command under the remedy for the registry, with the options as they were given.
pub(super) fn engage(workload: Workload, given: &ArgMatches) -> Result<Applied, CannotEngage> {
    apply(workload, &Options::from(&args::<Args>(given)?)).map(Applied::from)
}

/// `color, 32 colors`.
pub(super) fn title(given: &ArgMatches) -> String {
    let colors = args::<Args>(given).map_or(0, |args| args.colors);
    format!("{}, {colors} colors", super::NAME)
}

/// Whether a program can be colored here: `true` is.
pub(super) fn abilities() -> Vec<Ability> {
    vec![try_on_true("preloaded libraries", |workload| apply(workload, &Options::default()))]
}

impl Coloring {
    /// Reports the coloring since the last report, provided that the launched process `pid` was under coloring.
    pub fn report(&self, pid: i32) -> Result<Report, NotEngaged> {
        Ok(Report::new(&self.options, &self.preload.confirm(pid)?))
    }

    /// Returns how much was colored. A program that colors by `NEARMISS_COLOR` itself does not report that; nor is
    /// known whether the programs that the command starts do.
    fn acts(&self, report: &Report) -> Acts {
        match report.colored() {
            0 if report.programs() > 1 => Acts::Uncounted,
            0 if *self.colors_itself.get_or_init(|| command_reads_variable(&self.plain)) => Acts::Uncounted,
            colored => Acts::Counted(colored),
        }
    }
}

impl Engagement for Coloring {
    fn confirm(&mut self, pid: i32) -> Result<Engaged, NotEngaged> {
        self.report(pid).map(|report| Engaged::reported(&report, self.acts(&report)))
    }
}
