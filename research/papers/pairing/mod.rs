//! P3: *A Speedup Technique with Scheduler Using Process Execution Information* (2005). See `README.md` here.

pub mod cost;
pub mod figures;
mod goals;
pub mod hand;
mod held_out;
pub mod kernel;
pub mod mix;
pub mod ours;
mod parameters;
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

use crate::record::{PaperRecord, Picture, SCHEMA, Table};
use crate::{PaperError, PaperOptions};
use run::Daemons;
use std::sync::atomic::{AtomicUsize, Ordering};
use study::{Extent, PRODUCT, Study};

/// Title and year.
pub const TITLE: &str =
    "A Speedup Technique with Scheduler Using Process Execution Information (scheduling for SMT, 2005)";

/// The paper's machine.
pub const MACHINE: &str = "xeon-ht-2x2";

/// Instructions of a multiplication and addition.
pub const INSTRUCTIONS: u64 = 6;
/// Cycles of one while it hits and the core's other hardware thread is busy; [`parameters`] states how it was set.
pub const CYCLES: f64 = 26.7;
/// Ticks between swaps of the paper's method; [`parameters`] states how they were set.
pub const PERIOD_TICKS: u64 = 9_700;
/// Other threads that wake; [`parameters`] states how it was set.
pub const DAEMONS: Daemons = Daemons { every: 72_000, longest: 800 };

/// Computes the requested tables, and their pictures.
pub(crate) fn run(options: &PaperOptions<'_>) -> Result<PaperRecord, PaperError> {
    let extent = Extent::of(options.scale);
    let wants_runs = ["b", "c"].iter().any(|name| (options.wanted)(name));
    let counted = |wanted: bool, parts: usize| if wanted { parts } else { 0 };
    let parts = counted((options.wanted)("a"), 2 * study::load(extent, PRODUCT.element).parts())
        + counted(wants_runs, study::parts(extent))
        + counted((options.wanted)("d"), study::parts_of_mixes(extent))
        + counted((options.wanted)("e"), study::parts(extent) + study::parts_of_mixes(extent));
    let so_far = AtomicUsize::new(0);
    let done = || (options.progress)(so_far.fetch_add(1, Ordering::Relaxed) + 1, parts);
    let (tables, pictures) = answered(options, extent, &done)?;
    let (name, known) = ("pairing", "modelled");
    let parameters = parameters::parameters();
    Ok(PaperRecord { schema: SCHEMA, name, title: TITLE, known, parameters, tables, pictures, here: None })
}

/// Returns the requested tables, and their pictures.
fn answered(
    options: &PaperOptions<'_>,
    extent: Extent,
    done: &(dyn Fn() + Sync),
) -> Result<(Vec<Table>, Vec<Picture>), PaperError> {
    let wants = |names: &[&str]| names.iter().any(|name| (options.wanted)(name));
    let (mut tables, mut pictures) = (Vec::new(), Vec::new());
    if wants(&["a"]) {
        tables.extend(tables::rates(extent, done)?);
    }
    if wants(&["b", "c"]) {
        let study = study::study(extent, done)?;
        for (name, of) in [("b", tables::times as fn(&Study) -> _), ("c", tables::placements)] {
            tables.extend(wants(&[name]).then(|| of(&study)).into_iter().flatten());
        }
        for (name, of) in [("b", pictures::times as fn(&Study) -> _), ("c", pictures::placements)] {
            pictures.extend(wants(&[name]).then(|| of(&study)).into_iter().flatten());
        }
    }
    if wants(&["d"]) {
        tables.extend(tables::mixes(&study::mixed(extent, done)?));
    }
    if wants(&["e"]) {
        let extent = extent.held_out();
        tables.extend(held_out::held_out(&study::study(extent, done)?, &study::mixed(extent, done)?));
    }
    Ok((tables, pictures))
}
