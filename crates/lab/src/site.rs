//! The surroundings that all cells of a lab share, and the places of their artifacts.

use crate::case::{Cell, MatrixCase};
use crate::spec::Spec;
use crate::{Ended, Ending, Error, Guest};
use nearmiss_record::run::write_whole;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The record of a cell, among its artifacts.
pub(crate) const RECORD: &str = "cell.json";

/// The surroundings of all cells of a lab.
pub struct Site<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) cases: &'a [MatrixCase],
    pub(crate) nearmiss: &'a Path,
    /// Directory in which every command starts.
    pub(crate) start: &'a Path,
    /// The lab's directory, absolute.
    pub(crate) lab: &'a Path,
    /// Directory in which cells work.
    pub(crate) temporary: &'a Path,
    /// Directory with the artifacts of ended cells.
    pub(crate) kept_at: &'a Path,
    /// Whether the CPUs that a cell does not name are taken from everybody.
    pub(crate) hotplug: bool,
    /// Whether somebody waits for the cells. A task that is taken out of a queue has its cell's command killed first.
    pub(crate) wanted: &'a dyn Fn() -> bool,
}

impl Site<'_> {
    pub(crate) fn case(&self, cell: Cell) -> &MatrixCase {
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
        keep(self, artifacts, &ended)?;
        Ok(ended)
    }

    /// Keeps a cell of which nothing came back.
    pub fn lost(&self, cell: Cell, how: Ending, why: String, took: Duration) -> Result<Ended, Error> {
        let mut ended = blank(self.spec, self.case(cell), cell.repetition);
        (ended.how, ended.why, ended.took_s) = (how, Some(why), took.as_secs_f64());
        let artifacts = self.temporary.join(format!("{}.lost", ended.cell));
        fs::create_dir_all(&artifacts).map_err(Error::io(&artifacts))?;
        keep(self, &artifacts, &ended)?;
        Ok(ended)
    }
}

/// Returns the record of a cell before it ran.
pub(crate) fn blank(spec: &Spec, case: &MatrixCase, repetition: u32) -> Ended {
    Ended {
        cell: case.cell(repetition),
        case: case.name.clone(),
        workload: case.workload(spec).name.clone(),
        levels: case.levels(spec).map(|(axis, level)| (axis.name.clone(), level.name.clone())).collect(),
        repetition,
        how: Ending::Done,
        exit: None,
        signal: None,
        why: None,
        took_s: 0.0,
        figures: BTreeMap::new(),
        words: BTreeMap::new(),
    }
}

/// Puts the artifacts where they count, at once. The artifacts of an earlier try of the cell make room.
pub(crate) fn keep(site: &Site<'_>, out: &Path, ended: &Ended) -> Result<(), Error> {
    let record = out.join(RECORD);
    let bytes = serde_json::to_vec_pretty(ended).map_err(|e| Error::io(&record)(e.into()))?;
    write_whole(&record, &bytes)?;
    let kept = site.kept_at.join(&ended.cell);
    if kept.exists() {
        let before = site.temporary.join(format!("{}.before", ended.cell));
        fs::rename(&kept, &before).map_err(Error::io(&kept))?;
        fs::rename(out, &kept).map_err(Error::io(&kept))?;
        return fs::remove_dir_all(&before).map_err(Error::io(&before));
    }
    fs::rename(out, &kept).map_err(Error::io(&kept))
}
