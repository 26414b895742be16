//! P0: *Speeding Up Linux Process Scheduler by Reducing Cache Misses* (2003). See `README.md` here.

pub mod clock;
pub mod colors;
pub mod figures;
pub mod hand;
pub mod memory;
pub mod pictures;
pub mod queue;
pub mod scaling;
pub mod server;
pub mod walk;
pub mod web;

use crate::PaperError;
use crate::record::{Here, PaperRecord, Parameter, SCHEMA};
use nearmiss_record::machine::Machine;
use nearmiss_record::words::{grouped, percentage};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Title and year.
pub const TITLE: &str = "Speeding Up Linux Process Scheduler by Reducing Cache Misses (cache coloring, 2003)";

/// Which scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Linux 2.4: one queue, walked; task structures at 8 KB.
    Standard,
    /// Linux 2.4 with task structures in so many colors.
    Colored(u32),
    /// The O(1) scheduler: a queue a CPU, not walked.
    Constant,
}

/// Work of a process between two walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Work of the WebBench-like load; [`parameters`] states how each figure was set.
pub const WEB_WORK: Work = Work { lines: 4600, instructions: 130_000, pool_pages: 192, store_percent: 10 };

/// How long a process of WebBench waits for the network and the client before it goes on.
pub const AWAY_MICROS: u64 = 2000;

/// Bytes that one way of the second level covers.
fn way_bytes(machine: &Machine) -> Result<u64, PaperError> {
    let second = machine.data_cache(2);
    second
        .map(|c| c.size.0 / u64::from(c.ways.max(1)))
        .ok_or_else(|| PaperError::NoMachine(format!("{} has no second level", machine.name)))
}

/// Computes the requested tables, and their pictures.
pub(crate) fn run(
    wanted: &dyn Fn(&str) -> bool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<PaperRecord, PaperError> {
    let counted = |name: &str, parts: usize| if wanted(name) { parts } else { 0 };
    let parts = counted("a", walk::PARTS) + counted("b", colors::PARTS) + counted("c", scaling::PARTS);
    let so_far = AtomicUsize::new(0);
    let done = || progress(so_far.fetch_add(1, Ordering::Relaxed) + 1, parts);
    let (mut tables, mut pictures) = (Vec::new(), Vec::new());
    if wanted("a") {
        let pairs = walk::pairs(&done)?;
        tables.push(walk::table(&pairs));
        pictures.extend([pictures::figure_6(&pairs), pictures::figure_7(&pairs)]);
    }
    if wanted("b") {
        let series = colors::series(&done)?;
        tables.push(colors::table(&series));
        pictures.push(pictures::figure_8(&series));
    }
    if wanted("c") {
        let scalings = scaling::scalings(&done)?;
        tables.push(scaling::table(&scalings));
        pictures.extend([9, 10].into_iter().zip(&scalings).map(|(number, s)| pictures::scaling(number, s)));
    }
    let parameters = parameters();
    let (name, known, here) = ("coloring", "modelled", Some(HERE));
    Ok(PaperRecord { schema: SCHEMA, name, title: TITLE, known, parameters, tables, pictures, here })
}

/// The remedy on this machine's own caches.
pub const HERE: Here = Here {
    program: "target/subjects/aligned-tasks",
    build: "make subjects",
    arguments: &["--objects", "1024", "--align", "8192", "--visits", "3000000"],
    verify: &["color", "--colors", "32", "--metric", "ns_per_visit ([0-9.]+)"],
    shows: "a list walk over 1,024 objects at 8 KB, without and with 32 colors, interleaved: time a visit",
};

fn parameters() -> Vec<Parameter> {
    let row = |name: &str, value: String, how: &str| Parameter { name: name.into(), value, how: how.into() };
    let work = WEB_WORK;
    vec![
        row(
            "lines used between two walks",
            format!("{} of 32 bytes ({} KB)", grouped(work.lines), grouped(work.lines * 32 / 1024)),
            "fitted: what the processes' own work displaces; one value for the three miss ratios 83 / 35.8 / 8.2%",
        ),
        row(
            "memory they are drawn from",
            format!("{} KB a CPU, evenly", grouped(work.pool_pages as u64 * 4)),
            "fitted: transactions on colored lines at 1,024 KB, -73.0%",
        ),
        row(
            "instructions between two walks",
            format!("{} on average, from half to one and a half", grouped(work.instructions)),
            "fitted: requests/s at 1,024 KB, +42.3%; the same value in (b), (c), WebBench and Chat",
        ),
        row("stores among the lines used", format!("{}%", work.store_percent), "assumed"),
        row(
            "kernel stacks",
            format!(
                "8 KB blocks; {}% right behind the one before, else anywhere in 1 GB; seed {SEED}, in (a) the mean of seeds 1 to 3",
                memory::NEIGHBOUR_PERCENT
            ),
            "assumed: forks that split one free block, or take scattered ones",
        ),
        row(
            "time off the queue, WebBench",
            format!("{} ms for the network and the client after each slice", AWAY_MICROS / 1000),
            "fitted: requests/s at 8 CPUs, +23.3%",
        ),
        row(
            "on the queue, Chat",
            format!(
                "{} of {} threads",
                grouped((scaling::CHAT_THREADS - scaling::CHAT_ASLEEP) as u64),
                grouped(scaling::CHAT_THREADS as u64)
            ),
            "paper: \"more than 1,000 on average\" (section 5.2); the number itself is assumed",
        ),
        row(
            "instructions of the scheduler",
            "16 a task visited, 400 a schedule(), 100 a wake-up, 30 a CPU looked at for preemption".to_owned(),
            "assumed",
        ),
        row(
            "what the bus and the lock add",
            "waits as M/D/1 at the other CPUs' load; the lock comes with one line transfer and a transaction a spinner"
                .to_owned(),
            "assumed; latencies and cycles a transaction are those of the machine files",
        ),
    ]
}
