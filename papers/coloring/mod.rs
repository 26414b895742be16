//! P0: *Speeding Up Linux Process Scheduler by Reducing Cache Misses* (2003). See `README.md` here.

pub mod clock;
pub mod colors;
pub mod figures;
pub mod hand;
pub mod memory;
pub mod pictures;
pub mod queue;
pub mod random;
pub mod scaling;
pub mod server;
pub mod walk;
pub mod web;

use crate::PaperError;
use crate::record::{PaperRecord, Parameter, SCHEMA};
use nearmiss_machine::describe::preset;
use nearmiss_record::machine::{CacheKind, Machine};
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Title and year.
pub const TITLE: &str = "Speeding Up Linux Process Scheduler by Reducing Cache Misses (cache coloring, 2003)";

/// Which scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// Linux 2.4: one queue, walked; task structures at 8 KB.
    Standard,
    /// The same in so many colors.
    Colored(u32),
    /// The O(1) scheduler: a queue a CPU, not walked.
    Constant,
}

/// What a process does between two walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Work {
    /// Lines it uses that the first level does not have.
    pub lines: u64,
    /// Instructions.
    pub instructions: u64,
    /// Pages of 4 KB that the lines are drawn from, a CPU.
    pub pool_pages: usize,
    /// Stores among the uses, in percent.
    pub store_percent: u64,
}

/// Seed of placement and load.
pub const SEED: u64 = 1;

/// The WebBench-like load's; [`parameters`] says how each figure was set.
pub const WEB_WORK: Work = Work { lines: 4200, instructions: 140_000, pool_pages: 192, store_percent: 10 };

/// A machine that comes with nearmiss.
pub fn machine(name: &str) -> Result<Machine, PaperError> {
    Ok(preset(name).ok_or_else(|| PaperError::NoMachine(name.to_owned()))?.machine()?)
}

/// Bytes that one way of the second level covers.
fn way_bytes(machine: &Machine) -> Result<u64, PaperError> {
    let second = machine.caches.iter().find(|c| c.level == 2 && c.kind == CacheKind::Unified);
    second
        .map(|c| c.size.0 / u64::from(c.ways.max(1)))
        .ok_or_else(|| PaperError::NoMachine(format!("{} has no second level", machine.name)))
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// `1,024`
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Computes all figures.
pub fn run(progress: &(dyn Fn(usize, usize) + Sync)) -> Result<PaperRecord, PaperError> {
    let parts = walk::PARTS + colors::PARTS + scaling::PARTS;
    let so_far = AtomicUsize::new(0);
    let done = || progress(so_far.fetch_add(1, Ordering::Relaxed) + 1, parts);
    let pairs = walk::pairs(&done)?;
    let series = colors::series(&done)?;
    let scalings = scaling::scalings(&done)?;
    Ok(PaperRecord {
        schema: SCHEMA,
        name: "coloring",
        title: TITLE,
        parameters: parameters(),
        tables: vec![walk::table(&pairs), colors::table(&series), scaling::table(&scalings)],
        pictures: pictures::draw(&pairs, &series, &scalings),
        here: here(),
    })
}

fn here() -> Vec<(String, String)> {
    let row = |command: &str, what: &str| (command.to_owned(), what.to_owned());
    vec![row(
        "nearmiss verify color --metric 'ns_per_visit ([0-9.]+)' -- subjects/build/aligned-tasks --tasks 1024",
        "a list walk over 1,024 objects at 8 KB, interleaved with and without coloring",
    )]
}

fn parameters() -> Vec<Parameter> {
    let row = |name: &str, value: String, how: &str| Parameter { name: name.into(), value, how: how.into() };
    let work = WEB_WORK;
    vec![
        row(
            "lines used between two walks",
            format!("{} of 32 bytes ({} KB)", grouped(work.lines), grouped(work.lines * 32 / 1024)),
            "fitted: one value to the three miss ratios of the colored walk, 83 / 35.8 / 8.2%",
        ),
        row(
            "memory they are drawn from",
            format!("{} KB a CPU, evenly", grouped(work.pool_pages as u64 * 4)),
            "fitted: transactions on colored lines at 1,024 KB, -73.0%",
        ),
        row("instructions between two walks", grouped(work.instructions), "fitted: requests/s at 1,024 KB, +42.3%"),
        row("stores among the lines used", format!("{}%", work.store_percent), "assumed"),
        row(
            "kernel stacks",
            format!(
                "8 KB blocks; {}% right behind the one before, else anywhere in 1 GB; seed 1",
                memory::NEIGHBOUR_PERCENT
            ),
            "assumed: forks that split one free block, or take scattered ones",
        ),
        row(
            "instructions of the scheduler",
            "16 a task visited, 400 a schedule(), 100 a wake-up".to_owned(),
            "assumed",
        ),
    ]
}
