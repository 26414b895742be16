//! Cache coloring: objects that begin at the same offset of an aligned piece of memory are
//! shifted by a few whole lines each, so that they do not share cache sets.

mod aliasing;
pub mod apply;
mod colors;
mod detect;
mod finding;
mod program;
mod rehearse;
mod subject;

pub use colors::{effective_alignment, least_colors, lines_a_color, step};
pub use detect::detect;

use crate::{Remedy, Undo};

/// Its line in the registry.
pub const REMEDY: Remedy = Remedy {
    name: "color",
    summary: "shifts thread stacks and large blocks by whole lines so that they do not share cache sets",
    detect,
    undo: Undo::NothingPersists,
};
