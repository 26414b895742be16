//! P1: kernel bottlenecks, memory profiles and the copy that is aware of cache pollution (2005). See `README.md` here.

pub mod figures;
pub mod function;
pub mod hand;
pub mod here;
pub mod path;
mod pictures;
pub mod replica;
pub mod scaling;
pub mod shares;
pub mod slice;

use crate::record::{PaperRecord, Parameter, SCHEMA};
use crate::{PaperError, PaperOptions};
use nearmiss_record::words::grouped;
use path::Work;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Title and year.
pub const TITLE: &str = "Evaluation of open source software, OS layer: CPU scalability (cache pollution, 2005)";

/// The paper's machine.
pub const MACHINE: &str = "xeon-mp-4way-l3";

/// The work of a stream; [`parameters`] states how each figure was set.
pub const WORK: Work = Work { usual: 1850, other: 28, other_lines: 120_000, instructions: 37_700, store_percent: 30 };

/// Measures and computes the requested tables, and their pictures.
pub(crate) fn run(options: &PaperOptions<'_>) -> Result<PaperRecord, PaperError> {
    let counted = |name: &str, parts: usize| if (options.wanted)(name) { parts } else { 0 };
    let parts = counted("a", here::parts(options.scale)) + counted("b", shares::PARTS) + counted("c", scaling::PARTS);
    let so_far = AtomicUsize::new(0);
    let done = || (options.progress)(so_far.fetch_add(1, Ordering::Relaxed) + 1, parts);
    let (mut tables, mut pictures) = (Vec::new(), Vec::new());
    if (options.wanted)("a") {
        tables.push(here::table(options, &done)?);
    }
    if (options.wanted)("b") {
        let shares = shares::shares(&done)?;
        tables.push(shares::table(&shares));
        pictures.extend(pictures::patches(&shares));
    }
    if (options.wanted)("c") {
        let scaling = scaling::scaling(&done)?;
        tables.extend(scaling::tables(&scaling));
        pictures.push(pictures::scaling(&scaling));
    }
    let is_modelled = (options.wanted)("b") || (options.wanted)("c");
    let parameters = if is_modelled { parameters() } else { Vec::new() };
    let (name, known) = ("pollution", "modelled");
    Ok(PaperRecord { schema: SCHEMA, name, title: TITLE, known, parameters, tables, pictures, here: None })
}

fn parameters() -> Vec<Parameter> {
    let row = |name: &str, value: String, how: &str| Parameter { name: name.into(), value, how: how.into() };
    vec![
        row(
            "references a record to what stays near",
            format!("{} to {} lines a CPU", grouped(WORK.usual), path::USUAL_LINES),
            "fitted: the copy's share of references of L2 and L3, 7.3%",
        ),
        row(
            "references a record to all other memory",
            WORK.other.to_string(),
            "fitted: the copy's share of L3 misses, 63%",
        ),
        row(
            "that memory",
            format!("{} lines a CPU ({} KB), evenly", grouped(WORK.other_lines), grouped(WORK.other_lines / 16)),
            "fitted: the misses that the copy caused, 6.4% of all (table 4.2-10)",
        ),
        row(
            "instructions a record beside the copy",
            grouped(WORK.instructions),
            "fitted: CPU time a record, 32.9 µs (table 4.2-3)",
        ),
        row("stores among those references", format!("{}%", WORK.store_percent), "assumed"),
        row(
            "lines that all CPUs write with each record",
            path::SHARED_LINES.to_string(),
            "assumed: locks, lists and counts of zones and inodes",
        ),
        row(
            "from a page's submission to the end of its transfer",
            format!("{} records of the stream", path::IN_FLIGHT),
            "assumed: 2 MiB in the device's queue",
        ),
        row(
            "until a page is submitted, committed, reclaimed",
            format!(
                "{}, {} and {} records of the stream",
                grouped(path::DIRTY),
                grouped(path::COMMITTED),
                grouped(path::KEPT)
            ),
            "assumed: all beyond the last level",
        ),
        row(
            "the kernel's structures",
            "page 32, buffer head 52, journal head 48, leaf of the page cache's tree 276, bio 88, request 712 bytes"
                .to_owned(),
            "assumed: Linux 2.6 on IA-32, blocks of 4 KiB",
        ),
        row(
            "overlap of the CPUs",
            "the copy comes anywhere in a record's work, by a seed; all CPUs share one bus".to_owned(),
            "assumed; latencies and cycles a transaction are those of the machine file",
        ),
    ]
}
