//! The one seam between a lab and the place where its cells run.

use crate::case::Case;
use crate::run_cell::{self, RECORD, Site};
use crate::{Ended, Error, Guest, How};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// One repetition of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Index of the case.
    pub(crate) case: usize,
    pub(crate) repetition: u32,
}

/// Receives each cell's record once the cell's artifacts are in place.
pub type Told<'a> = dyn FnMut(Ended) -> Result<(), Error> + 'a;

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
    fn run(&mut self, site: &Site<'_>, cells: &[Cell], told: &mut Told<'_>) -> Result<(), Error>;
}

/// Runs cells on this machine, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Local;

impl Executor for Local {
    fn has_guest(&self, _: &Guest) -> Result<(), Error> {
        Err(Error::CannotHere("cells that run here boot no guest".to_owned()))
    }

    fn run(&mut self, site: &Site<'_>, cells: &[Cell], told: &mut Told<'_>) -> Result<(), Error> {
        cells.iter().try_for_each(|cell| told(run_cell::run(site, *cell)?))
    }
}

impl Site<'_> {
    pub(crate) fn case(&self, cell: Cell) -> &Case {
        &self.cases[cell.case]
    }

    /// The cell's identifier.
    pub fn name(&self, cell: Cell) -> String {
        self.case(cell).cell(cell.repetition)
    }

    /// Returns the guest that the cell's case requires.
    pub fn guest(&self, cell: Cell) -> Option<Guest> {
        self.case(cell).guest(self.spec)
    }

    /// The lab's directory, absolute.
    pub fn lab(&self) -> &Path {
        self.lab
    }

    /// This program.
    pub fn nearmiss(&self) -> &Path {
        self.nearmiss
    }

    /// Returns the directory in which every command starts.
    pub fn start(&self) -> &Path {
        self.start
    }

    /// A directory for what is under way; it is taken away when the lab ends or goes on.
    pub fn temporary(&self) -> &Path {
        self.temporary
    }

    /// How long a cell may take.
    pub fn limit(&self) -> Duration {
        Duration::from_secs_f64(self.spec.timeout_s)
    }

    /// Returns the record of a cell with its artifacts in place.
    pub fn kept(&self, cell: Cell) -> Option<Ended> {
        let text = fs::read(self.kept_at.join(self.name(cell)).join(RECORD)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Takes the artifacts of an earlier try away: what is there afterwards is of the next one.
    pub(crate) fn forget(&self, cell: Cell) -> Result<(), Error> {
        let kept = self.kept_at.join(self.name(cell));
        match kept.exists() {
            true => fs::remove_dir_all(&kept).map_err(Error::io(kept)),
            false => Ok(()),
        }
    }

    /// Takes over the directory of a cell that ran elsewhere, and notes how long it took seen from here.
    pub fn receive(&self, cell: Cell, artifacts: &Path, took: Duration) -> Result<Ended, Error> {
        let record = artifacts.join(RECORD);
        let text = fs::read(&record).map_err(Error::io(&record))?;
        let mut ended: Ended = serde_json::from_slice(&text).map_err(|e| Error::io(&record)(e.into()))?;
        if ended.cell != self.name(cell) {
            return Err(Error::io(&record)(std::io::Error::other(format!("is the record of {}", ended.cell))));
        }
        ended.took_s = took.as_secs_f64();
        run_cell::keep(self, artifacts, &ended)?;
        Ok(ended)
    }

    /// Keeps a cell of which nothing came back.
    pub fn lost(&self, cell: Cell, how: How, why: String, took: Duration) -> Result<Ended, Error> {
        let mut ended = run_cell::blank(self.spec, self.case(cell), cell.repetition);
        (ended.how, ended.why, ended.took_s) = (how, Some(why), took.as_secs_f64());
        let artifacts = self.temporary.join(format!("{}.lost", ended.cell));
        fs::create_dir_all(&artifacts).map_err(Error::io(&artifacts))?;
        run_cell::keep(self, &artifacts, &ended)?;
        Ok(ended)
    }
}
