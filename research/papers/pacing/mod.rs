//! P2: *Interval-controlled polling in a web accelerator* (2004). See `README.md` here.

pub mod bench;
mod figures;
mod pictures;
pub mod plan;
mod tables;

use crate::record::{PaperRecord, Parameter, SCHEMA};
use crate::{PaperError, PaperOptions};
use bench::{Bench, Cell, Programs};
use nearmiss_record::words::grouped;
use plan::{Group, Plan, Scale, Subject, subjects};

/// Title and year.
pub const TITLE: &str = "Performance of a web accelerator with interval-controlled polling (2004)";

/// One subject's cells, a rate each.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Which.
    pub subject: Subject,
    /// In the order of the rates.
    pub cells: Vec<Cell>,
}

/// Measures the requested tables.
pub(crate) fn run(options: &PaperOptions<'_>) -> Result<PaperRecord, PaperError> {
    let programs = Programs::beside(options.nearmiss)?;
    let plan = Plan::of(options.scale);
    let groups: Vec<(&str, Group)> = [("a", Group::Closing), ("b", Group::Keeping), ("c", Group::Today)]
        .into_iter()
        .filter(|(name, _)| (options.wanted)(name))
        .collect();
    let all: usize = groups.iter().map(|(_, group)| subjects(*group).len() * plan.rates.len()).sum();
    let mut done = 0;
    let (mut tables, mut pictures) = (Vec::new(), Vec::new());
    for (name, group) in groups {
        let mut curves = Vec::new();
        for subject in subjects(group) {
            curves.push(curve(&programs, plan, subject, &mut || {
                done += 1;
                (options.progress)(done, all);
            })?);
        }
        tables.extend(tables::of(name, group, plan, &curves));
        pictures.extend(pictures::of(group, plan, &curves));
    }
    Ok(PaperRecord {
        schema: SCHEMA,
        name: "pacing",
        title: TITLE,
        known: "measured",
        parameters: parameters(plan, options.scale),
        tables,
        pictures,
        here: None,
    })
}

fn curve(programs: &Programs, plan: Plan, subject: Subject, done: &mut dyn FnMut()) -> Result<Curve, PaperError> {
    let mut bench = Bench::start(programs, plan, subject)?;
    let mut cells = Vec::new();
    for rate in plan.rates {
        cells.push(bench.at(*rate)?);
        done();
    }
    Ok(Curve { subject, cells })
}

fn parameters(plan: Plan, scale: Scale) -> Vec<Parameter> {
    let row = |name: &str, value: String, how: &str| Parameter { name: name.into(), value, how: how.into() };
    let measured = format!("{} s, once a cell, behind 2 s in which the load settles", plan.seconds);
    let sockets = format!("{} open at once where connections are kept", grouped(plan.sockets.into()));
    vec![
        row("measured time", measured, scale.option()),
        row(
            "load",
            "WebAxe-4 in phase top2 after a fill, open loop; clients, accelerator and origin share this machine"
                .to_owned(),
            "paper: table 4 and appendix; no packet loss, delays by the clients' own timers",
        ),
        row("sockets", sockets, "paper: 7,000, one I/O thread holds all of them"),
        row(
            "working set and cache",
            format!("{} and {}", plan.working_set, plan.memory),
            "paper: 1 GB and 768 MB; a cache of three quarters",
        ),
        row(
            "interval 0",
            "timeout 0 and a yield".to_owned(),
            "paper: section 5.2.1; `blocking` is the call that people have",
        ),
    ]
}
