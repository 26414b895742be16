//! The one seam between a lab and the place where its cells run.

use crate::case::Cell;
use crate::run_cell;
use crate::site::Site;
use crate::{Ended, Error, Guest};

/// Receives each cell's record once the cell's artifacts are in place.
pub type CellSink<'a> = dyn FnMut(Ended) -> Result<(), Error> + 'a;

/// Runs cells: here, in a guest, or on the nodes of a cluster.
///
/// An implementation leaves of each cell one whole directory of artifacts with the record in it, or none.
pub trait Executor {
    /// Errors: why cells cannot run in such a guest.
    fn has_guest(&self, wanted: &Guest) -> Result<(), Error>;

    /// Whether cells run on another machine, with CPUs and programs that are unknown here.
    fn is_elsewhere(&self) -> bool {
        false
    }

    /// Runs cells, in their order where there is one. A failure in a cell is in its record; an error ends the lab.
    fn run(&mut self, site: &Site<'_>, cells: &[Cell], sink: &mut CellSink<'_>) -> Result<(), Error>;
}

/// Runs cells on this machine, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Local;

impl Executor for Local {
    fn has_guest(&self, _: &Guest) -> Result<(), Error> {
        Err(Error::CannotHere("cells that run here boot no guest".to_owned()))
    }

    fn run(&mut self, site: &Site<'_>, cells: &[Cell], sink: &mut CellSink<'_>) -> Result<(), Error> {
        cells.iter().try_for_each(|cell| sink(run_cell::run(site, *cell)?))
    }
}
