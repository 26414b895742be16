//! P3: *A Speedup Technique with Scheduler Using Process Execution Information* (2005). See `README.md` here.

pub mod cost;
pub mod figures;
pub mod hand;
pub mod kernel;
pub mod mix;
pub mod ours;
mod pictures;
pub mod policy;
pub mod product;
pub mod rates;
pub mod run;
pub mod study;
mod summary;
mod tables;
pub mod theirs;
pub mod work;

use crate::record::{PaperRecord, Parameter, SCHEMA};
use crate::{Asked, PaperError};
use nearmiss_record::words::grouped;
use run::Daemons;
use std::sync::atomic::{AtomicUsize, Ordering};
use study::{Extent, PRODUCT};

/// Title and year.
pub const TITLE: &str =
    "A Speedup Technique with Scheduler Using Process Execution Information (scheduling for SMT, 2005)";

/// The paper's machine.
pub const MACHINE: &str = "xeon-ht-2x2";

/// Instructions of a multiplication and addition.
pub const INSTRUCTIONS: u64 = 6;
/// Cycles of one while it hits and the core's other hardware thread is busy; [`parameters`] says how it was set.
pub const CYCLES: f64 = 26.7;
/// Ticks between swaps of the paper's method; [`parameters`] says how they were set.
pub const PERIOD_TICKS: u64 = 9_700;
/// What else wakes; [`parameters`] says how it was set.
pub const DAEMONS: Daemons = Daemons { every: 72_000, longest: 800 };

/// Computes the tables that are wanted, and their pictures.
pub(crate) fn run(asked: &Asked<'_>) -> Result<PaperRecord, PaperError> {
    let extent = Extent::of(asked.scale);
    let wants_runs = ["b", "c"].iter().any(|name| (asked.wanted)(name));
    let counted = |wanted: bool, parts: usize| if wanted { parts } else { 0 };
    let parts = counted((asked.wanted)("a"), 2 * study::load(extent, PRODUCT.element).parts())
        + counted(wants_runs, study::parts(extent))
        + counted((asked.wanted)("d"), study::parts_of_mixes(extent));
    let so_far = AtomicUsize::new(0);
    let done = || (asked.progress)(so_far.fetch_add(1, Ordering::Relaxed) + 1, parts);
    let (mut tables, mut pictures) = (Vec::new(), Vec::new());
    if (asked.wanted)("a") {
        tables.extend(tables::rates(extent, &done)?);
    }
    if wants_runs {
        let study = study::study(extent, &done)?;
        if (asked.wanted)("b") {
            tables.extend(tables::times(&study));
            pictures.extend(pictures::times(&study));
        }
        if (asked.wanted)("c") {
            tables.extend(tables::placements(&study));
            pictures.extend(pictures::placements(&study));
        }
    }
    if (asked.wanted)("d") {
        tables.extend(tables::mixes(&study::mixed(extent, &done)?));
    }
    let (name, known) = ("pairing", "modelled");
    let parameters = parameters();
    Ok(PaperRecord { schema: SCHEMA, name, title: TITLE, known, parameters, tables, pictures, here: None })
}

fn parameters() -> Vec<Parameter> {
    let row = |name: &str, value: String, how: &str| Parameter { name: name.into(), value, how: how.into() };
    vec![
        row(
            "cycles of a multiplication and addition while it hits",
            format!("{CYCLES}, with both hardware threads of the core busy"),
            "fitted: the standard's longest of ten runs takes 417 s, of which the 50 s that the paper saves are 12%",
        ),
        row(
            "ticks between swaps, and from a swap to its judgement",
            grouped(PERIOD_TICKS),
            "fitted: 34.8 changes of placement a run (figure 17); section 2.3 names no period",
        ),
        row(
            "daemons that disturb",
            format!(
                "one in {} s on average, on any CPU, for up to {} ms",
                DAEMONS.every / kernel::TICKS_PER_SECOND,
                DAEMONS.longest
            ),
            "fitted: the standard's 2.1 changes of placement a run (figure 17); that none takes longer is assumed",
        ),
        row(
            "cost of a call of the standard scheduler",
            "10 lines from memory".to_owned(),
            "fitted: 3,920 cycles (figure 8); the other schedulers' further lines are counted by hand",
        ),
        row(
            "element of the matrices",
            format!("{} bytes", PRODUCT.element),
            "assumed: a block of 350 × 350 is \"close to the second level's capacity\" (section 4.1) at 4 bytes, twice it at 8",
        ),
        row(
            "order of the product",
            "row by row of C; each group's threads take the next row of the block in turn, so they are at one block"
                .to_owned(),
            "assumed: section 4.1 divides each block among the group's threads",
        ),
        row("instructions of a multiplication and addition", INSTRUCTIONS.to_string(), "assumed"),
        row(
            "threads",
            "made one after another by one task, of the groups in turn; the clock of ticks begins anywhere".to_owned(),
            "assumed",
        ),
        row(
            "a pair's judgement in the paper's method",
            "high where both tasks miss less often an instruction than tasks did on this core on average so far, low \
             where both miss more often"
                .to_owned(),
            "assumed: sections 2.1 and 3.1 compare with the mean, and have three grades",
        ),
        row(
            "an access to a counter",
            format!("{} cycles, 8 a call", cost::COUNTER_ACCESS_CYCLES),
            "assumed; latencies are those of the machine file",
        ),
        row(
            "tasks that share nothing",
            "four kinds in turn, each with the work of 40 s alone; table d has their sizes".to_owned(),
            "assumed: in the place of vpr, parser, bzip2 and mesa (section 5)",
        ),
    ]
}
